#include "scheduler/testing/watch.h"

#include <algorithm>
#include <set>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {
namespace {

// Without a number of nodes there are as many as the tasks need.
int most_nodes(const JobRequest& request) {
  const int by_tasks = request.nodes_given ? 0 : request.tasks.value_or(0);
  return std::max({request.min_nodes, request.max_nodes.value_or(0), by_tasks});
}

}  // namespace

bool Watch::Book::avoids_on(const std::string& node, base::Instant now) const {
  return now < avoids_until && std::find(avoids.begin(), avoids.end(), node) != avoids.end();
}

// Findings are collected instead of asserted, so that a test prints all of one step at once.
void Watch::find(JobId job, const std::string& what) {
  findings_ += "job " + to_string(job) + ": " + what + "\n";
}

// Null for a partition that has been removed; its jobs run on.
const PartitionConfig* Watch::partition(const std::string& name) const {
  for (const PartitionConfig& each : configuration_.partitions) {
    if (each.name == name) return &each;
  }
  return nullptr;
}

std::vector<const PartitionConfig*> Watch::partitions_of(const JobRequest& request) const {
  std::vector<const PartitionConfig*> all;
  for (const std::string& name : request.partitions) {
    if (const auto* each = partition(name)) all.push_back(each);
  }
  return all;
}

// A task of an array is a job of its own as soon as anything is reported of it, or it is seen.
std::map<JobId, Watch::Book>::iterator Watch::book_of(JobId id) {
  const auto at = books_.find(id);
  if (at != books_.end() || !id.is_task()) return at;
  const auto array = books_.find(id.array());
  if (array == books_.end() || !array->second.waiting.contains(*id.task())) return at;
  array->second.waiting.erase(*id.task());
  Book book{.request = array->second.request, .unknown = array->second.unknown};
  book.request.array.reset();
  return books_.emplace(id, std::move(book)).first;
}

bool Watch::is_known(JobId id) const {
  if (books_.contains(id) || ended_.contains(id)) return true;
  const auto array = books_.find(id.array());
  return id.is_task() && array != books_.end() && array->second.waiting.contains(*id.task());
}

std::vector<JobId> Watch::own_tasks(JobId array) const {
  std::vector<JobId> tasks;
  for (auto at = books_.upper_bound(array); at != books_.end() && at->first.array() == array;
       ++at) {
    tasks.push_back(at->first);
  }
  return tasks;
}

// The tasks that wait are over, and the array if no others are left.
void Watch::end_array(JobId id, JobState state) {
  Book& book = books_.at(id);
  book.waiting.each([&](int task) { ended_.emplace(JobId::of_task(id, task), state); });
  book.waiting = {};
  if (!own_tasks(id).empty()) return;
  ended_.emplace(id, state);
  books_.erase(id);
}

// The watch's books follow from the scheduler's events and decisions, and from nothing that it says
// about itself. Events that only a decision makes true (a start, an end) are taken from the
// decision.
void Watch::on_event(base::Instant now, const Event& event) {
  if (const auto* configure = std::get_if<Configure>(&event)) {
    configuration_ = *configure->configuration;
  } else if (const auto* node = std::get_if<NodeUpdate>(&event)) {
    nodes_[node->node.name] = node->node;
  } else if (const auto* submit = std::get_if<Submit>(&event)) {
    Book& book = books_[submit->request.id];
    book = {.request = submit->request};
    for (const DependencyTerm& term : submit->request.dependency.terms) {
      if (!is_known(term.job)) book.unknown.insert(term.job);
    }
    if (submit->request.array) {
      book.waiting = submit->request.array->tasks;
      arrays_.emplace(submit->request.id, book.waiting);
    }
  } else if (const auto* update = std::get_if<Update>(&event)) {
    const auto book = book_of(update->request.id);
    if (book == books_.end()) return;
    const auto array = book->second.request.array;
    std::vector<JobId> all{update->request.id};
    if (array) all = own_tasks(all.front());
    const auto change = [&](Book& each) {
      if (each.request.dependency != update->request.dependency) {
        each.unknown.clear();
        for (const DependencyTerm& term : update->request.dependency.terms) {
          if (!is_known(term.job)) each.unknown.insert(term.job);
        }
      }
      each.request = update->request;
    };
    for (const JobId id : all) {
      if (!books_.at(id).allocation) change(books_.at(id));
    }
    if (!array) return;
    change(book->second);
    book->second.request.array.emplace().tasks = array->tasks;
  } else if (const auto* ending = std::get_if<JobEnding>(&event)) {
    // An ending of a job without nodes is not one: it is passed over.
    const auto book = book_of(ending->job);
    if (book != books_.end()) book->second.ending = book->second.allocation.has_value();
  } else if (const auto* refused = std::get_if<StartRefused>(&event)) {
    const auto book = book_of(refused->job);
    // A job whose end was decided is gone with this.
    if (book != books_.end() && !book->second.told_to_end && !book->second.ending) {
      // Nodes are added to those of before while these count: a job that two full nodes refuse must
      // not be sent back and forth between them.
      std::vector<std::string>& avoids = book->second.avoids;
      if (book->second.avoids_until <= now) avoids.clear();
      avoids.insert(avoids.end(), refused->avoid_nodes.begin(), refused->avoid_nodes.end());
      book->second.avoids_until = std::max(book->second.avoids_until, now + refused->avoid_for);
    }
  } else if (const auto* forget = std::get_if<Forget>(&event)) {
    if (book_of(forget->job) == books_.end()) return;
    if (books_.at(forget->job).request.array) {
      for (const JobId task : own_tasks(forget->job)) {
        ended_.emplace(task, JobState::kCancelled);
        books_.erase(task);
      }
      return end_array(forget->job, JobState::kCancelled);
    }
    books_.erase(forget->job);
    ended_.emplace(forget->job, JobState::kCancelled);
  }
}

std::vector<KnownJob> Watch::known_of(const JobRequest& request) const {
  std::vector<KnownJob> known;
  for (const DependencyTerm& term : request.dependency.terms) {
    const auto at = ended_.find(term.job);
    if (at != ended_.end()) known.push_back({.job = term.job, .state = at->second});
  }
  return known;
}

// A job starts for the first time only when its terms hold (13.1): all of them, or one. A term that
// was met once counts, whatever happened to the other job afterwards.
void Watch::check_dependency(const Start& start, const Book& book, base::Instant now) {
  const Dependency& asked = book.request.dependency;
  if (asked.terms.empty() || book.has_started) return;
  const auto holds = [&](const DependencyTerm& term) {
    if (book.unknown.contains(term.job)) return true;
    const auto end = ended_.find(term.job);
    const bool has_ended = end != ended_.end();
    const auto first = first_starts_.find(term.job);
    switch (term.kind) {
      case DependencyKind::kAfter:
        // For an array the last task is looked at; starts of tasks are not kept.
        if (arrays_.contains(term.job.array())) return true;
        return first == first_starts_.end() ? has_ended : first->second + term.delay <= now;
      case DependencyKind::kAfterAny:
        return has_ended;
      case DependencyKind::kAfterCorr: {
        const auto array = arrays_.find(term.job);
        if (array == arrays_.end() || !start.job.is_task()) {
          return has_ended && end->second == JobState::kCompleted;
        }
        const auto its = ended_.find(JobId::of_task(term.job, *start.job.task()));
        if (its != ended_.end()) return its->second == JobState::kCompleted;
        return !array->second.contains(*start.job.task());
      }
      case DependencyKind::kAfterOk:
        return has_ended && end->second == JobState::kCompleted;
      case DependencyKind::kAfterNotOk:
        return has_ended && end->second != JobState::kCompleted;
      case DependencyKind::kSingleton:
        // One that is not a singleton may have started since.
        return std::ranges::none_of(books_, [&](const auto& other) {
          const JobRequest& request = other.second.request;
          const bool is_same = request.user == book.request.user &&
                               request.name == book.request.name && other.first != start.job;
          const bool is_singleton =
              std::ranges::count(request.dependency.terms, DependencyKind::kSingleton,
                                 &DependencyTerm::kind) > 0;
          return is_same && is_singleton && !request.dependency.any && other.second.allocation;
        });
    }
    return false;
  };
  const bool may =
      asked.any ? std::ranges::any_of(asked.terms, holds) : std::ranges::all_of(asked.terms, holds);
  if (!may) find(start.job, "starts before what it waits for");
}

// Decisions of a job must fit together: one Start, at most one End for it, and none after its
// terminal state. A requeue keeps the request and the nodes that refused it, and forgets everything
// else.
void Watch::on_decisions(const std::vector<Decision>& decisions, base::Instant now) {
  for (const Decision& decision : decisions) {
    // A task about which anything is decided is not one of those that wait as the array.
    std::visit([&](const auto& each) { book_of(each.job); }, decision);
    if (const auto* start = std::get_if<Start>(&decision)) {
      check_start(*start, now);
    } else if (const auto* end = std::get_if<End>(&decision)) {
      Book& book = books_[end->job];
      // Only a cancel is decided over another ending.
      const bool twice = book.told_to_end && end->verdict != EndingVerdict::kCancelled;
      if (!book.allocation || twice) find(end->job, "is told to end twice, or nowhere");
      book.told_to_end = true;
    } else if (const auto* change = std::get_if<StateChange>(&decision)) {
      const auto book = book_of(change->job);
      if (book == books_.end()) {
        find(change->job, "changes after its end");
      } else if (book->second.request.array) {
        end_array(change->job, change->state);
      } else if (is_terminal(change->state)) {
        ended_.emplace(change->job, change->state);
        books_.erase(book);
      } else {
        book->second = {.request = book->second.request,
                        .avoids = book->second.avoids,
                        .avoids_until = book->second.avoids_until,
                        .unknown = book->second.unknown,
                        .has_started = book->second.has_started};
      }
    } else if (const auto* stop = std::get_if<Suspend>(&decision)) {
      // Only its user's suspend makes a job give its cores back (T10).
      const auto book = book_of(stop->job);
      if (stop->cause == Reason::kUser && book != books_.end()) book->second.cores_released = true;
    } else if (const auto* resume = std::get_if<Resume>(&decision)) {
      // A task may have gone on for an instant while its array was forgotten task by task.
      const auto book = book_of(resume->job);
      if (book != books_.end()) book->second.cores_released = false;
    } else if (const auto* refused = std::get_if<SubmitRefused>(&decision)) {
      if (scheduler_.job(refused->job, now)) find(refused->job, "is turned away and known");
      books_.erase(refused->job);
    } else if (const auto* command = std::get_if<CommandRefused>(&decision)) {
      if (!scheduler_.job(command->job, now)) find(command->job, "obeys no command and is unknown");
    }
  }
}

// An allocation is one that the request and the partition allow, with as many nodes as were asked
// for, each of them once.
void Watch::check_start(const Start& start, base::Instant now) {
  const auto found = book_of(start.job);
  if (found == books_.end() || found->second.allocation) return find(start.job, "starts twice");
  Book& book = found->second;
  check_dependency(start, book, now);
  book.has_started = true;
  first_starts_.emplace(start.job, now);
  const PartitionConfig* where = partition(scheduler_.partition_name(start.partition));
  if (where == nullptr) return find(start.job, "starts in no partition");
  // 1.2.1: a partition that drains starts what is queued in it.
  const bool allowed =
      where->state == PartitionState::kUp || where->state == PartitionState::kDrain;
  if (!allowed) find(start.job, "starts in a partition that is not up");
  const int count = static_cast<int>(start.allocation.nodes.size());
  if (count < book.request.min_nodes) find(start.job, "has fewer nodes than it asked for");
  if (book.request.max_nodes && count > *book.request.max_nodes)
    find(start.job, "has too many nodes");
  book.partition = where->name;
  std::set<NodeIndex> distinct;
  for (const NodeAllocation& use : start.allocation.nodes) {
    if (!distinct.insert(use.node).second) find(start.job, "has a node twice");
    check_node(start, book, *where, use, now);
  }
  book.allocation = start.allocation;
  // R11.6. An administrator may have lowered the counter, but then no more start.
  for (const auto& [name, asked] : book.request.licenses) {
    const int there_are = licenses_of(configuration_.cluster.licenses, name);
    if (asked > 0 && held_licenses(name) > there_are) {
      find(start.job, "gets more of license " + name + " than there are");
    }
  }
}

// Counts jobs with an allocation.
int Watch::held_licenses(const std::string& name) const {
  int held = 0;
  for (const auto& [id, book] : books_) {
    if (book.allocation) held += licenses_of(book.request.licenses, name);
  }
  return held;
}

// Jobs of a lower tier may be under it: the gang stops them.
bool Watch::is_victim_of(const Book& victim, const PartitionConfig& where) const {
  const PartitionConfig* its = partition(victim.partition);
  return its == nullptr || its->priority_tier < where.priority_tier;
}

// Checks that the node is one that the job may have: up, in the partition and not excluded, with
// the cores that it is given.
void Watch::check_may_use(const Start& start, const Book& book, const PartitionConfig& where,
                          const NodeAllocation& use, base::Instant now) {
  const std::string& name = scheduler_.node_name(use.node);
  const NodeSpec& spec = nodes_.at(name);
  if (spec.state != NodeState::kUp) find(start.job, name + " is not up");
  if (std::find(where.nodes.begin(), where.nodes.end(), name) == where.nodes.end()) {
    find(start.job, name + " is not of its partition");
  }
  const auto& excluded = book.request.excluded_nodes;
  if (std::find(excluded.begin(), excluded.end(), name) != excluded.end()) {
    find(start.job, name + " is excluded");
  }
  const auto& unusable = book.request.unusable_nodes;
  if (unusable != nullptr &&
      std::find(unusable->begin(), unusable->end(), name) != unusable->end()) {
    find(start.job, name + " is excluded, in a shared list");
  }
  if (book.avoids_on(name, now)) find(start.job, name + " has refused it a moment ago");
  if (!CoreSet::first(spec.cores()).contains(use.cores)) find(start.job, name + ": no such cores");
  if (use.cpus < 1 || use.cpus > spec.cpus) find(start.job, name + ": CPUs");
  if (book.request.tmp_disk > spec.tmp_disk) find(start.job, name + ": tmp");
}

// Checks what must hold on each node, worked out from the allocations alone: its memory and its
// places for pods suffice for all jobs there; no core has more jobs of the partition than its
// share; and users and exclusive partitions are alone.
void Watch::check_node(const Start& start, const Book& book, const PartitionConfig& where,
                       const NodeAllocation& use, base::Instant now) {
  check_may_use(start, book, where, use, now);
  const std::string& name = scheduler_.node_name(use.node);
  const NodeSpec& spec = nodes_.at(name);
  MemoryMiB memory = use.memory;
  int pods = pods_on(book.request, use);
  int most = 0;  // jobs of this partition on one of the cores
  // The other jobs on this node that hold their cores.
  std::vector<const Book*> others;
  for (const auto& [id, other] : books_) {
    if (!other.allocation || id == start.job) continue;
    for (const NodeAllocation& its : other.allocation->nodes) {
      if (its.node != use.node) continue;
      memory += its.memory;
      pods += pods_on(other.request, its);
      // A job that the start itself ends is still there (R6.30).
      const bool ends = other.told_to_end || other.ending;
      if (ends && scheduler_.job(id, now)->completing) find(start.job, name + " is completing");
      if (!other.cores_released) others.push_back(&other);
    }
  }
  if (configuration_.cluster.memory && memory > spec.memory) find(start.job, name + ": memory");
  if (spec.pods_max && pods > *spec.pods_max) find(start.job, name + ": pods");
  // Under select/linear a job has its nodes as a whole, whichever cores its allocation names, so
  // every job of the partition there counts.
  const bool linear = configuration_.cluster.select == SelectType::kLinear;
  for (int core = use.cores.next(0); core >= 0 && core < spec.cores();
       core = core + 1 < spec.cores() ? use.cores.next(core + 1) : -1) {
    int here = 1;
    for (const Book* other : others) {
      for (const NodeAllocation& its : other->allocation->nodes) {
        const bool same = its.node == use.node && (linear || its.cores.test(core));
        if (same && other->partition == where.name) ++here;
      }
    }
    most = std::max(most, here);
  }
  const bool stacks =
      where.over_subscribe == OverSubscribe::kForce || where.over_subscribe == OverSubscribe::kYes;
  const int share = stacks ? where.max_share : 1;
  // preempt/qos has one row more than jobs may share (I8).
  const int extra = configuration_.cluster.preempt_type == PreemptType::kQos ? 1 : 0;
  if (most > share + extra) find(start.job, name + ": " + std::to_string(most) + " jobs on a core");
  // Exclusive partitions and users keep equals away. Jobs of lower tiers may be under the new one:
  // where that is so, the gang stops them.
  for (const Book* other : others) {
    if (is_victim_of(*other, where)) continue;
    const PartitionConfig* its = partition(other->partition);
    const bool alone = where.over_subscribe == OverSubscribe::kExclusive;
    if (alone && its->priority_tier == where.priority_tier)
      find(start.job, name + " is not its alone");
    const bool own = where.exclusive_user || book.request.sharing == Sharing::kUser;
    if (own && other->request.user != book.request.user)
      find(start.job, name + " has another's job");
  }
}

// `passed`: a pass has seen the present state, so that every job that waits has a reason of it.
void Watch::check_jobs(base::Instant now, bool passed) {
  std::vector<JobId> got = scheduler_.jobs();
  for (const JobId id : got) book_of(id);
  std::vector<JobId> expected;
  for (const auto& [id, book] : books_) expected.push_back(id);
  std::sort(got.begin(), got.end());
  // Every job that was submitted and has not ended, and no other.
  if (got != expected) findings_ += "jobs are lost, or too many\n";
  for (const JobId id : got) {
    const auto view = scheduler_.job(id, now);
    const auto book = books_.find(id);
    if (book == books_.end()) continue;
    if (book->second.allocation.has_value() != (view->allocation != nullptr)) {
      find(id, "is allocated in one book only");
    }
    const bool waits = !book->second.request.array || !book->second.waiting.empty();
    if (book->second.request.array && view->facts->array->waiting != book->second.waiting) {
      find(id, "has other tasks that wait");
    }
    if (view->state == JobState::kPending && passed && waits) check_reason(id, *view, now);
  }
}

// The reason that a job waits for is one that its request and partitions allow (2.4).
void Watch::check_reason(JobId id, const JobView& view, base::Instant now) {
  const JobRequest& request = books_.at(id).request;
  const auto partitions = partitions_of(request);
  const auto some = [&](auto is) {
    return std::any_of(partitions.begin(), partitions.end(),
                       [&](const PartitionConfig* each) { return is(*each); });
  };
  const bool held = view.priority.value() == 0;
  const bool says_held =
      view.reason == Reason::kJobHeldUser || view.reason == Reason::kJobHeldAdmin ||
      view.reason == Reason::kJobHoldMaxRequeue || view.reason == Reason::kBadConstraints ||
      view.reason == Reason::kLaunchFailedRequeuedHeld;
  // A job that cannot run anywhere has a priority, for when it can.
  const bool impossible = view.reason == Reason::kBadConstraints;
  if (held != says_held && !impossible) find(id, "held and its reason disagree");
  // "If this is the reason, then that must be true": reasons are checked for being true, not for
  // being the only true one.
  const auto must = [&](Reason reason, bool true_now, const char* otherwise) {
    if (view.reason == reason && !true_now) find(id, otherwise);
  };
  // After a pass to the end of the queue no job is without a reason.
  must(Reason::kNone, false, "waits without a reason");
  must(Reason::kPartitionDown, some([](auto& p) { return p.state == PartitionState::kDown; }),
       "no partition of its is down");
  must(Reason::kPartitionInactive,
       partitions.size() < request.partitions.size() ||
           some([](auto& p) { return p.state == PartitionState::kInactive; }),
       "no partition of its is inactive");
  must(Reason::kPartitionTimeLimit,
       some([&](auto& p) { return p.max_time && request.time_limit > p.max_time; }),
       "no limit of time is in its way");
  const int most = most_nodes(request);
  must(Reason::kPartitionNodeLimit,
       some([&](auto& p) { return p.max_nodes && most > *p.max_nodes; }),
       "no limit of nodes is in its way");
  // It is kept while jobs ahead of it block the partition (R2.6), so they may be free by now.
  must(Reason::kLicenses, !request.licenses.empty(), "it asks for no licenses");
  // These worlds restrict no access by users and groups: what is left is more CPUs than there are.
  const auto cpus_of = [&](const PartitionConfig& p) {
    std::int64_t cpus = 0;
    for (const auto& [name, node] : nodes_) {
      if (std::ranges::find(p.nodes, name) != p.nodes.end()) cpus += node.cpus;
    }
    return cpus;
  };
  const std::int64_t asked =
      std::int64_t{tasks_of(request, request.min_nodes)} * request.cpus_per_task;
  must(Reason::kPartitionConfig, some([&](auto& p) { return asked > cpus_of(p); }),
       "all its partitions are open to it");
  // A job can wait for priority only if another one waits too.
  const auto waits = [&](const auto& other) {
    if (other.first == id || other.second.allocation) return false;
    const Reason its = scheduler_.job(other.first, now)->reason;
    const bool in_one_of_them = its == Reason::kReqNodeNotAvail || its == Reason::kBadConstraints;
    if (other.second.request.partitions.size() > 1 && in_one_of_them) return true;
    return its == Reason::kResources || its == Reason::kQosMaxJobsPerUserLimit ||
           its == Reason::kAssocMaxJobsLimit || its == Reason::kAssocGrpJobsLimit ||
           its == Reason::kPriority || its == Reason::kLicenses ||
           its == Reason::kJobArrayTaskLimit;
  };
  std::string others = "waits for nobody's turn:";
  for (const auto& [other, book] : books_) {
    const auto seen = scheduler_.job(other, now);
    others += " " + to_string(other) + " state " + std::to_string(static_cast<int>(seen->state)) +
              " reason " + std::to_string(static_cast<int>(seen->reason)) + ",";
  }
  const bool somebody = std::any_of(books_.begin(), books_.end(), waits);
  must(Reason::kPriority, somebody, others.c_str());
  if (view.reason == Reason::kResources) check_resources(id, now);
}

// The only job that waits, of a plain shape, has not enough nodes that are empty, up and its
// partition's.
void Watch::check_resources(JobId id, base::Instant now) {
  const JobRequest& request = books_.at(id).request;
  for (const auto& [other, book] : books_) {
    if (other != id && !book.allocation) return;
    if (other != id && scheduler_.job(other, now)->completing) return;
  }
  // A shape for which counting empty nodes is the whole truth: nothing else can be in its way.
  const std::string in = request.partitions.size() == 1 ? request.partitions.front() : "";
  JobRequest plain = job(0, request.min_nodes, in);
  plain.id = request.id;
  plain.user = request.user;
  plain.account = request.account;
  plain.submit_time = request.submit_time;
  plain.max_nodes = request.max_nodes;
  plain.tasks = request.tasks;
  plain.sharing = request.sharing;
  plain.time_limit = request.time_limit;
  plain.time_min = request.time_min;
  plain.begin_time = request.begin_time;
  plain.deadline = request.deadline;
  plain.qos = request.qos;
  plain.priority = request.priority;
  plain.nice = request.nice;
  plain.hold = request.hold;
  plain.suspend = request.suspend;
  plain.requeue = request.requeue;
  if (request != plain || request.tasks.value_or(0) > request.min_nodes) return;
  const PartitionConfig* where = partition(request.partitions.front());
  if (where == nullptr || where->max_cpus_per_node) return;
  int empty = 0;
  for (const std::string& name : where->nodes) {
    const auto spec = nodes_.find(name);
    if (spec == nodes_.end() || spec->second.state != NodeState::kUp) continue;
    if (books_.at(id).avoids_on(name, now)) continue;
    const auto index = scheduler_.find_node(name);
    const bool used = std::any_of(books_.begin(), books_.end(), [&](const auto& other) {
      const auto& allocation = other.second.allocation;
      return allocation &&
             std::any_of(allocation->nodes.begin(), allocation->nodes.end(),
                         [&](const NodeAllocation& its) { return its.node == *index; });
    });
    if (!used) ++empty;
  }
  if (empty >= request.min_nodes) find(id, "waits for resources beside empty nodes");
}

}  // namespace sched::testing
