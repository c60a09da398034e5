// BackfillPass: a walk over the queue that lets jobs start behind others that wait, as long as
// those are not delayed (8.1). It works out for each job when and where it can start, given what
// the jobs before it were promised:
//
//   now     it starts, or its victims' ends are decided; the verdict is StartAttempt's, as it is in
//           the main pass, on the nodes that are not promised to others during the job's limit.
//   later   its nodes are promised to it from then on for as long as its limit.
//
// So a job that starts here holds no node that a job before it needs while it may run (R8.2). With
// bf_licenses the same holds for licenses; without it a job for which too few are free is passed
// over (R11.8).
//
// The work is done in steps, so that nothing else must wait for it: begin(), then step() until it
// returns true. Between two steps other events may come:
//   * Something takes promised nodes: a start that is not the pass's own, a claim, a change of the
//     node. Promises that were made in view of them are wrong, and the pass ends early, unless
//     bf_continue is set.
//   * Records come into the queue. The next one is always the first of the queue that the pass has
//     not come to, so a job that goes first gets its promise before others start.
//   * Anything else: a job ends, is held or becomes ready. The promises can be kept, though the
//     next pass may promise something earlier.
//
// Simulations do not read plans. Then a pass ends as soon as no record behind can start
// now: all that is left of it would be promises. It starts the same jobs. Promises that
// are not made do not say when the next pass is due, either: until something changes, they could
// only be made again.
//
// Cost: O(records that no limit holds back, bf_max_job_test of them at most × (promises +
// Lookahead::will_run)); each step walks the queue up to where the pass is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "scheduler/backfill/license_plan.h"
#include "scheduler/backfill/lookahead.h"
#include "scheduler/backfill/node_calendar.h"
#include "scheduler/backfill/open_room.h"
#include "scheduler/jobs/job_books.h"
#include "scheduler/limits/time_limits.h"
#include "scheduler/pass/availability.h"
#include "scheduler/pass/main_pass.h"
#include "scheduler/pass/start_attempt.h"
#include "scheduler/queue/admission.h"

namespace sched {

class BackfillPass {
 public:
  // The arguments must outlive this object.
  BackfillPass(const Cluster& cluster, const NodeGroups& groups, JobBooks& books,
               const ResourceLimits& resource_limits, Admission& admission,
               const TimeLimits& limits, gang::Turns& turns, PassActions& actions)
      : cluster_{cluster},
        groups_{groups},
        books_{books},
        admission_{admission},
        limits_on_resources_{resource_limits},
        limits_{limits},
        actions_{actions},
        attempt_{cluster, groups, books, resource_limits},
        lookahead_{cluster, groups, books, turns} {
    books.on_begin([this](const Job& job) { begun(job); });
    books.on_less([this](const Allocation& nodes) { taken(nodes, base::kNever); });
  }
  BackfillPass(const BackfillPass&) = delete;
  BackfillPass& operator=(const BackfillPass&) = delete;

  // Plans are not reported from now on (simulations). REQUIRES: no pass has begun yet.
  void tell_no_plans() { tells_plans_ = false; }

  void begin(base::Instant now);
  bool active() const { return plan_.has_value(); }
  // Tries the next `records` records of the queue at most; one that a limit holds back counts for
  // little. Returns true if the pass has ended. REQUIRES: active().
  bool step(base::Instant now, int records);

  // Returns until when a pass over the same state would find the same: version() of the books when
  // the last pass ended, and an instant.
  std::uint64_t passed_version() const { return passed_version_; }
  base::Instant passed_until() const { return passed_until_; }
  // Returns the jobs and tasks that passes have started.
  std::int64_t starts() const { return starts_; }
  // For another pass of the same kind of scheduler. REQUIRES: not active(), as long as it is used.
  Lookahead& lookahead() { return lookahead_; }

 private:
  struct Record {
    JobId job;
    PartitionIndex partition;
  };
  // A pass under way.
  struct Plan {
    Plan(const Cluster& cluster, const JobBooks& books, base::Instant begun,
         base::Instant window_end)
        : now{begun}, calendar{cluster, books, window_end}, sweep{calendar}, end{window_end} {}

    base::Instant now;  // in whole seconds, as all instants of the plan are
    NodeCalendar calendar;
    bool has_claims = false;              // in the calendar, as they are now
    NodeCalendar::Sweep sweep;            // of the record that is tried
    std::optional<NodeSet> claimed;       // Lookahead::Question, likewise
    std::optional<LicensePlan> licenses;  // with bf_licenses
    base::Instant end;
    std::vector<Record> records;  // first those that the pass has come to
    std::size_t next = 0;
    bool has_all = false;                               // the queue has no other records
    std::set<std::pair<JobId, PartitionIndex>> passed;  // those that it has come to
    // Where plans are not reported: records from here on cannot start now; and the nodes on which
    // the one before can.
    std::size_t may_start = 0;
    std::optional<NodeSet> starts_on;
    // Each record may start again.
    void ask_all_again() {
      may_start = records.size();
      starts_on.reset();
    }
    int started = 0;
    int tried = 0;  // records for which nodes were looked for
    std::map<PartitionIndex, int> tried_in, promised_in;
    std::map<std::string, int> tried_of;
    std::map<std::pair<std::string, PartitionIndex>, int> tried_of_in;
    std::map<JobId, Job::Plan> expected;  // of each job that has a promise, the earliest one
    std::uint64_t version = 0;            // of the books, when the pass last looked at them
    std::uint64_t configuration = 0;      // of the cluster: what a rank and a partition are
    base::Instant valid_until = base::kNever;
    bool complete = true;
    bool is_wrong = false;   // promised nodes were taken meanwhile
    bool cut_short = false;  // for that
  };
  // A record that is tried.
  struct Try {
    Job& job;
    PartitionIndex partition;
    base::Duration limit{};       // that the plan assumes
    base::Duration full_limit{};  // that it asked for
    bool now_only = false;
  };

  bool finish();
  void begun(const Job& job);
  void taken(const Allocation& nodes, base::Instant until);
  bool fetch();
  bool walk(base::Instant now, int records);
  void tell_plans();
  // Returns false if the pass must end here.
  bool try_record(const Record& record, base::Instant now);
  bool try_one(const Record& record, base::Instant now);
  int tasks_to_promise(const Job& array) const;
  void set_limits(Try& tried, base::Instant now) const;
  bool equal_requests_start_alike() const;
  bool may_end_early() const;
  bool is_special(const Job& job, PartitionIndex partition, base::Instant now) const;
  Lookahead::Answer ask(const Try& tried, const NodeSet& nodes, std::optional<base::Instant> until);
  bool may_start_more(base::Instant now);
  bool can_start(const Record& record, base::Instant now);
  bool count_try(const Job& job, PartitionIndex partition);
  bool held_back(const Job& job, PartitionIndex partition) const;
  bool plans_licenses_of(const Job& job) const;
  bool gets_no_promise(const Job& job, PartitionIndex partition, base::Instant now) const;
  bool place(const Try& tried, base::Instant now);
  NodeCalendar::Who who(const Try& tried) const;
  bool preempt_mode_is_set() const;
  void begin_sweep(const Try& tried, base::Instant now);
  std::optional<base::Instant> with_licenses(const Try& tried,
                                             std::optional<base::Instant> from) const;
  enum class Started { kYes, kNo, kSkipped };
  Started start_now(const Try& tried, const NodeSet& nodes, base::Instant now);
  void limit_to_promises(const Try& tried, Fits& fits) const;
  bool promise(const Try& tried, const NodeSet& nodes, base::Instant start);
  void plan_licenses();
  void promise_running_jobs();
  void promise_running(const Job& job);
  int space_size() const;
  bool goes_on() const;  // no limit of the pass is reached
  base::Instant round_down(base::Instant at) const;
  base::Instant round_up(base::Instant at) const;

  const Cluster& cluster_;
  const NodeGroups& groups_;
  JobBooks& books_;
  Admission& admission_;
  const ResourceLimits& limits_on_resources_;
  const TimeLimits& limits_;
  PassActions& actions_;
  StartAttempt attempt_;
  Lookahead lookahead_;
  std::optional<Plan> plan_;
  std::set<JobId> planned_;  // jobs with a reported plan; some no longer have one
  bool tells_plans_ = true;
  bool stepping_ = false;  // what happens is the pass's own doing
  std::int64_t starts_ = 0;
  std::uint64_t passed_version_ = 0;
  base::Instant passed_until_{};
};

}  // namespace sched
