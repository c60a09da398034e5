#include "scheduler/testing/random_world.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "scheduler/model/legality.h"
#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

int pick(base::Prng& prng, int bound) {
  return static_cast<int>(prng.below(static_cast<std::uint64_t>(bound)));
}
bool chance(base::Prng& prng, int one_in) {
  return pick(prng, one_in) == 0;
}

template <typename T, std::size_t N>
T any(base::Prng& prng, const std::array<T, N>& values) {
  return values[static_cast<std::size_t>(pick(prng, static_cast<int>(N)))];
}

// Any legal combination of PreemptType and PreemptMode (1.6): SUSPEND needs GANG, and not
// preempt/qos under select/linear (C1, C9); WITHIN and PRIORITY exclude GANG (C5).
void randomise_preemption(base::Prng& prng, ClusterParameters& cluster) {
  cluster.gang = !chance(prng, 4);
  cluster.preempt_type = any(prng, std::array{PreemptType::kNone, PreemptType::kPartitionPriority,
                                              PreemptType::kPartitionPriority, PreemptType::kQos});
  cluster.preempt_mode = PreemptMode::kOff;
  cluster.preempt_within = cluster.preempt_priority = false;
  if (cluster.preempt_type == PreemptType::kNone) return;
  const bool may_suspend = cluster.gang && (cluster.preempt_type != PreemptType::kQos ||
                                            cluster.select == SelectType::kConsTres);
  cluster.preempt_mode = may_suspend && chance(prng, 2)
                             ? PreemptMode::kSuspend
                             : any(prng, std::array{PreemptMode::kCancel, PreemptMode::kRequeue});
  if (!cluster.gang) {
    cluster.preempt_priority = chance(prng, 4);
    cluster.preempt_within = cluster.preempt_type == PreemptType::kQos && chance(prng, 2);
  }
  cluster.preempt_exempt_time.reset();
  if (chance(prng, 4)) cluster.preempt_exempt_time = seconds(40);
  cluster.preempt.reorder_count = pick(prng, 3);
  cluster.preempt.strict_order = chance(prng, 4);
  cluster.preempt.youngest_first = chance(prng, 4);
  cluster.placement =
      chance(prng, 4) ? PlacementPolicy::kMinimisePreemption : PlacementPolicy::kCompat;
}

// Overlapping partitions of a few tiers, most of them FORCE, with every other setting now and then:
// rare settings meet each other in some worlds, and do not hide the usual ones in most.
PartitionConfig random_partition(base::Prng& prng, const RandomWorld& world, int number) {
  const ClusterParameters& cluster = world.configuration.cluster;
  // Three of four nodes, so that partitions overlap in part and each has nodes of its own now and
  // then.
  std::vector<NodeSpec> some;
  for (const NodeSpec& spec : world.nodes) {
    if (pick(prng, 4) > 0) some.push_back(spec);
  }
  if (some.empty()) some = world.nodes;
  const OverSubscribe mode =
      any(prng, std::array{OverSubscribe::kForce, OverSubscribe::kForce, OverSubscribe::kForce,
                           OverSubscribe::kYes, OverSubscribe::kNo, OverSubscribe::kExclusive});
  const int share = 1 + pick(prng, 4);
  const auto tier = static_cast<std::uint16_t>(1 + pick(prng, 3));
  PartitionConfig p = partition("p" + std::to_string(number), some, mode, share, tier);
  // Requests without a partition go to the first.
  p.is_default = number == 0;
  p.exclusive_user = chance(prng, 10);
  if (cluster.preempt_type == PreemptType::kPartitionPriority && chance(prng, 4)) {
    p.preempt_mode =
        any(prng, std::array{PreemptMode::kOff, PreemptMode::kCancel, PreemptMode::kRequeue});
    // A partition's own SUSPEND is legal with gang alone (C8).
    if (cluster.gang && chance(prng, 3)) p.preempt_mode = PreemptMode::kSuspend;
  }
  if (chance(prng, 4)) p.grace_time = seconds(20);
  if (chance(prng, 8)) p.max_nodes = 2;
  if (chance(prng, 8)) p.max_time = seconds(600);
  if (chance(prng, 10)) p.least_loaded = true;
  if (chance(prng, 12)) p.max_cpus_per_node = 3;
  if (chance(prng, 12)) {
    p.state = any(
        prng, std::array{PartitionState::kDown, PartitionState::kDrain, PartitionState::kInactive});
  }
  return p;
}

// Three QOS, each of which may preempt those before it. With gang there is neither WITHIN (C5) nor
// a mode of their own that suspends: the cluster's mode does that where it is legal.
void randomise_qos(base::Prng& prng, Configuration& c) {
  c.qos.clear();
  std::vector<std::string> lower;
  for (const char* name : {"low", "normal", "high"}) {
    QosConfig qos;
    qos.name = name;
    qos.priority = static_cast<std::uint32_t>(10 * c.qos.size());
    if (!chance(prng, 3)) qos.preempt = lower;
    if (c.cluster.preempt_type == PreemptType::kQos && chance(prng, 4)) {
      qos.preempt_mode = any(prng, std::array{PreemptMode::kCancel, PreemptMode::kRequeue});
    }
    if (chance(prng, 4)) qos.preempt_exempt_time = seconds(30);
    if (chance(prng, 4)) qos.grace_time = seconds(15);
    if (chance(prng, 6)) qos.limits.user_jobs = 2;
    qos.preempt_within =
        !c.cluster.gang && c.cluster.preempt_type == PreemptType::kQos && chance(prng, 4);
    lower.push_back(name);
    c.qos.push_back(std::move(qos));
  }
}

// Slices and leads are both longer and shorter than each other, since that decides when changes are
// published.
void randomise_rest(base::Prng& prng, ClusterParameters& cluster) {
  cluster.time_slice = seconds(any(prng, std::array{5.0, 7.0, 30.0}));
  cluster.timetable_lead = seconds(any(prng, std::array{0.0, 3.0, 12.0}));
  cluster.queue.complete_wait = seconds(any(prng, std::array{0.0, 0.0, 0.0, 5.0}));
  cluster.queue.requeue_delay = seconds(any(prng, std::array{0.0, 10.0}));
  if (chance(prng, 4)) cluster.over_time_limit = seconds(60);
  BackfillParameters& backfill = cluster.backfill;
  backfill.interval = seconds(any(prng, std::array{-1.0, 5.0, 30.0}));
  // Resolutions of a second and of a minute: with the latter, ends are rounded and promises overlap
  // more often.
  backfill.resolution = seconds(any(prng, std::array{1.0, 60.0}));
  backfill.window = seconds(any(prng, std::array{300.0, 86'400.0}));
  backfill.continues = chance(prng, 2);
  backfill.busy_nodes = chance(prng, 4);
  backfill.running_job_reserve = chance(prng, 4);
  if (chance(prng, 4)) backfill.min_age_reserve = seconds(20);
  if (chance(prng, 8)) backfill.max_job_test = 3;
}

// Two accounts with limits, of which each user has one; or none.
void randomise_accounts(base::Prng& prng, Configuration& c) {
  if (chance(prng, 2)) return;
  c.accounts = {{.name = "lab"}, {.name = "guests"}};
  c.users = {{.name = "ann", .account = "lab"}, {.name = "bob", .account = "guests"}};
  if (chance(prng, 2)) c.accounts[1].limits.group_jobs = 2;
  if (chance(prng, 2)) c.users[0].limits.user_jobs = 3;
}

// Weighs everything now and then. Periods, ages and half-lives are about as long as the gaps
// between events.
void randomise_priorities(base::Prng& prng, Configuration& c) {
  PriorityParameters& priority = c.cluster.priority;
  priority.type = PriorityType::kMultifactor;
  for (std::uint32_t* weight :
       {&priority.weight_age, &priority.weight_assoc, &priority.weight_fair_share,
        &priority.weight_job_size, &priority.weight_partition, &priority.weight_qos}) {
    *weight = chance(prng, 2) ? 1'000 : 0;
  }
  priority.max_age = seconds(any(prng, std::array{100.0, 1'000.0}));
  priority.decay_half_life = seconds(any(prng, std::array{0.0, 100.0, 10'000.0}));
  priority.calc_period = seconds(any(prng, std::array{20.0, 60.0}));
  for (bool* flag : {&priority.favor_small, &priority.accrue_always, &priority.calculate_running,
                     &priority.increase_only, &priority.max_tres}) {
    *flag = chance(prng, 3);
  }
  priority.fair_tree = !chance(prng, 3);
}

// Sets a request's times and its place in the queue. The nice values are larger than the
// number of jobs in any test, so that jobs of one value are in the order of their submission.
void randomise_wishes(base::Prng& prng, JobRequest& request, const RandomWorld& world,
                      base::Instant now) {
  if (chance(prng, 12)) request.suspend = true;
  if (chance(prng, 8)) request.nice = any(prng, std::array{-10'000, 1'000, 1'000'000});
  if (chance(prng, 10)) request.begin_time = now + seconds(pick(prng, 100));
  if (chance(prng, 10)) request.deadline = now + seconds(20 + pick(prng, 600));
  if (request.time_limit && chance(prng, 2)) request.time_min = seconds(20);
  if (chance(prng, 12)) request.excluded_nodes = {world.nodes.front().name};
  if (chance(prng, 4)) request.account = any(prng, std::array{"lab", "guests"});
}

void randomise_licenses(base::Prng& prng, ClusterParameters& cluster) {
  cluster.licenses = {{"bar", pick(prng, 3)}, {"foo", 1 + pick(prng, 3)}};
  cluster.backfill.licenses = chance(prng, 2);
  cluster.preempt.reclaim_licenses = chance(prng, 2);
}

// Sets rare wishes about the layout of tasks and the choice of nodes: one or two of these now and
// then.
void randomise_layout(base::Prng& prng, JobRequest& request, const RandomWorld& world) {
  while (chance(prng, 4)) {
    switch (pick(prng, 14)) {
      case 0:
        request.tasks_per_socket = 1 + pick(prng, 2);
        break;
      case 1:
        request.tasks_per_core = 1;
        break;
      case 2:
        request.min_cpus_per_node = 1 + pick(prng, 3);
        break;
      case 3:
        request.sockets_per_node = 1 + pick(prng, 2);
        break;
      case 4:
        request.cores_per_socket = 1 + pick(prng, 3);
        break;
      case 5:
        request.threads_per_core = 1;
        break;
      case 6:
        request.overcommit = true;
        break;
      case 7:
        request.use_min_nodes = true;
        request.max_nodes = request.min_nodes + 1;
        break;
      case 8:
        request.tmp_disk = MemoryMiB{500};
        break;
      case 9:
        request.unusable_nodes =
            std::make_shared<const std::vector<std::string>>(std::vector{world.nodes.back().name});
        break;
      case 10:
        request.pod_per_task = true;
        break;
      case 11:
        request.constraint = any(prng, std::array{"fast|slow", "[fast|slow]", "fast*1"});
        break;
      case 12:  // -n alone
        request.tasks = request.min_nodes * (1 + pick(prng, 3));
        request.min_nodes = 1;
        request.max_nodes.reset();
        request.nodes_given = false;
        break;
      default:  // -N2-, or so
        request.max_nodes.reset();
        break;
    }
  }
}

// The operator refuses what is illegal, so the scheduler is never told it.
void check_legal(const Configuration& configuration) {
  for (const ConfigIssue& issue : check(configuration)) {
    CHECK(issue.severity != IssueSeverity::kError, issue.rule + " " + issue.message);
  }
}

}  // namespace

// Two to five nodes of one shape: small enough that jobs meet on every core.
RandomWorld random_world(base::Prng& prng, SelectType select, PriorityType priority) {
  RandomWorld world;
  const int sockets = 1 + pick(prng, 2);
  const int cores = 2 + pick(prng, 2);
  const int threads = select == SelectType::kConsTres && chance(prng, 4) ? 2 : 1;
  const bool weights = chance(prng, 4);
  const bool devices = chance(prng, 3);
  for (NodeSpec& spec : world.nodes = nodes("n", 1, 2 + pick(prng, 4))) {
    spec.sockets = sockets;
    spec.cores_per_socket = cores;
    spec.threads_per_core = threads;
    spec.cpus = sockets * cores * threads;
    spec.memory = MemoryMiB{4000};
    if (weights) spec.weight = static_cast<std::uint32_t>(1 + pick(prng, 3));
    if (chance(prng, 3)) spec.features = {"fast"};
    if (devices) add_devices(spec.devices, {"gpu", "a"}, pick(prng, 3));
    if (devices) add_devices(spec.devices, {"gpu", "b"}, pick(prng, 2));
    if (chance(prng, 3)) spec.tmp_disk = MemoryMiB{1000};
    if (chance(prng, 8)) spec.pods_max = 3;
  }
  ClusterParameters& cluster = world.configuration.cluster;
  cluster.select = select;
  cluster.unit = any(prng, std::array{SelectUnit::kCore, SelectUnit::kCore, SelectUnit::kCpu,
                                      SelectUnit::kSocket});
  // Without a default most jobs are charged all memory of their nodes (R5.3), and none can be
  // stacked.
  cluster.memory = chance(prng, 2);
  if (!chance(prng, 4)) cluster.default_memory.per_cpu = MemoryMiB{200};
  cluster.task_affinity = chance(prng, 2);
  if (chance(prng, 3)) randomise_licenses(prng, cluster);
  randomise_preemption(prng, cluster);
  randomise_rest(prng, cluster);
  const int partitions = 1 + pick(prng, 3);
  for (int i = 0; i < partitions; ++i) {
    world.configuration.partitions.push_back(random_partition(prng, world, i));
  }
  randomise_qos(prng, world.configuration);
  randomise_accounts(prng, world.configuration);
  if (priority == PriorityType::kMultifactor) randomise_priorities(prng, world.configuration);
  check_legal(world.configuration);
  return world;
}

// Requests that fit some nodes as a rule, each with a few of the settings that decide where a job
// goes.
JobRequest random_request(base::Prng& prng, JobId id, const RandomWorld& world, base::Instant now) {
  const auto& partitions = world.configuration.partitions;
  const PartitionConfig& p =
      partitions[static_cast<std::size_t>(pick(prng, static_cast<int>(partitions.size())))];
  const int most = static_cast<int>(p.nodes.size());
  JobRequest request = job(id.number(), 1 + pick(prng, most), p.name);
  if (chance(prng, 8)) request.max_nodes = request.min_nodes + 1;
  if (chance(prng, 12) && partitions.size() > 1) {
    request.partitions = {partitions[0].name, partitions[1].name};
  }
  request.name = any(prng, std::array{"", "", "fit"});
  request.user = chance(prng, 2) ? "ann" : "bob";
  if (!chance(prng, 3)) request.tasks = request.min_nodes * (1 + pick(prng, 3));
  if (chance(prng, 8)) request.cpus_per_task = 2;
  if (!request.tasks && chance(prng, 4)) request.tasks_per_node = 1 + pick(prng, 2);
  const std::array shares{Sharing::kOverSubscribe, Sharing::kOverSubscribe, Sharing::kNode,
                          Sharing::kUser};
  if (chance(prng, 3)) request.sharing = any(prng, shares);
  if (chance(prng, 4)) request.memory = MemoryPerCpu{MemoryMiB{300}};
  // 0 asks for all memory of a node, which must be free of other jobs (1.8 step 1).
  if (chance(prng, 8)) request.memory = MemoryPerNode{MemoryMiB{chance(prng, 2) ? 1500 : 0}};
  const bool devices = std::any_of(world.nodes.begin(), world.nodes.end(),
                                   [](const NodeSpec& node) { return !node.devices.empty(); });
  if (devices && chance(prng, 2)) {
    const std::array ways{&JobRequest::devices, &JobRequest::devices_of_job,
                          &JobRequest::devices_per_task, &JobRequest::devices_per_socket};
    add_devices(request.*any(prng, ways), {"gpu", chance(prng, 2) ? "" : "a"}, 1 + pick(prng, 2));
    if (chance(prng, 4)) request.per_gpu.cpus = 1 + pick(prng, 2);
    if (chance(prng, 4)) request.per_gpu.memory = MemoryMiB{300};
    if (chance(prng, 8)) request.per_gpu.tasks = 1;
  }
  if (!world.configuration.cluster.licenses.empty() && chance(prng, 2)) {
    request.licenses[chance(prng, 3) ? "bar" : "foo"] = 1 + pick(prng, 2);
  }
  if (chance(prng, 10)) request.constraint = "fast";
  if (chance(prng, 16)) request.contiguous = true;
  if (chance(prng, 10))
    request.required_nodes = {p.nodes[static_cast<std::size_t>(pick(prng, most))]};
  // A minute, so that some jobs reach their limits within a run.
  if (chance(prng, 6)) request.time_limit = seconds(60);
  if (chance(prng, 4)) request.requeue = chance(prng, 4);
  if (chance(prng, 12)) request.hold = true;
  if (!chance(prng, 3)) request.qos = any(prng, std::array{"low", "normal", "high"});
  if (chance(prng, 8)) request.priority = Priority{static_cast<std::uint32_t>(1 + pick(prng, 100))};
  randomise_wishes(prng, request, world, now);
  randomise_layout(prng, request, world);
  return request;
}

// Every third job waits for some of those before it, known or unknown.
JobRequest random_submission(base::Prng& prng, JobId id, const RandomWorld& world,
                             base::Instant now, bool delays) {
  JobRequest request = random_request(prng, id, world, now);
  request.submit_time = now;
  if (id.number() % 4 == 0) {
    ArrayRequest& array = request.array.emplace();
    array.tasks.insert(pick(prng, 2), 1 + pick(prng, 5), 1 + pick(prng, 2));
    if (chance(prng, 3)) array.at_once = 1 + pick(prng, 2);
    if (chance(prng, 4)) array.begun_most = 1 + pick(prng, 3);
  }
  Dependency& asked = request.dependency;
  asked.any = chance(prng, 3);
  if (!chance(prng, 3)) asked.kill_invalid = chance(prng, 2);
  for (int i = chance(prng, 3) ? 1 + pick(prng, 3) : 0; i > 0; --i) {
    DependencyTerm& term = asked.terms.emplace_back();
    term.kind = static_cast<DependencyKind>(pick(prng, 6));
    if (term.kind == DependencyKind::kSingleton) continue;
    term.job = JobId{std::max<std::int64_t>(1, id.number() - 1 - pick(prng, 8))};
    if (term.kind != DependencyKind::kAfterCorr && chance(prng, 4)) {
      term.job = JobId::of_task(term.job, pick(prng, 6));
    }
    if (delays && term.kind == DependencyKind::kAfter && chance(prng, 2)) term.delay = seconds(60);
  }
  return request;
}

// Makes one change as an administrator makes it, applied while jobs wait and run.
Configuration random_change(base::Prng& prng, const RandomWorld& world) {
  RandomWorld changed = world;
  Configuration& c = changed.configuration;
  if (!c.cluster.licenses.empty() && chance(prng, 4)) randomise_licenses(prng, c.cluster);
  switch (pick(prng, 6)) {
    case 0: {  // preemption, and with it everything that has to go with it
      randomise_preemption(prng, c.cluster);
      randomise_qos(prng, c);
      for (PartitionConfig& each : c.partitions) each.preempt_mode.reset();
      break;
    }
    // Slices, the lead, the times of backfill.
    case 1:
      randomise_rest(prng, c.cluster);
      break;
    // The last partition goes, and its jobs run on without one.
    case 2:
      if (c.partitions.size() > 1) {
        c.partitions.pop_back();
        break;
      }
      [[fallthrough]];
    // One partition more.
    case 3:
      if (c.partitions.size() < 3) {
        c.partitions.push_back(
            random_partition(prng, changed, static_cast<int>(c.partitions.size())));
      }
      break;
    // A partition is another one under its old name.
    default: {
      auto& each =
          c.partitions[static_cast<std::size_t>(pick(prng, static_cast<int>(c.partitions.size())))];
      const int number = each.name.back() - '0';
      each = random_partition(prng, changed, number);
      break;
    }
  }
  check_legal(c);
  return c;
}

// Down and drained nodes keep their jobs: what becomes of these, the test tells by other events.
NodeSpec random_change(base::Prng& prng, NodeSpec node) {
  node.state =
      any(prng, std::array{NodeState::kUp, NodeState::kUp, NodeState::kDrain, NodeState::kDown});
  if (chance(prng, 4)) node.memory += MemoryMiB{100};
  return node;
}

}  // namespace sched::testing
