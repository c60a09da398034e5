#include "slurm/gres.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "slurm/exit_code.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace slurm {
namespace {

constexpr int kDevicesMax = 65'535;  // of one kind, on one node

base::Error wrong(std::string_view what, std::string_view text, std::string_view advice) {
  return base::invalid_argument(std::string{what} + " " + in_quotes(text) + ": " +
                                std::string{advice});
}

bool is_number(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Slurm's names and types have no blanks and no signs of its own. "-1" is a wrong count, not a
// type.
bool is_word(std::string_view word) {
  return !word.empty() && is_letter_or_digit(word.front()) && std::ranges::all_of(word, [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
  });
}

// Reads "[type][:count]" behind the name. Slurm's own rule: a word of digits is the count.
base::Result<sched::DeviceCount> parse_count(std::string_view what, std::string_view text,
                                             std::string name,
                                             const std::vector<std::string>& words) {
  sched::DeviceCount devices{.kind = {.name = std::move(name), .type = {}}, .count = 1};
  std::string_view count;
  if (words.size() == 2 || (words.size() == 1 && is_number(words[0]))) count = words.back();
  if (words.size() == 2 || (words.size() == 1 && !is_number(words[0]))) {
    devices.kind.type = words.front();
    if (devices.kind.type.empty()) return wrong(what, text, "an empty type");
  }
  if (words.size() == 2 && count.empty()) return wrong(what, text, "an empty number");
  if (words.size() > 2) return wrong(what, text, "write name[:type][:count]");
  if (!is_word(devices.kind.name) || (!devices.kind.type.empty() && !is_word(devices.kind.type))) {
    return wrong(what, text, "write name[:type][:count], such as gpu:2 or gpu:a100:2");
  }
  if (count.empty()) return devices;
  const auto read = parse_integer(what, count, {.min = 0, .max = kDevicesMax});
  if (!read) return read.error();
  devices.count = static_cast<int>(*read);
  return devices;
}

// A name has types in all entries or in none. SOURCE: Slurm 22.05 refuses gpu:a:1,gpu:1 (recorded).
base::Status add(std::string_view what, std::string_view text, const sched::DeviceCount& more,
                 sched::Devices& to) {
  for (const sched::DeviceCount& other : to) {
    if (other.kind.name != more.kind.name) continue;
    if (other.kind.type.empty() != more.kind.type.empty()) {
      return wrong(what, text,
                   "names " + more.kind.name +
                       " with a type and without; name a type "
                       "each time or never");
    }
  }
  sched::add_devices(to, more.kind, more.count);
  return {};
}

int total(const sched::Devices& devices) {
  int count = 0;
  for (const sched::DeviceCount& each : devices) {
    if (each.kind.name == kGpu) count += each.count;
  }
  return count;
}

sched::Devices times(sched::Devices devices, int factor) {
  for (sched::DeviceCount& each : devices) each.count = sched::asked_product(each.count, factor);
  return devices;
}

void fix_nodes(int nodes, sched::JobRequest& request) {
  request.nodes_given = true;
  request.max_nodes = request.min_nodes = nodes;
}

// SOURCE: recorded: slurmctld refuses these, so sbatch ends with 1.
base::Error refused(std::string sentence) {
  return {kEndsWithOne, std::move(sentence)};
}

// Derives the numbers of one request from each other. SOURCE: Slurm 22.05, sbatch(1) and what it
// refuses.
class Settling {
 public:
  explicit Settling(sched::JobRequest& request) : request_{request} {}

  // 1. Tasks that the number of nodes says.
  // 2. Tasks that the GPUs say, or GPUs that the tasks say.
  // 3. Numbers that must go together, and what one says about another.
  base::Status run() {
    const int each = request_.per_gpu.tasks;
    const bool fixed_nodes = request_.nodes_given && request_.max_nodes == request_.min_nodes;
    if ((!request_.devices_per_task.empty() || each > 0) && !request_.tasks && fixed_nodes) {
      request_.tasks = request_.min_nodes * std::max(each, 1);  // 1
    }
    if (const base::Status status = tasks_of_gpus(); !status) return status;  // 2
    for (const sched::DeviceCount& one : request_.devices_per_socket) {
      if (const base::Status status = check_sockets(one); !status) return status;
    }
    for (const sched::DeviceCount& all : request_.devices_of_job) {  // 3
      if (const base::Status status = settle(all); !status) return status;
    }
    if (!request_.devices_per_task.empty() && !request_.tasks) {
      return refused("--gpus-per-task: needs --ntasks, --gpus or --nodes, too");
    }
    return {};
  }

 private:
  static int count_in(const sched::Devices& devices, const sched::DeviceKind& kind) {
    const auto found = std::ranges::find(devices, kind, &sched::DeviceCount::kind);
    return found == devices.end() ? 0 : found->count;
  }
  // Checks GPUs of each socket of a node: --sockets-per-node must say how many sockets these are.
  base::Status check_sockets(const sched::DeviceCount& each) const {
    const std::string name = "--gpus-per-socket " + std::to_string(each.count);
    if (!request_.sockets_per_node) return refused(name + ": needs --sockets-per-node, too");
    const int of_job = count_in(request_.devices_of_job, each.kind);
    if (of_job % each.count != 0) {
      return refused(name + ": does not divide --gpus " + std::to_string(of_job));
    }
    const int on_node = count_in(request_.devices, each.kind);
    if (on_node > 0 && on_node != sched::asked_product(each.count, *request_.sockets_per_node)) {
      return refused(name + ": --sockets-per-node times it are not the " + std::to_string(on_node) +
                     " GPUs of each node");
    }
    return {};
  }
  base::Status tasks_of_gpus() {
    const int each = request_.per_gpu.tasks;
    if (each == 0) return {};
    const int nodes = request_.nodes_given ? request_.min_nodes : 1;
    int gpus = total(request_.devices_of_job);
    if (gpus == 0) gpus = total(times(request_.devices, nodes));
    if (gpus > 0) {
      request_.tasks = sched::asked_product(gpus, each);
      return {};
    }
    if (!request_.tasks || *request_.tasks % each != 0) {
      return refused("--ntasks-per-gpu: needs GPUs, or a number of tasks that it divides");
    }
    request_.devices_of_job = {
        {.kind = {.name = std::string{kGpu}, .type = {}}, .count = *request_.tasks / each}};
    return {};
  }
  base::Status settle(const sched::DeviceCount& all) {
    const std::string name = "--gpus " + std::to_string(all.count);
    const auto of = [&](const sched::Devices& devices) { return count_in(devices, all.kind); };
    if (const int on_node = of(request_.devices); on_node > 0) {
      const int nodes = all.count / on_node;
      const bool fits =
          nodes >= request_.min_nodes && (!request_.max_nodes || nodes <= *request_.max_nodes);
      const std::string each = std::to_string(on_node) + " on each node";
      if (all.count % on_node != 0) return refused(name + ": is not a multiple of " + each);
      if (!fits) {
        return refused(name + ": with " + each + " these are " + std::to_string(nodes) +
                       " nodes, and --nodes asks for another number");
      }
      fix_nodes(nodes, request_);
    }
    if (const int of_task = of(request_.devices_per_task); of_task > 0) {
      const int tasks = all.count / of_task;
      if (all.count % of_task != 0 || (request_.tasks && *request_.tasks != tasks)) {
        return refused(name + ": is not the number of tasks times " + std::to_string(of_task) +
                       " of --gpus-per-task");
      }
      request_.tasks = tasks;
    }
    if (all.count < request_.min_nodes) {
      return refused(name + ": less than --nodes " + std::to_string(request_.min_nodes));
    }
    if (request_.max_nodes) request_.max_nodes = std::min(*request_.max_nodes, all.count);
    return {};
  }

  sched::JobRequest& request_;
};

}  // namespace

base::Result<sched::Devices> parse_gres(std::string_view what, std::string_view text) {
  sched::Devices devices;
  if (text == "0" || same_word(text, "none")) return devices;
  for (const std::string& item : split(text, ',')) {
    std::vector<std::string> words = split(item, ':');
    // "gres:gpu:2" and "gres/gpu:2" are other spellings of the same.
    if (words.size() > 1 && same_word(words[0], "gres")) words.erase(words.begin());
    if (words.empty()) return wrong(what, text, "an empty name");
    std::string name = words.front();
    if (name.starts_with("gres/")) name.erase(0, 5);
    words.erase(words.begin());
    const auto read = parse_count(what, text, std::move(name), words);
    if (!read) return read.error();
    if (const base::Status status = add(what, text, *read, devices); !status) return status.error();
  }
  return devices;
}

base::Result<sched::Devices> parse_gpus(std::string_view what, std::string_view text) {
  sched::Devices devices;
  if (text == "0" || same_word(text, "none")) return devices;
  for (const std::string& item : split(text, ',')) {
    const auto read = parse_count(what, text, std::string{kGpu}, split(item, ':'));
    if (!read) return read.error();
    if (const base::Status status = add(what, text, *read, devices); !status) return status.error();
  }
  return devices;
}

base::Status apply_devices(const DeviceOptions& options, bool cpus_given, bool memory_given,
                           sched::JobRequest& request) {
  if (options.cpus_per_gpu && cpus_given) {
    return refused("--cpus-per-gpu and --cpus-per-task exclude each other");
  }
  if (options.memory_per_gpu && memory_given) {
    return refused("--mem, --mem-per-cpu and --mem-per-gpu exclude each other");
  }
  request.devices = options.gres.value_or(sched::Devices{});
  if (options.gpus_per_node) {
    if (total(request.devices) > 0 && !(request.devices == *options.gpus_per_node)) {
      return base::invalid_argument(
          "--gres and --gpus-per-node: ask for GPUs twice; leave one of them out");
    }
    if (total(request.devices) == 0) {
      for (const auto& each : *options.gpus_per_node) request.devices.push_back(each);
    }
  }
  request.devices_of_job = options.gpus.value_or(sched::Devices{});
  request.devices_per_task = options.gpus_per_task.value_or(sched::Devices{});
  request.devices_per_socket = options.gpus_per_socket.value_or(sched::Devices{});
  request.per_gpu = {.cpus = options.cpus_per_gpu.value_or(0),
                     .tasks = options.tasks_per_gpu.value_or(0),
                     .memory = options.memory_per_gpu.value_or(sched::MemoryMiB{0})};
  return settle_devices(request);
}

base::Status settle_devices(sched::JobRequest& request) {
  return Settling{request}.run();
}

}  // namespace slurm
