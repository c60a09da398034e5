// AttemptBook: workloads of others that are run as kubegang Jobs, one attempt after the other, each
// of which is a Job. It has what all kinds of them have in common and knows none: a workload is a
// UID. Here are its Jobs, the pods that such Jobs have left, the tries to make the next Job, what
// may be deleted, and which workloads are to be looked at.
//
// A kind is a face, a class that is an AttemptBook (ManagedJobs: Jobs of the batch group). It
// watches the objects, decides from the Jobs which attempt is next and which one is the result,
// translates the template into the next Job, and writes the status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "base/timers.h"
#include "operator/jobs/job_record.h"
#include "operator/loop/report.h"
#include "operator/publish/attempts.h"
#include "operator/publish/waiting_line.h"
#include "operator/write/effect.h"
#include "translation/batch_job_translation.h"

namespace control {

// The facts about one of our Jobs.
struct OurJob {
  kube::ObjectKey key;
  int attempt = 0;
  int failures = 0;         // attempts before it that count
  kube::JobStatus status;   // as stored
  std::string succeeded{};  // pods, as stored; where pods follow one another
  std::string version{};    // in which `status` is stored
  bool deleted = false;     // the object is gone, pods are left
  bool is_going = false;    // it is being deleted, something keeps the object
  bool taken_away = false;  // its deletion has ended it, the object is left
  // The answer to its creation, at that instant, is all there is.
  std::optional<base::Instant> unseen_since{};
  std::int32_t active = 0;       // pods that have not ended
  std::int32_t ready = 0;        // of them
  std::int32_t terminating = 0;  // deleted, and still there
  bool is_in_motion = false;     // these numbers are about to change by themselves
  base::Instant asked_at{};      // for its deletion
  std::string asked_version{};   // which was to be deleted
};
using OurJobs = std::map<std::string, OurJob>;  // by UID

bool is_final(const kube::JobStatus& status);

// Returns true if the attempt failed by itself. Such an attempt is followed by another one, as far
// as the workload allows. Timeout, Cancelled, Preempted and Deadline are not among them: they would
// happen again, or a user or administrator wanted them.
bool has_failed(const kube::JobStatus& status);

// Returns how long the next attempt waits: 10 s after the first failure, doubled for each further
// one, and 6 min at most. REQUIRES: failures >= 1.
base::Duration back_off(int failures);

// Belongs to the loop's thread. Cost: for each Job that changes its pods and the logarithm of all.
class AttemptBook {
 public:
  // Called for each kubegang Job whenever something about it or its pods changed; passes over those
  // of no workload of the kind. The second is one that had ended when it was first seen.
  void observe_job(const JobRecord& job);
  void observe_ended(const kube::Job& job);
  // Forgets a Job that no longer exists and has no pods.
  void forget_job(const std::string& uid);
  // Notes a pod whose kubegang Job is gone, as a new leader may find it: the workload of its label
  // has not stopped yet, and its next attempt must not start beside it.
  void put_orphan(const kube::Pod& pod);
  // Forgets a pod that is gone, or whose Job is known now. Any other pod is passed over.
  void erase_orphan(const kube::ObjectKey& pod);
  // Called when the outcome of a write of the workload's status is known.
  void look_again(const std::string& uid);

 protected:
  struct Kind {
    // Returns the workload that controls an object; null if none of the kind does.
    const kube::OwnerReference* (*owner_of)(const kube::ObjectMeta&);
    std::string_view uid_label;  // of pods: the workload
  };
  struct Workload {
    bool exists = false;  // false: only Jobs and pods of it are known
    OurJobs jobs;
    // Pods of Jobs that a leader before this one has seen go; true: it is being deleted.
    std::map<kube::ObjectKey, bool> orphans;
    Attempts creation{{.first = std::chrono::seconds{1}, .max = std::chrono::minutes{5}}};
    bool plain_name = true;  // false: another Job has the workload's own name
    std::string refusal;     // by the API server, of the Job for the present attempt
  };
  // After this time a deletion is asked for again.
  static constexpr base::Duration kDeleteAgain = std::chrono::seconds{10};

  // `report` must live longer than this.
  AttemptBook(const Report& report, const Kind& kind) : report_{report}, kind_{kind} {}

  // Notes that the object exists, or is gone; its Jobs go by garbage collection, or stay as they
  // are. The reference is valid until it is gone.
  Workload& put_workload(const std::string& uid);
  void erase_workload(const std::string& uid);

  // Returns the Job that runs the attempt of that number; null: it has none.
  static const OurJob* present(const Workload& workload, int attempt);
  // Returns that attempt with what follows from those before it.
  static Attempt next_attempt(const Workload& workload, int number, int failures);
  // Returns true, at most once until answered(), if its Job may be made now; takes one of `room`
  // then. If there is no room the workload waits in line.
  bool may_make(const std::string& uid, Workload& workload, std::size_t& room, base::Instant now);
  // Returns the number of the attempt if its Job is made, and no watch has shown it yet.
  std::optional<int> note_answer(const JobCreated& outcome, base::Instant now);
  // Forgets Jobs that were made and deleted before any watch has shown them.
  void forget_unseen(const std::string& uid, Workload& workload, base::Instant now);
  // Asks for the deletion of the Job, of `uid`, unless that was asked for a moment ago. It is
  // refused if the Job is not as it is known, and asked for again when it is.
  static void delete_job(const std::string& uid, OurJob& job, base::Instant now,
                         std::vector<Effect>& effects);
  // Asks for the deletion of its unfinished Jobs but `present`, until they are gone. One that has
  // nodes is left alone until `patience_ends`.
  void delete_unfinished(const std::string& uid, Workload& workload, const OurJob* present,
                         base::Instant patience_ends, base::Instant now,
                         std::vector<Effect>& effects);

  const Report& report_;
  // UIDs of workloads: those to be looked at now, and when to look again at others; and those whose
  // Job is due and found no room.
  std::set<std::string> touched_;
  base::Timers<std::string> timers_;
  WaitingLine to_make_;

 private:
  Workload* find(const std::string& uid);
  void put_job(const kube::Job& object, OurJob job);
  void drop_if_unknown(const std::string& uid);

  const Kind kind_;
  std::map<std::string, Workload> workloads_;       // by UID
  std::map<std::string, std::string> owners_;       // workload by UID of our Job
  std::map<kube::ObjectKey, std::string> orphans_;  // workload by pod
};

}  // namespace control
