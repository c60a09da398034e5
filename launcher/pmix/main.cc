// kubegang-pmix: serves PMIx to the tasks of one step on one node, for a launcher that speaks on
// its standard input (launcher/message.h); ends with it. A static program, as the launcher is.
//
// The library calls from a thread of its own, which only writes to the launcher; the main thread
// reads.
//
// SOURCE: PMIx standard 4.1, "Server-Specific Interfaces". A task gets the same facts about the job
// as from Slurm 22.05 (its plugin mpi/pmix).
#include <pmix.h>
#include <pmix_server.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/message.h"
#include "launcher/pmix/infos.h"
#include "launcher/pmix_exchange.h"

namespace launcher {
namespace {

constexpr int kLauncher = STDIN_FILENO;

std::mutex writing;

// The launcher is gone, and so is the step: nothing of this program is left anywhere.
[[noreturn]] void leave(int code) {
  ::_exit(code);
}

void say(PmixMessage pmix) {
  const std::string bytes = encode({.kind = Kind::kPmix, .pmix = std::move(pmix)});
  const std::lock_guard lock{writing};
  std::string_view left = bytes;
  while (!left.empty()) {
    const ssize_t count = ::send(kLauncher, left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) leave(1);
    left.remove_prefix(static_cast<std::size_t>(count));
  }
}

[[noreturn]] void fail(const char* what, pmix_status_t status) {
  std::fprintf(stderr, "kubegang-pmix: %s: %s\n", what, PMIx_Error_string(status));
  leave(1);
}

// Calls that the library waits for, by the id that the launcher gives back.
class Calls {
 public:
  struct Call {
    pmix_modex_cbfunc_t function = nullptr;
    void* data = nullptr;
  };

  std::uint32_t add(const Call& call) {
    const std::lock_guard lock{mutex_};
    calls_[next_] = call;
    return next_++;
  }
  std::optional<Call> take(std::uint32_t id) {
    const std::lock_guard lock{mutex_};
    const auto node = calls_.extract(id);
    return node.empty() ? std::nullopt : std::optional{node.mapped()};
  }

 private:
  std::mutex mutex_;
  std::map<std::uint32_t, Call> calls_;
  std::uint32_t next_ = 0;
};

Calls calls;

void answer(const PmixMessage& message) {
  const auto call = calls.take(message.id);
  if (!call || call->function == nullptr) return;
  auto* const kept = new std::string{message.data};
  call->function(message.status, kept->data(), kept->size(), call->data,
                 [](void* data) { delete static_cast<std::string*>(data); }, kept);
}

// The library's calls.

pmix_status_t take_client(const pmix_proc_t*, void*, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

// The task ends by itself once it is answered; the launcher ends the others.
pmix_status_t abort_step(const pmix_proc_t* task, void*, int status, const char*, pmix_proc_t*,
                         std::size_t, pmix_op_cbfunc_t, void*) {
  say({.kind = PmixKind::kAbort, .rank = task->rank, .status = status});
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t fence(const pmix_proc_t* tasks, std::size_t count, const pmix_info_t*, std::size_t,
                    char* data, std::size_t size, pmix_modex_cbfunc_t function, void* context) {
  PmixMessage message{.kind = PmixKind::kFence};
  for (const pmix_proc_t& task : std::span{tasks, count}) message.ranks.push_back(task.rank);
  const auto is_all = [](std::uint32_t rank) { return rank == PMIX_RANK_WILDCARD; };
  if (std::ranges::any_of(message.ranks, is_all)) message.ranks.clear();
  std::ranges::sort(message.ranks);
  if (data != nullptr && size <= kPmixBytesMax) message.data.assign(data, size);
  std::free(data);
  if (size > kPmixBytesMax) return PMIX_ERR_OUT_OF_RESOURCE;
  message.id = calls.add({function, context});
  say(std::move(message));
  return PMIX_SUCCESS;
}

pmix_status_t ask_for(const pmix_proc_t* task, const pmix_info_t*, std::size_t,
                      pmix_modex_cbfunc_t function, void* context) {
  say({.kind = PmixKind::kAsk, .id = calls.add({function, context}), .rank = task->rank});
  return PMIX_SUCCESS;
}

// A task that has begun with PMIx ends its connection without having finished.
void hear_event(std::size_t, pmix_status_t, const pmix_proc_t* source, pmix_info_t*, std::size_t,
                pmix_info_t*, std::size_t, pmix_event_notification_cbfunc_fn_t done,
                void* context) {
  say({.kind = PmixKind::kLeft, .rank = source->rank});
  if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, context);
}

// Another node wants what a task here has put; the library answers when it has.
void answer_ask(const pmix_proc_t& task, std::uint32_t id) {
  const auto give = [](pmix_status_t status, char* data, std::size_t size, void* context) {
    PmixMessage message{.kind = PmixKind::kAnswer, .status = status};
    const std::unique_ptr<std::uint32_t> own{static_cast<std::uint32_t*>(context)};
    message.id = *own;
    if (status == PMIX_SUCCESS && size > kPmixBytesMax) message.status = kPmixFailed;
    if (message.status == PMIX_SUCCESS && data != nullptr) message.data.assign(data, size);
    say(std::move(message));
  };
  auto* const context = new std::uint32_t{id};
  const pmix_status_t status = PMIx_server_dmodex_request(&task, give, context);
  if (status != PMIX_SUCCESS) give(status, nullptr, 0, context);
}

// Adds what the tasks hear about the step.
//
// SOURCE: PMIx standard 4.1, PMIx_server_register_nspace.
void add_job(Infos& infos, const TaskSet& set) {
  const PmixJob& job = set.pmix;
  std::vector<std::string> ranks_of(job.nodes.size());
  std::vector<std::uint32_t> local(job.places.size());
  std::vector<std::uint32_t> count(job.nodes.size());
  for (std::uint32_t rank = 0; rank < job.places.size(); ++rank) {
    const std::uint32_t place = job.places[rank];
    ranks_of[place] += (ranks_of[place].empty() ? "" : ",") + std::to_string(rank);
    local[rank] = count[place]++;
  }
  std::string nodes;
  std::string ranks;
  for (std::size_t place = 0; place < job.nodes.size(); ++place) {
    nodes += (place == 0 ? "" : ",") + job.nodes[place];
    ranks += (place == 0 ? "" : ";") + ranks_of[place];
  }
  const auto size = static_cast<std::uint32_t>(job.places.size());
  for (const char* key : {PMIX_UNIV_SIZE, PMIX_JOB_SIZE, PMIX_MAX_PROCS}) infos.add(key, size);
  infos.add(PMIX_JOB_NUM_APPS, std::uint32_t{1});
  infos.add(PMIX_NUM_NODES, static_cast<std::uint32_t>(job.nodes.size()));
  for (const char* key : {PMIX_LOCAL_SIZE, PMIX_NODE_SIZE}) {
    infos.add(key, static_cast<std::uint32_t>(set.ranks.size()));
  }
  infos.add(PMIX_JOBID, job.name);
  infos.add(PMIX_NODE_MAP, pattern_of(PMIx_generate_regex, nodes));
  infos.add(PMIX_PROC_MAP, pattern_of(PMIx_generate_ppn, ranks));
  infos.add(PMIX_LOCAL_PEERS, ranks_of[job.place]);
  infos.add_rank(PMIX_LOCALLDR, set.ranks.front());
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    Infos of_task;
    of_task.add_rank(PMIX_RANK, rank);
    of_task.add(PMIX_APPNUM, std::uint32_t{0});
    for (const char* key : {PMIX_GLOBAL_RANK, PMIX_APP_RANK}) of_task.add_rank(key, rank);
    of_task.add_rank(PMIX_APPLDR, 0);
    for (const char* key : {PMIX_LOCAL_RANK, PMIX_NODE_RANK}) {
      of_task.add(key, static_cast<std::uint16_t>(local[rank]));
    }
    of_task.add(PMIX_NODEID, job.places[rank]);
    of_task.add(PMIX_HOSTNAME, job.nodes[job.places[rank]]);
    infos.add(PMIX_PROC_DATA, of_task);
  }
}

// Nothing of the image that this runs in is looked at: no configuration, no plugins, no files in
// folders for temporary ones. The tasks get their data by the connection, not by shared memory.
void set_environment() {
  constexpr std::array<std::array<const char*, 2>, 8> kVariables{
      {{"HOME", "/nonexistent"},
       {"HWLOC_PLUGINS_PATH", "/nonexistent"},
       {"PMIX_PKGLIBDIR", "/nonexistent"},
       {"PMIX_PKGDATADIR", "/nonexistent"},
       {"PMIX_MCA_mca_base_param_files", "none"},
       {"PMIX_MCA_gds", "hash"},
       {"PMIX_MCA_psec", "native"},
       {"PMIX_MCA_ptl_base_if_include", "lo"}}};
  ::clearenv();
  for (const auto& [name, value] : kVariables) ::setenv(name, value, 1);
}

void start_server(const TaskSet& set) {
  set_environment();
  pmix_server_module_t module{};
  module.client_connected = take_client;
  module.client_finalized = take_client;
  module.abort = abort_step;
  module.fence_nb = fence;
  module.direct_modex = ask_for;
  Infos own;
  own.add(PMIX_HOSTNAME, set.pmix.nodes[set.pmix.place]);
  pmix_status_t status = PMIx_server_init(&module, own.data(), own.size());
  if (status != PMIX_SUCCESS) fail("PMIx_server_init", status);
  pmix_status_t event = PMIX_ERR_LOST_CONNECTION;
  PMIx_Register_event_handler(&event, 1, nullptr, 0, hear_event, nullptr, nullptr);
  Infos infos;
  add_job(infos, set);
  status = PMIx_server_register_nspace(set.pmix.name.c_str(), static_cast<int>(set.ranks.size()),
                                       infos.data(), infos.size(), nullptr, nullptr);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) {
    fail("PMIx_server_register_nspace", status);
  }
}

pmix_proc_t task_of(const std::string& name, std::uint32_t rank) {
  pmix_proc_t task{};
  name.copy(task.nspace, PMIX_MAX_NSLEN);
  task.rank = rank;
  return task;
}

void offer_environments(const TaskSet& set) {
  for (const std::uint32_t rank : set.ranks) {
    const pmix_proc_t task = task_of(set.pmix.name, rank);
    pmix_status_t status =
        PMIx_server_register_client(&task, ::getuid(), ::getgid(), nullptr, nullptr, nullptr);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) {
      fail("PMIx_server_register_client", status);
    }
    char** environment = nullptr;
    status = PMIx_server_setup_fork(&task, &environment);
    if (status != PMIX_SUCCESS) fail("PMIx_server_setup_fork", status);
    PmixMessage message{.kind = PmixKind::kEnvironment, .rank = rank};
    for (char** entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
      message.words.emplace_back(*entry);
    }
    say(std::move(message));
  }
}

void hear(const std::string& name, const PmixMessage& message) {
  if (message.kind == PmixKind::kAsk) return answer_ask(task_of(name, message.rank), message.id);
  if (message.kind == PmixKind::kFenced || message.kind == PmixKind::kAnswer) answer(message);
}

int run() {
  MessageReader reader;
  std::string name;
  std::array<char, kChunkBytesMax> bytes{};
  while (true) {
    const ssize_t count = ::read(kLauncher, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) leave(0);
    reader.add({bytes.data(), static_cast<std::size_t>(count)});
    while (const auto message = reader.next()) {
      if (message->kind == Kind::kRun && name.empty()) {
        name = message->tasks->pmix.name;
        start_server(*message->tasks);
        offer_environments(*message->tasks);
      }
      if (message->kind == Kind::kPmix && !name.empty()) hear(name, *message->pmix);
    }
    if (reader.is_broken()) leave(1);
  }
}

}  // namespace
}  // namespace launcher

int main() {
  return launcher::run();
}
