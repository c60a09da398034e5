// GatedPods: pods that others have made and that wait behind our scheduling gate. When all pods of
// a gang exist, the operator makes a Job that lists them; from then on it is a job like any other,
// which waits, gets nodes and takes turns, and PodWrites pins its pods. This class only decides
// which pods are a gang, and tells the others what they wait for.
//
// All that it remembers can be read again: a pod's label names its gang, the Job's spec lists its
// pods and never changes, and the Job's name follows from them. So a new leader continues after any
// write of the old one:
//
//   1. If all pods of a gang exist and have no Job, their Job is made; it may exist already.
//   2. A Job that waits while one of its pods is gone is deleted. The other pods are a gang that
//      waits for pods; with a replacement it gets another Job.
//   3. The pods of a Job that ended before it got nodes keep their gate, and say so. Nothing that
//      others have made is ever deleted.
//   4. If a PodGroup names the gang instead of our label, only the least number of its pods is
//      known: all that exist are of it, once they are enough and none has come or gone for a
//      moment. Nothing is read of the PodGroup when the Job exists.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/time.h"
#include "base/timers.h"
#include "kube/api/pod.h"
#include "kube/api/pod_group.h"
#include "operator/jobs/job_record.h"
#include "operator/loop/report.h"
#include "operator/publish/attempts.h"
#include "operator/publish/inform_budget.h"
#include "operator/publish/waiting_line.h"
#include "operator/write/effect.h"
#include "translation/pod_gang_translation.h"

namespace control {

// Belongs to the loop's thread. A pod without our gate costs a look at its gates; a change of a
// gang costs O(its pods).
class GatedPods {
 public:
  // `report` must live longer than this.
  explicit GatedPods(const Report& report) : report_{report} {}
  struct Adopts {
    bool groups = false;  // pods that name a PodGroup instead of a gang, too
  };
  // Without it gated pods are ignored. REQUIRES: nothing has been observed yet.
  void adopt(Adopts adopts) { adopts_ = adopts; }

  // Null: the pod is gone.
  void observe(const kube::ObjectKey& key, const std::shared_ptr<const kube::Pod>& pod);
  // Null: the PodGroup is gone.
  void observe_group(const kube::ObjectKey& key, const kube::PodGroup* group);
  // Called for each kubegang Job after each change; ignores Jobs that list no pods.
  void observe_job(const JobRecord& job);
  // Takes a Job that had ended when it was first seen.
  void observe_ended(const kube::Job& job);
  void forget_job(const std::string& uid);

  void answered(const JobCreated& outcome, base::Instant now);
  void answered(const PodNoted& outcome, base::Instant now);

  // Returns the writes that are due. Jobs are made as far as there is `room` (CountedWriter).
  // Conditions of pods only inform: they are paid from the budget.
  std::vector<Effect> due(InformBudget& budget, std::size_t room, base::Instant now);
  // Never in the past.
  base::Instant next_due(base::Instant now) const;

 private:
  using PodPtr = std::shared_ptr<const kube::Pod>;
  struct GangKey {
    std::string ns;
    GangName gang;
    friend auto operator<=>(const GangKey&, const GangKey&) = default;
  };

  struct Note {
    std::string reason;
    std::string message;
    friend bool operator==(const Note&, const Note&) = default;
  };
  struct OurJob {
    GangKey gang;
    std::shared_ptr<const kube::Job> object;
    bool waits = true;                 // for nodes: its pods are still gated
    std::optional<std::string> ended;  // its final state
    base::Instant deleted_at{};        // when its deletion was last asked for; 0 = never
    // The answer to its creation, at that instant, is all that is known of it.
    std::optional<base::Instant> unseen_since{};
  };
  struct Gang {
    std::map<std::string, PodPtr> pods;  // gated, by name
    std::set<std::string> jobs;          // by UID
    Attempts creation{{.first = std::chrono::seconds{1}, .max = std::chrono::minutes{5}}};
    std::string refusal;  // by the API server, of its Job
    Note note;            // for its pods that have no Job
    base::Instant noted_at{};
    std::vector<std::string> gathered;  // UIDs of its pods that have no Job, if a PodGroup names it
    base::Instant gathered_at{};        // since when these are the same
  };

  GangKey gang_of_pod(const kube::Pod& pod) const;
  void put_job(const std::shared_ptr<const kube::Job>& object, bool waits,
               std::optional<std::string> ended);
  void forget_pod(const kube::ObjectKey& key);
  void look_at(const GangKey& key, base::Instant now, std::vector<Effect>& effects);
  void look(const GangKey& key, Gang& gang, base::Instant now, std::vector<Effect>& effects);
  void forget_unseen_jobs(const GangKey& key, const Gang& gang, base::Instant now);
  void delete_broken_jobs(const GangKey& key, Gang& gang, base::Instant now,
                          std::vector<Effect>& effects);
  Note note_of(const GangKey& key, Gang& gang, std::vector<PodPtr> free, base::Instant now,
               std::vector<Effect>& effects);
  bool grows(const GangKey& key, Gang& gang, const std::vector<PodPtr>& free, base::Instant now);
  std::optional<Note> wanted_note(const kube::Pod& pod, base::Instant now) const;
  void write_notes(InformBudget& budget, base::Instant now, std::vector<Effect>& effects);

  const Report& report_;
  std::optional<Adopts> adopts_;
  std::map<GangKey, Gang> gangs_;
  std::map<kube::ObjectKey, PodGroupFacts> groups_;
  std::map<kube::ObjectKey, PodPtr> pods_;         // gated, or with a note
  std::map<std::string, OurJob> jobs_;             // by UID
  std::map<std::string, std::string> job_of_pod_;  // UIDs
  std::map<kube::ObjectKey, GangKey> being_made_;  // by the Job's key
  std::set<GangKey> touched_;
  std::size_t room_ = 0;            // what is left of it in the present call of due()
  WaitingLineOf<GangKey> to_make_;  // gangs whose Job is to be made and found no room
  base::Timers<GangKey> timers_;    // when to look again
  std::map<kube::ObjectKey, base::Instant> to_note_;  // pods whose note may be wrong
  std::set<std::string> noting_;                      // UIDs of pods whose note is being written
};

}  // namespace control
