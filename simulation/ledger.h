// The model: what should be true, written to be read. It sees every change of the API server's
// objects, every start and end of a program, and looks at the machines ten times a second of
// virtual time. It knows nothing of how the operator and the agents decide.
//
// The first thing that should not be is the round's finding.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/array_status.h"
#include "api/job.h"
#include "api/node_timetable.h"
#include "kube/testing/api_server/api_server.h"
#include "simulation/kubelet.h"
#include "simulation/node_agent.h"
#include "simulation/plan.h"
#include "simulation/tally.h"

namespace simulation {

// A promise that was not kept: which checker saw it, at what, and when (true time since the round
// began).
struct Finding {
  std::string checker;
  std::string text;
  Time at{};
};

// A node with its two processes.
struct Node {
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Kubelet> kubelet;
  std::unique_ptr<NodeAgent> agent;
  bool given_up = false;  // its Node object was deleted: its programs no longer count
};

// The checkers of a round and what they know. Used by one thread. look() costs as much as was
// written since its last call, sample() a pass over the programs of all nodes.
class Ledger final : public ProgramObserver {
 public:
  Ledger(devcluster::ApiServer& server, const Time& now, const Plan& plan, Tally& tally);

  // Returns the first finding; nullopt as long as there is none. find() keeps the first one.
  const std::optional<Finding>& finding() const { return finding_; }
  void find(const std::string& checker, const std::string& text);

  // --- what happens ---
  void look();  // at what was written
  void program_started(const Program& program) override;
  void program_ended(const Program& program, EndedBy by) override;
  void program_refused(const Program& program) override;
  void end_untold(const Program& program) override;
  // The agent lets that pod go on, now.
  void thawed(Node& node, const std::string& uid);
  // Ten times a second.
  void sample(std::vector<Node>& nodes, bool operator_is_well);
  // A user asked for the end of the job, or of a task of an array ("sweep_3").
  void user_ends(const std::string& job_name) { ended_by_user_.insert(job_name); }
  // A user asked for a task to run again, if it runs ("sweep_3").
  void user_requeues(const std::string& title) { requeued_by_user_.insert(title); }
  void user_deletes(const std::string& job_name) { deleted_by_user_.insert(job_name); }
  void restored(Time as_of);  // etcd went back to what was stored then
  void reinstalled();         // kubegang Jobs went, and with them what they alone told
  // An administrator deletes one: what runs finishes unsliced. `heard_within`: until the operator
  // has heard of it, and what it decided before is stored.
  void partition_goes(Time heard_within);
  // An administrator closes a node to new jobs, with a taint to those that do not tolerate it; or
  // opens it.
  void node_closes(const std::string& node, bool taint, bool closed);
  // The leader, which is well, has nothing to write of the job and wants this to be its status.
  void check_stored(const std::string& uid, const kube::JobStatus& wanted);
  // The same for a timetable, and for a pod that it knows; `is_unseen`: as it says, by the answer
  // to its creation alone.
  void check_stored_table(const std::string& node, const kube::NodeTimetableSpec& wanted);
  void check_known_pod(const kube::Pod& pod, bool is_unseen = false);
  // Others delete the pod, as it is stored.
  void pod_deleted(const nlohmann::json& pod);
  // From now on jobs may start in their order alone.
  void builtin_scheduler() { may_be_builtin_ = true; }
  // A step of an operator's clock that its leader may follow.
  void operator_clock_stepped(Time by) { clock_steps_ += by; }
  // The pod was deleted by force: before its job is ready it is made again.
  void pod_lost(const Program& program);
  // Something was done to the cluster that is felt for `lasts`: the length of an outage, or by how
  // much an operator's clock is set back, whose instants stand still until it has caught up.
  void fault(Time lasts = Time{0});
  // The Node object is deleted, and another one of the same name appears after `lasts`.
  void node_replaced(const std::string& node, Time lasts);

  // --- at the end ---
  // Returns true if all jobs and batch Jobs that are stored have ended; unfinished() names the
  // others.
  bool all_final() const;
  std::string unfinished() const;
  void check_end();
  // `recorded`: what all jobs together are said to have used.
  void check_usage(base::Duration recorded);

 private:
  // A job that is not an array, an array as a whole, or a task of one that has started or ended:
  // the task's entry is taken for the status of a job (api/array_status.h).
  struct JobFacts {
    kube::Job job;
    std::optional<int> task;          // of an array
    base::Duration ran{0}, stood{0};  // since its first program began, and since it was ready
    // That of `ran` for which nothing but its turns explains that programs ran.
    base::Duration charged{0};
    std::int64_t turns = 0;             // that have begun; each may count one sample too many
    bool was_going = false;             // at the last sample
    bool began_by_wrong_clock = false;  // of a node
    bool told_late = false;             // since then, that a node of it took turns, or did not
    Time began_at = kNoTime;            // the first program of its present start
    Time ready_at = kNoTime;
    Time final_at = kNoTime;      // if it was seen to end
    std::string owner;            // UID of the batch Job that it runs
    Time start_at{0};             // its present start was stored, or seen after a restore
    Time held_at = kNoTime;       // its user holds it since then,
    bool hold_is_heard = false;   // and the operator has heard
    kube::Allocation allocation;  // of that start
    // For the present start, as stored: which pods have succeeded; and whether the operator has
    // heard of all of them, with no ending stored.
    std::set<int> succeeded;
    bool is_known_done = false;
  };
  // Facts of one start's pods, by which its verdict is judged.
  struct StartFacts {
    bool failed = false, lost = false, refused = false;
    // The end was decided (a limit, a preemption, a user), whatever its programs did then.
    bool over = false;
    int exit_code = 0;  // the highest of programs that failed by themselves
  };
  // When a program ended well, and whether a restore of etcd had taken its pod away.
  struct EndedWell {
    Time at{};
    bool is_taken_back = false;
  };
  // An array as a whole.
  struct ArrayFacts {
    std::set<int> tasks;
    kube::TaskOutcomes outcomes;
    // How many may run at once, 0 = any: now, and before that changed.
    std::int32_t throttle = 0, throttle_before = 0;
    Time spec_at{0};       // its spec, or what is asked of its tasks, is so since then
    bool is_heard = true;  // and the operator has heard of it
    std::int64_t starts = 0;
  };
  // How Jobs that ran a batch Job have ended: which have failed, and whether one was canceled or is
  // over its time.
  struct Attempts {
    std::set<std::string> failed;
    bool given_up = false;
  };
  struct BatchFacts {
    std::string name;
    bool complete = false, failed = false;
    int needed = 0;   // pods that have to succeed
    int retries = 0;  // backoffLimit
    int succeeded = 0;
    std::set<int> completed;  // their indexes, where they have some
  };
  struct PodFacts {
    std::string job_uid;
    std::int64_t start = 0;
    std::string version;  // resourceVersion
    Time made_at{0};
    Time runs_at = kNoTime;  // its program began, as is stored
    bool deleting = false;
    Time deleted_at{0};  // if it is
    bool by_others = false;
  };
  // A pod that others deleted: a moment ago it had ended, or its object went.
  struct Cleaned {
    std::string name, job_uid;
    std::int64_t start = 0;
    int task = 0;
    Time at{};
  };
  // A node that is closed to jobs, and whether the operator has heard.
  struct Closed {
    bool taint = false;
    bool is_known = false;
  };
  // A kernel's counts of freezes.
  struct FreezeCounts {
    std::int64_t freezes = 0, slow = 0;
    base::Duration freezing{0};
  };
  // Overlaps beside tasks that do not freeze, in the life of one worker of a node's agent.
  struct Overlaps {
    Time worker_since = kNoTime;
    base::Duration began{0};    // monotonic
    base::Duration sampled{0};  // that the worker must count
    int spells = 0;             // of which that is the sum
    std::set<std::string> now;  // pods that overlap now
    Time clear_since{0};        // nothing has been freezing since
    Time away{0};               // the time without a step of the worker
    FreezeCounts before, last;  // before the worker began, and at the last look
  };
  // A pod with containers of `kubectl debug`, in the life of one worker: for how long the worker
  // has let it run for them, and whether it may do so now.
  struct Debugged {
    Time worker_since = kNoTime;
    Time unsettled{0};
    bool may_run = false;
  };
  struct Obeyed {
    std::string uid;
    std::int64_t term = 0, revision = 0;
    Time worker_since{0};
  };
  struct Stream {
    std::string path;
    std::shared_ptr<devcluster::BodyStream> stream;
  };

  void read(Stream& stream);
  void take(const std::string& path, const std::string& line);
  void on_job(const std::string& type, kube::Job job);
  void on_version(const std::string& uid, kube::Job job);
  void on_job_gone(const kube::Job& job);
  void on_question(const std::string& type, kube::Job job);
  void check_answer(const kube::Job& job);
  void sample_questions();
  void note_hold(JobFacts& facts) const;
  void check_held(const JobFacts& facts);
  void on_array(kube::Job job);
  void on_array_gone(const kube::Job& job);
  void on_tasks(const kube::Job& job, const ArrayFacts& facts, bool fresh);
  void on_task(const kube::Job& job, int task, const std::optional<kube::JobStatus>& status,
               bool fresh);
  void check_array(const kube::Job& job, const ArrayFacts& before, const ArrayFacts& facts);
  void check_array_end(const kube::Job& job, const ArrayFacts& facts);
  void check_throttle(const kube::Job& job, const ArrayFacts& facts);
  void check_task_start(const JobFacts& facts);
  void check_task_end(const JobFacts& facts);
  void check_task_failure(const JobFacts& facts);
  void check_stored_task(const std::string& key, const kube::JobStatus& wanted);
  void note_array_fate(const kube::Job& job, const ArrayFacts& facts);
  void sample_wishes();
  bool some_task_waits(const JobFacts& facts) const;
  bool waits(const JobFacts& facts) const;
  bool is_throttled(const JobFacts& facts) const;
  void on_start(JobFacts& facts);
  static void forget_times(JobFacts& facts);
  void on_left_nodes(JobFacts& facts, const kube::JobStatus& last);
  void on_ending(const JobFacts& facts);
  bool have_ended_well(const JobFacts& facts);
  void on_final(const JobFacts& facts);
  void check_observed(const kube::Job& job);
  void check_times(const JobFacts& facts);
  void check_charged(const JobFacts& facts, const kube::JobStatus& status);
  static bool has_failed(const StartFacts& happened, const kube::Job& job);
  void check_failure(const JobFacts& facts);
  void check_timeout(const JobFacts& facts);
  StartFacts& facts_of(const Program& program);
  StartFacts happened_to(const JobFacts& facts);
  bool is_of_a_restore(const JobFacts& facts) const;
  std::optional<base::Duration> least_limit(const JobFacts& facts) const;
  void note_attempt(const JobFacts& facts);
  void check_batch_failure(const std::string& uid, const BatchFacts& facts);
  void on_batch_job(const std::string& type, const nlohmann::json& object);
  bool has_ended(const std::string& batch_uid) const;  // as stored
  void check_attempts(const Program& program);
  void on_successes(const kube::Job& before, const kube::Job& job);
  void on_counters(const std::string& uid, const BatchFacts& before, const BatchFacts& facts);
  void check_member(const kube::Job& job, const nlohmann::json& pod);
  void check_index(const Program& program);
  std::size_t pods_that_ended_well(const kube::Job& job);
  std::string run_of(const std::string& job_uid) const;
  bool is_never_frozen(const std::string& job_uid, std::int64_t start) const;
  bool is_unsliced(const std::string& job_uid, std::int64_t start) const;
  void on_pod(const std::string& type, const nlohmann::json& pod);
  void note_success(const nlohmann::json& pod);
  void note_cleaned(Cleaned pod);
  void forget_success(const Cleaned& pod);
  void look_at_cleaned();
  void on_torn_down(const nlohmann::json& pod, const PodFacts& facts);
  void on_table(const std::string& type, kube::NodeTimetable table);
  void check_starts(const kube::NodeTimetable& table);
  const JobPlan* plan_of_job(const kube::Job& job) const;
  void check_placement(const JobFacts& facts);
  void check_done_again(const JobFacts& facts);
  void check_devices(const JobFacts& facts);
  void check_pod_devices(const kube::Job& job, const nlohmann::json& pod);
  void note_fate(const kube::Job& job);
  void note_fate_of_gone(const std::string& uid, const std::string& title);
  void check_dependency(const JobFacts& facts);
  void sample_starts(std::vector<Node>& nodes);
  void sample_idle();
  void sample_idle_nodes(const std::vector<Node>& nodes);
  std::set<std::string> idle_nodes(const std::vector<Node>& nodes) const;
  bool must_start(const JobFacts& facts, const std::set<std::string>& idle) const;
  base::Duration least_left() const;

  bool is_settled(const Node& node, const Program& program) const;
  void sample_debugs(const Node& node);
  bool may_await_init(const Node& node, const Program& program) const;
  bool is_ending(const Program& program) const;
  bool is_excused(const Node& node) const;
  bool obeys(const Node& node) const;
  void sample_overlaps(Node& node);
  void sample_counted_overlaps(Node& node);
  std::set<std::string> overlapping(const Node& node, base::Duration worker_began) const;
  void sample_frozen(Node& node);
  void sample_never_frozen(const Node& node);
  void sample_fail_open(Node& node);
  void sample_deleted(Node& node);
  void sample_obedience(Node& node);
  void sample_going_back(Node& node);
  void sample_gangs(std::vector<Node>& nodes);
  void sample_times(std::vector<Node>& nodes);
  bool should_run(const Node& node, const Program& program) const;
  // Returns for how long it has been so, by name; 0 when it is not.
  Time streak(const std::string& name, bool holds);

  devcluster::ApiServer& server_;
  const Time& now_;
  const Plan& plan_;
  Tally& tally_;
  std::optional<Finding> finding_;
  std::vector<Stream> streams_;
  std::map<std::string, JobFacts> jobs_;  // by UID; tasks by control::record_key
  // Statuses, by UID, that were found to be the same: as wanted, and as stored.
  std::map<std::string, std::pair<kube::JobStatus, kube::JobStatus>> same_statuses_;
  // By job UID: the least limit that the spec ever had. A restore of etcd does not undo what was
  // decided by it.
  std::map<std::string, base::Duration> least_limits_;
  std::map<std::string, ArrayFacts> arrays_;    // by UID
  std::map<std::string, kube::Job> questions_;  // by UID: those that ask when they would start
  // Tasks that ended well, by job UID and start. A restore of etcd does not undo what programs did.
  std::map<std::string, std::map<std::int64_t, std::map<int, EndedWell>>> succeeded_;
  std::set<std::string> taken_back_;  // pods, by UID: a restore took them away while they ran
  std::map<std::string, std::map<std::int64_t, StartFacts>> starts_;  // by job UID and start
  std::set<std::pair<std::string, std::int64_t>> endings_;            // likewise: that are stored
  std::map<std::string, Time> gone_until_;                            // by node: its Node object
  std::map<std::string, BatchFacts> batch_;                           // by UID
  std::map<std::string, Attempts> attempts_;                          // by batch Job's UID
  std::map<std::string, std::string> owners_;  // batch Job's UID by Job's, also of gone ones
  std::set<std::string> indexed_;              // batch Jobs, by UID
  std::map<std::string, std::set<int>> done_;  // indexes stored as succeeded, by run_of()
  // Those that only a batch Job's status counts, since a restore of etcd; by its UID.
  std::map<std::string, std::set<int>> counted_alone_;
  bool jobs_went_ = false;  // some were deleted
  Time reinstalled_at_{-std::chrono::hours{1}};
  std::map<std::string, PodFacts> pods_;  // by UID
  // Starts with a pod that must not be frozen, by job UID.
  std::map<std::pair<std::string, std::int64_t>, Time> never_frozen_;  // since when
  // Starts whose partition was deleted: they take no turns. Likewise.
  std::map<std::pair<std::string, std::int64_t>, Time> unsliced_;
  std::map<std::string, kube::NodeTimetable> tables_;    // by node
  std::map<std::string, std::vector<Program>> running_;  // by job UID
  std::map<std::string, Obeyed> obeyed_;                 // by node, when it was last looked at
  std::map<std::string, Time> unsliced_at_;              // by node: when everything ran there last
  std::map<std::string, Overlaps> overlaps_;             // by node
  std::map<std::string, Debugged> debugged_;             // by pod's UID
  std::map<std::pair<std::string, bool>, Closed> closed_;  // by node and whether by a taint
  std::map<std::string, Time> cordoned_until_;             // by node; Time::max(): it still is
  std::map<std::string, Time> streaks_;
  std::set<std::string> seen_streaks_;
  bool operator_is_well_ = false;     // at the present sample
  bool may_be_builtin_ = false;       // schedulerType
  Time last_start_at_{0};             // of any job
  std::set<std::string> started_on_;  // nodes of starts since the last sample
  std::set<std::string> ended_by_user_, deleted_by_user_, requeued_by_user_;
  std::map<std::string, std::set<std::string>> fates_;  // by name, of all Jobs that had it
  std::set<std::string> suffered_;
  std::set<std::string> lost_pods_;
  std::set<std::string> ran_;  // pods whose program was started, by UID
  std::vector<Cleaned> cleaned_;
  // Since when a leader has known a pod, by UID and version, that is stored in a newer one.
  std::map<std::pair<std::string, std::string>, Time> outdated_;
  Time starts_are_unsliced_until_{-1};
  Time restored_at_{-std::chrono::hours{1}};
  Time faults_until_{0};
  Time clock_steps_{0};  // of operators, all together
  Time lease_seen_at_{0};
  std::string lease_renewed_;
};

}  // namespace simulation
