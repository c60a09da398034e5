// Quirks: what Slurm 22.05 was recorded to do where this scheduler decides otherwise on purpose
// (docs/design/differences.md). All are off in production; replays of recordings and scenarios that
// ask for Slurm 22.05 turn all of them on. Each is one rule of docs/design/slurm-semantics.md,
// which stands beside it, and can be turned on alone.
#pragma once

#include <array>
#include <string_view>

namespace sched {

struct Quirks {
  // --- what users do ---
  // 13.2: the release of a waiting job that is not held gives it the lowest priority so far.
  bool release_reorders = false;
  // 13.2, T11: a hold and a suspend are one priority 0, so a release ends both.
  bool release_ends_suspends = false;
  // P3: a resume lets the job run at once, over others.
  bool resume_runs_over_others = false;
  // 13.6: a job without a limit has the DefaultTime of the first partition that it names.
  bool limit_of_first_partition = false;
  // 13.4: a task that is split off has the place of its array in the job table, and the array goes
  // to the end of it.
  bool arrays_go_to_the_end = false;

  // --- fair share ---
  // R9.4: time in suspension is charged as usage.
  bool suspended_time_is_charged = false;
  // 9: accounts of equal levels are ranked one after the other, and not merged.
  bool tied_accounts_rank_apart = false;

  // --- turns ---
  // P1: whether a list is turned follows from the counts alone, and a tick fills no hole.
  bool turns_by_counts = false;
  // P17: a job is killed if any shadow lies over its partition, also when it is stopped once more.
  bool any_shadow_kills = false;

  // --- preemption ---
  // C9: preempt/qos with SUSPEND is accepted under select/linear.
  bool linear_suspends_by_qos = false;
  // 7.8: a victim with a grace time is given notice, and ended by a later pass or check.
  bool grace_is_a_notice = false;
  // P14: no nodes are kept for a job that waits for its victims.
  bool preemptor_claims_nothing = false;
  // P21: with sched/builtin such a job is passed over until the next estimates.
  bool fifo_passes_preemptors_over = false;
  // R6.31: PreemptExemptTime does not protect jobs that are suspended.
  bool suspended_jobs_are_not_exempt = false;
  // P12: the mode of the first candidate decides whether victims are suspended or ended by QOS.
  bool first_candidate_decides = false;

  // --- choice of nodes ---
  // 4.5.2 test 2: a partition with PreemptMode=OFF stacks none of its own jobs.
  bool off_stacks_nothing = false;
  // P16: select/linear looks for mates among RUNNING jobs alone.
  bool mates_run = false;
  // 4.4.3: a node whose job its user has suspended is as good as an idle one.
  bool suspended_count_as_idle = false;
  // P5, R5.4: under select/linear a suspension gives back all memory of the job's nodes.
  bool suspension_frees_memory = false;
  // 3.6 step 4e: select/linear tries nodes of one weight and another kind apart.
  bool kinds_are_tried_apart = false;
  // R8.3: in a look ahead a node of select/linear with one running job counts as free.
  bool one_running_job_counts_as_none = false;

  // --- backfill and estimates ---
  // 8.1 n: bf_max_job_test counts the jobs for which there were nodes enough free of promises.
  bool tests_count_with_nodes = false;
  // 8.1 m: a job that backfill starts keeps its least time limit.
  bool least_limit_is_kept = false;
  // R8.3: a job is expected at the end of the last of the jobs that end about then.
  bool ends_come_in_batches = false;
  // R8.3: a job without a limit ends a year after its start, whatever its turns are.
  bool unlimited_ends_by_the_clock = false;
  // 8.3: sched/builtin puts a job off to the end of the job before it, whichever nodes that has.
  bool estimates_follow_the_last = false;
  // 8.3 d: the estimates of sched/builtin count every node.
  bool estimates_use_all_nodes = false;
  // 8.3 e: they follow QOS and priority also where jobs start in the order of the job table.
  bool estimates_go_by_priority = false;
  // 8.3: they look at one job more than the key says.
  bool estimates_take_one_more = false;

  // The ways to answer earlier are off: they rely on "more free nodes are never worse", which some
  // of these break.
  bool any() const { return *this != Quirks{}; }
  static constexpr Quirks slurm_22_05();
  friend bool operator==(const Quirks&, const Quirks&) = default;
};

struct QuirkEntry {
  std::string_view name;
  bool Quirks::*flag;
};

// All of them, by name.
inline constexpr auto kQuirks = std::to_array<QuirkEntry>({
    {"release_reorders", &Quirks::release_reorders},
    {"release_ends_suspends", &Quirks::release_ends_suspends},
    {"resume_runs_over_others", &Quirks::resume_runs_over_others},
    {"limit_of_first_partition", &Quirks::limit_of_first_partition},
    {"arrays_go_to_the_end", &Quirks::arrays_go_to_the_end},
    {"suspended_time_is_charged", &Quirks::suspended_time_is_charged},
    {"tied_accounts_rank_apart", &Quirks::tied_accounts_rank_apart},
    {"turns_by_counts", &Quirks::turns_by_counts},
    {"any_shadow_kills", &Quirks::any_shadow_kills},
    {"linear_suspends_by_qos", &Quirks::linear_suspends_by_qos},
    {"grace_is_a_notice", &Quirks::grace_is_a_notice},
    {"preemptor_claims_nothing", &Quirks::preemptor_claims_nothing},
    {"fifo_passes_preemptors_over", &Quirks::fifo_passes_preemptors_over},
    {"suspended_jobs_are_not_exempt", &Quirks::suspended_jobs_are_not_exempt},
    {"first_candidate_decides", &Quirks::first_candidate_decides},
    {"off_stacks_nothing", &Quirks::off_stacks_nothing},
    {"mates_run", &Quirks::mates_run},
    {"suspended_count_as_idle", &Quirks::suspended_count_as_idle},
    {"suspension_frees_memory", &Quirks::suspension_frees_memory},
    {"kinds_are_tried_apart", &Quirks::kinds_are_tried_apart},
    {"one_running_job_counts_as_none", &Quirks::one_running_job_counts_as_none},
    {"tests_count_with_nodes", &Quirks::tests_count_with_nodes},
    {"least_limit_is_kept", &Quirks::least_limit_is_kept},
    {"ends_come_in_batches", &Quirks::ends_come_in_batches},
    {"unlimited_ends_by_the_clock", &Quirks::unlimited_ends_by_the_clock},
    {"estimates_follow_the_last", &Quirks::estimates_follow_the_last},
    {"estimates_use_all_nodes", &Quirks::estimates_use_all_nodes},
    {"estimates_go_by_priority", &Quirks::estimates_go_by_priority},
    {"estimates_take_one_more", &Quirks::estimates_take_one_more},
});
static_assert(sizeof(Quirks) == kQuirks.size() * sizeof(bool), "a quirk is missing in kQuirks");

constexpr Quirks Quirks::slurm_22_05() {
  Quirks all;
  for (const QuirkEntry& each : kQuirks) all.*each.flag = true;
  return all;
}

}  // namespace sched
