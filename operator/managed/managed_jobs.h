// ManagedJobs: Jobs of the batch group that say `managedBy: kubegang.io/job`. For each, one attempt
// after the other is a kubegang Job, which the rest of the operator runs like any other; the batch
// Job's status shows its outcome. This is their face; attempts as such are AttemptBook's.
//
// Only what is stored is remembered: the attempt of a kubegang Job stands in its label, the batch
// Job in its owner reference, and how many have failed follows from their statuses and labels. So a
// new leader goes on where the old one ended, whichever write was its last:
//
//   1. No unfinished Job of the present attempt: it is made. One that exists is as good.
//   2. It has failed, as stored: the next attempt is made after a back-off, up to backoffLimit;
//      podFailurePolicy may say that the failure does not count, or that there is no next attempt.
//   3. It has ended otherwise, as stored, so that no pod of it is left: the batch Job's status says
//      so and never changes again.
//   4. spec.suspend: it is deleted, and created again when the batch Job is resumed. A Job that a
//      user deletes is created again, too. So Cancelled by deletion alone is not an end. If two are
//      unfinished, as after a restore of etcd, one is deleted.
//   5. The batch Job has ended, as stored, and a kubegang Job has not: etcd was restored, and a
//      leader that remembered more wrote the end once more. The Job is deleted, so that the work of
//      the batch Job does not run again.
//
// Its status costs as few writes as it can: in a life that goes as it should one when its pods are
// ready and one when it has ended (write() says when each change is written).
//
// A Job is deleted only as it was when that was decided (4 and 5): one that has ended meanwhile
// stays, since its end would be lost, and its batch Job would begin again.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "kube/api/batch_job.h"
#include "operator/jobs/whole_templates.h"
#include "operator/loop/inbox.h"
#include "operator/loop/report.h"
#include "operator/managed/attempt_book.h"
#include "operator/managed/batch_attempts.h"
#include "operator/publish/inform_budget.h"
#include "operator/publish/mirror.h"
#include "operator/publish/waiting_line.h"
#include "operator/write/effect.h"
#include "translation/batch_job_translation.h"

namespace control {

// Belongs to the loop's thread. Costs nothing while there is no such batch Job; else, for each that
// changed or whose Job did, the logarithm of their number and its pods.
class ManagedJobs : public AttemptBook {
 public:
  // Both must live longer than this.
  ManagedJobs(const Report& report, WholeTemplates& templates);

  void observe(const Changes<kube::BatchJob>& changes);
  // Null: there is no such batch Job.
  StatusMirror<kube::BatchJob>* find_status(const std::string& uid);
  void answered(const JobCreated& outcome, base::Instant now);

  // Returns the writes that are due. Changes that clients wait for are written at once; kubegang
  // Jobs are made as far as there is `room` (CountedWriter), and numbers of pods are written with
  // what is left of it, or from the budget; what is out of date soon, and why a batch Job waits, as
  // far as the budget goes.
  std::vector<Effect> due(InformBudget& budget, std::size_t room, base::Instant now);
  // Never in the past.
  base::Instant next_due(base::Instant now) const;

 private:
  struct Managed {
    std::shared_ptr<const kube::BatchJob> object;
    Workload* workload = nullptr;
    StatusMirror<kube::BatchJob> status;
    std::string told_refusal;                 // in an event
    base::Instant ended_since{base::kNever};  // since when its end has been known
    base::Instant differs_since{base::kNever};
    bool is_passing = false;  // what is wanted: BatchView
  };
  // The room and the budget of one call of due().
  struct Means {
    InformBudget& budget;
    std::size_t room = 0;
  };

  static void count_orphans(const Managed& managed, BatchView& view);
  void look_and_write(const std::string& uid, Means& means, base::Instant now,
                      std::vector<Effect>& effects);
  void look(const std::string& uid, Managed& managed, Means& means, base::Instant now,
            std::vector<Effect>& effects);
  BatchView view_of(Managed& managed, Means& means, base::Instant now,
                    std::vector<Effect>& effects);
  static BatchView view_of_suspended(Managed& managed, base::Instant now,
                                     std::vector<Effect>& effects);
  BatchView view_without_job(Managed& managed, const FailedAttempts& failed, Means& means,
                             base::Instant now, std::vector<Effect>& effects);
  void write(const std::string& uid, Managed& managed, Means& means, base::Instant now,
             std::vector<Effect>& effects);
  bool may_inform(const std::string& uid, Managed& managed, Means& means, base::Instant now);
  void take_from_lines(const Means& means);
  Effect creation_of(const Managed& managed, kube::Job job);
  void tell_refusal(Managed& managed, const BatchView& view);

  WholeTemplates& templates_;
  std::map<std::string, Managed> managed_;       // by UID; those that exist
  std::map<kube::ObjectKey, std::string> uids_;  // of them
  // UIDs of batch Jobs whose numbers found no room, or whose reasons found no budget. However many
  // they are, only as many are looked at again as may be written.
  WaitingLine numbers_wait_, reasons_wait_;
};

}  // namespace control
