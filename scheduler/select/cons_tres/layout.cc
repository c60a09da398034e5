#include "scheduler/select/cons_tres/layout.h"

#include <algorithm>
#include <numeric>

#include "scheduler/select/cons_tres/capacity.h"

namespace sched::cons_tres {
namespace {

// Cores are numbered socket by socket.
CoreSet socket_cores(const NodeFacts& node, int socket) {
  return core_range(socket * node.cores_per_socket, (socket + 1) * node.cores_per_socket);
}

// Takes the lowest `count` cores of `from`.
CoreSet lowest(const CoreSet& from, int count) {
  CoreSet taken;
  for (int core = from.next(0); core >= 0 && count > 0; core = from.next(core + 1), --count) {
    taken.set(core);
  }
  return taken;
}

// Cyclic over sockets: one core of each in turn. With a limit of tasks per socket the last sockets
// that suffice are used (recorded); with CPUs per task sockets are filled first with what belongs
// together.
//
// For example, two sockets of 4 free cores of one thread, 0 to 3 and 4 to 7: 3 tasks of one CPU get
// cores 0, 4 and 1. Two tasks of 2 CPUs get 0 to 3, since whole tasks fill the first socket. If
// core 0 is taken they get 1, 2, 4 and 5: core 3 would be half a task.
class CyclicPicker {
 public:
  CyclicPicker(const Shape& shape, const NodeFacts& node, const CoreSet& free, int cpus)
      : shape_{shape},
        node_{node},
        free_{free},
        cpus_{cpus},
        per_core_{cpus_per_core(shape, node)} {}

  // 1. A limit of tasks per socket narrows the sockets; CPUs per task fill whole tasks into each
  // socket.
  // 2. The rest is dealt out cyclically, the lowest free core of each socket in turn.
  std::optional<CoreSet> pick() {
    if (shape_.tasks_per_socket != kNoLimit) {
      first_socket_ = first_needed_socket();
    } else if (shape_.cpus_per_task > 1) {
      fill(whole_tasks());
    }
    while (cpus_ > 0) {
      const int before = cpus_;
      for (int socket = first_socket_; socket < node_.sockets && cpus_ > 0; ++socket) {
        take_one(socket);
      }
      // A whole round without a core: the sockets in question are used up.
      if (cpus_ == before) return std::nullopt;
    }
    return taken_;
  }

 private:
  // False if the socket has no free core.
  bool take_one(int socket) {
    const int begin = socket * node_.cores_per_socket;
    const int core = free_.next(begin);
    if (core < 0 || core >= begin + node_.cores_per_socket) return false;
    free_.reset(core);
    taken_.set(core);
    cpus_ -= per_core_;
    return true;
  }
  // In CPUs that the job can use: one or both of a core with two threads.
  int free_cpus(int socket) const {
    return (free_ & socket_cores(node_, socket)).count() * per_core_;
  }
  // Each socket up to its number of CPUs, one socket after the other.
  void fill(const std::vector<int>& limits) {
    for (int socket = 0; socket < node_.sockets; ++socket) {
      int left = limits[static_cast<std::size_t>(socket)];
      for (; left > 0 && cpus_ > 0 && take_one(socket); left -= per_core_) {
      }
    }
  }
  // By socket, in CPUs.
  std::vector<int> whole_tasks() const {
    std::vector<int> limits;
    for (int socket = 0; socket < node_.sockets; ++socket) {
      // Keeps only whole tasks in the socket; the rest is dealt out cyclically.
      const int here = free_cpus(socket);
      limits.push_back(here - here % shape_.cpus_per_task);
    }
    return limits;
  }
  // Counts back from the last socket until its sockets suffice.
  int first_needed_socket() const {
    int left = cpus_;
    int socket = node_.sockets;
    while (left > 0 && socket > 0) {
      --socket;
      left -= std::min(free_cpus(socket), shape_.tasks_per_socket * shape_.cpus_per_task);
    }
    return socket;
  }

  const Shape& shape_;
  const NodeFacts& node_;
  CoreSet free_;
  CoreSet taken_;
  int cpus_;
  int per_core_;
  int first_socket_ = 0;
};

// The fewest sockets that hold `cores`, and of such sets the one with the fewest free cores; the
// first of equals. `sockets` is sorted by free cores, most first. For example, of sockets with 6, 5
// and 3 free cores for 8 cores: two are needed at least, and 6 + 3 leave less behind than 6 + 5.
struct SocketFree {
  int socket;
  int free;
};

std::vector<SocketFree> fewest_sockets(const std::vector<SocketFree>& sockets, int cores) {
  std::size_t count = 0;
  for (int held = 0; held < cores && count < sockets.size(); ++count) held += sockets[count].free;
  std::vector<SocketFree> best{sockets.begin(),
                               sockets.begin() + static_cast<std::ptrdiff_t>(count)};
  // Exchange one socket after the other, the smallest first, for the smallest that still suffices.
  // Exact for equal sockets that are partly taken; near enough for anything stranger.
  int held = std::accumulate(best.begin(), best.end(), 0,
                             [](int sum, const SocketFree& one) { return sum + one.free; });
  // Sockets from `end` on have been taken in exchange, or were too small.
  std::size_t end = sockets.size();
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t other = end; other-- > count;) {
      if (sockets[other].free >= best[i].free) break;
      if (held - best[i].free + sockets[other].free < cores) continue;
      // Takes the first of equal sockets.
      while (other > count && sockets[other - 1].free == sockets[other].free) --other;
      held += sockets[other].free - best[i].free;
      best[i] = sockets[other];
      end = other;
      break;
    }
  }
  std::sort(best.begin(), best.end(), [](const SocketFree& a, const SocketFree& b) {
    return a.free != b.free ? a.free > b.free : a.socket < b.socket;
  });
  return best;
}

// Block: few sockets, tightly; the fullest is emptied first. `most` cores of each socket.
std::optional<CoreSet> pick_block(const NodeFacts& node, const CoreSet& free, int cores, int most) {
  std::vector<SocketFree> sockets;
  for (int socket = 0; socket < node.sockets; ++socket) {
    const int here = std::min((free & socket_cores(node, socket)).count(), most);
    if (here > 0) sockets.push_back({socket, here});
  }
  std::sort(sockets.begin(), sockets.end(), [](const SocketFree& a, const SocketFree& b) {
    return a.free != b.free ? a.free > b.free : a.socket < b.socket;
  });
  CoreSet taken;
  for (const SocketFree& one : fewest_sockets(sockets, cores)) {
    const int here = std::min(cores, one.free);
    taken |= lowest(free & socket_cores(node, one.socket), here);
    cores -= here;
  }
  if (cores > 0) return std::nullopt;
  return taken;
}

// Hands out tasks, CPUs per task each, as long as a node's CPUs last.
//
// For example, 5 tasks of one CPU on two nodes with two threads per core: one to each node, then
// one more to each, because its first core is half empty, and the last one to the first node.
class TaskCounter {
 public:
  TaskCounter(const Shape& shape, const std::vector<Chosen>& chosen,
              const std::vector<DeviceLimits>& devices, const Occupancy& occupancy)
      : shape_{shape},
        chosen_{chosen},
        devices_{devices},
        occupancy_{occupancy},
        nodes_(chosen.size()) {}

  std::vector<NodeTasks> distribute() {
    tasks_left_ = tasks_count();
    for (std::size_t i = 0; i < chosen_.size(); ++i) give(i);  // one to each node
    for (std::size_t i = 0; i < chosen_.size(); ++i) {         // then fill cores that are begun
      const int per_core = cpus_per_core(shape_, occupancy_.facts(chosen_[i].rank));
      while (nodes_[i].tasks < per_core && has_room(i) && give(i)) {
      }
    }
    // Rounds over the nodes, a core's worth of tasks at a time (4.11 step 2). A round that places
    // none has met full nodes everywhere; only --overcommit has tasks left then.
    bool beyond = false;  // more tasks than CPUs: --overcommit
    while (tasks_left_ > 0) {
      const int before = tasks_left_;
      for (std::size_t i = 0; i < chosen_.size(); ++i) {
        const int per_core = cpus_per_core(shape_, occupancy_.facts(chosen_[i].rank));
        for (int t = 0; t < per_core && (beyond || has_room(i)) && give(i); ++t) {
        }
      }
      if (tasks_left_ == before) beyond = true;
    }
    return std::move(nodes_);
  }

 private:
  int tasks_count() const {
    const int nodes = static_cast<int>(chosen_.size());
    // 4.11 step 1, in the order in which Slurm looks.
    int cpus = nodes * std::max(1, shape_.tasks_per_node);
    cpus = std::max({cpus, shape_.min_cpus, shape_.given_cpus * nodes, cpus_of_gpus(nodes)});
    if (shape_.overcommit && shape_.tasks > 0) {
      int total = 0;
      for (const Chosen& node : chosen_) total += node.cpus;
      return std::max(1, std::min(total, shape_.tasks));
    }
    // With one CPU per task the CPUs are the tasks.
    if (shape_.overcommit || shape_.cpus_per_task == 1) return cpus;
    if (shape_.tasks_per_node != kNoLimit) return shape_.tasks_per_node * nodes;
    return std::max(1, cpus / shape_.cpus_per_task);
  }
  // CPUs that GPUs bring with them, and tasks.
  int cpus_of_gpus(int nodes) const {
    int cpus = 0, tasks = 0;
    for (const KindDemand& kind : shape_.kinds) {
      if (!kind.is_gpu) continue;
      const int gpus = kind.of_job > 0 ? kind.of_job : asked_product(kind.per_node, nodes);
      cpus += asked_product(gpus, shape_.cpus_per_gpu);
      tasks += asked_product(gpus, shape_.tasks_per_gpu);
    }
    return std::max(cpus, tasks);
  }
  // A node is full when its CPUs are given out, or when it has its --ntasks-per-node and the CPUs
  // that the job needs there at least.
  bool has_room(std::size_t i) const {
    const bool full = shape_.tasks_per_node != kNoLimit &&
                      nodes_[i].tasks >= shape_.tasks_per_node &&
                      nodes_[i].cpus >= shape_.given_cpus;
    if (!devices_.empty() && nodes_[i].tasks >= devices_[i].tasks) return false;
    return nodes_[i].cpus < chosen_[i].cpus && !full;
  }
  // False if there are no tasks left.
  bool give(std::size_t i) {
    if (tasks_left_ == 0) return false;
    --tasks_left_;
    ++nodes_[i].tasks;
    // Bounded by what was chosen: an overcommitted task brings no CPU with it.
    nodes_[i].cpus = std::min(nodes_[i].cpus + shape_.cpus_per_task, chosen_[i].cpus);
    return true;
  }

  const Shape& shape_;
  const std::vector<Chosen>& chosen_;
  const std::vector<DeviceLimits>& devices_;
  const Occupancy& occupancy_;
  std::vector<NodeTasks> nodes_;
  int tasks_left_ = 0;
};

// CPUs that the tasks occupy: one on each core leaves the rest of its last core unused.
int occupied_cpus(const Shape& shape, const NodeFacts& node, const NodeTasks& tasks) {
  if (!shape.one_task_per_core) return tasks.cpus;
  const int per_core = cpus_per_core(shape, node);
  const int of_task = quotient_up(shape.cpus_per_task, per_core) * per_core;
  return std::max(tasks.cpus, std::min(tasks.tasks * of_task, node.cores_count() * per_core));
}

// A job with devices picks among as many cores as its tasks need (R11.3b). The last core of the
// socket that has the most is given up until `cores` are left, among equals the first socket's
// (recorded: rnd_gres_102, where one task on two sockets of 4 cores gets core 4, and three get 0, 4
// and 5; rnd_gres_220, where two tasks on two nodes get core 6 and core 4).
CoreSet evened_out(const NodeFacts& node, const CoreSet& free, int cores) {
  int left = free.count();
  if (left <= cores) return free;
  std::vector<int> kept;  // of each socket
  for (int socket = 0; socket < node.sockets; ++socket) {
    kept.push_back((free & socket_cores(node, socket)).count());
  }
  for (; left > cores; --left) --*std::ranges::max_element(kept);
  CoreSet even;
  for (int socket = 0; socket < node.sockets; ++socket) {
    even |= lowest(free & socket_cores(node, socket), kept[static_cast<std::size_t>(socket)]);
  }
  return even;
}

}  // namespace

// 4.11 steps 1 and 2. `chosen` says how many CPUs a node may give at most; the result, in the same
// order, how many tasks it gets and how many CPUs these take.
std::vector<NodeTasks> distribute_tasks(const Shape& shape, const std::vector<Chosen>& chosen,
                                        const std::vector<DeviceLimits>& devices,
                                        const Occupancy& occupancy) {
  return TaskCounter{shape, chosen, devices, occupancy}.distribute();
}

// nullopt if the free cores do not suffice. Equal requests on equal free cores get the same cores,
// so that stacked jobs align (14.4). Cyclic over the sockets is Slurm's default (4.11 step 3); in
// blocks a job stays together.
std::optional<CoreSet> pick_cores(const Shape& shape, const NodeFacts& node, const CoreSet& free,
                                  int cpus) {
  const int per_core = cpus_per_core(shape, node);
  std::optional<CoreSet> cores;
  if (shape.block_cores) {
    cores = pick_block(node, free, quotient_up(cpus, per_core), cores_per_socket_max(shape, node));
  } else {
    cores = CyclicPicker{shape, node, free, cpus}.pick();
  }
  if (!cores || shape.unit != SelectUnit::kSocket) return cores;
  // CR_Socket: a job is charged, and blocks, every socket that it touches.
  CoreSet sockets;  // whole ones
  for (int socket = 0; socket < node.sockets; ++socket) {
    const CoreSet all = socket_cores(node, socket);
    if (all.intersects(*cores)) sockets |= all;
  }
  return sockets;
}

int sockets_with(const NodeFacts& node, const CoreSet& cores) {
  int count = 0;
  for (int socket = 0; socket < node.sockets; ++socket) {
    count += cores.intersects(socket_cores(node, socket)) ? 1 : 0;
  }
  return count;
}

// Returns the job's part on one node. Whole-node jobs take all cores whatever their tasks need
// (4.11 step 5). nullopt: the whole attempt fails (R4.22), though the node was offered.
std::optional<NodeAllocation> allocate_node(const Shape& shape, const NodeFacts& node,
                                            const CoreSet& free, int cores_max,
                                            const NodeTasks& tasks, std::int64_t free_memory) {
  NodeAllocation use{.node = node.index,
                     .cores = node.cores,
                     .cpus = node.cpus_count(),
                     .tasks = tasks.tasks,
                     .memory = MemoryMiB{0}};
  if (!shape.whole_nodes) {
    const int cpus = occupied_cpus(shape, node, tasks);
    const CoreSet usable = evened_out(node, usable_cores(shape, node, free), cores_max);
    const auto cores = pick_cores(shape, node, usable, cpus);
    if (!cores) return std::nullopt;
    use.cores = *cores;
    // Core and socket modes charge whole cores, CPU mode the CPUs of the tasks (4.11 step 4).
    use.cpus = shape.unit == SelectUnit::kCpu ? tasks.cpus
                                              : cores->count() * charged_per_core(shape, node);
  }
  if (shape.memory.per == CountedPer::kNothing) return use;
  const std::int64_t memory = shape.memory.charge(use.cpus, node.memory_mib);
  // The offer was for CPUs; the cores they came to may be more, and memory per CPU with them
  // (R4.22).
  if (memory > free_memory) return std::nullopt;
  use.memory = MemoryMiB{memory};
  return use;
}

}  // namespace sched::cons_tres
