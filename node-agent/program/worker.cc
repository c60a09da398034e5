#include "node-agent/program/worker.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "base/log_fields.h"
#include "kube/client.h"
#include "kube/health_server.h"
#include "kube/http_transport.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"
#include "kube/transport_config.h"
#include "linux/cgroup_file.h"
#include "linux/clock.h"
#include "linux/open_files.h"
#include "linux/text_file.h"
#include "node-agent/freezer/frozen_time.h"
#include "node-agent/freezer/pod_opener.h"
#include "node-agent/program/agent.h"
#include "node-agent/program/status_writer.h"
#include "node-agent/reporting/shown_pods.h"
#include "node-agent/reporting/topology.h"
#include "node-agent/survival/exit_message.h"
#include "node-agent/survival/heartbeat.h"
#include "node-agent/survival/supervisor.h"
#include "node-agent/switching/switch_clock.h"

// The worker's threads and their communication:
//
// * main: Agent::step() whenever a signal, a change from the API server or news of the switcher
//   comes, or a deadline passes; beats once a second.
// * switcher: freezes and thaws (switching/switcher.h); beats by itself.
// * one for each informer, the Lease and quorum reads: store and notify.
// * status: writes the NodeTimetable's status.
// * health: /healthz, /readyz, /metrics.
// Signals are blocked in all of them and read by the main thread from a descriptor. A stop goes the
// other way round than the start: calls to the API server are ended beside the thawing, which waits
// for none of them.
namespace agent {
namespace {

// The time in which a worker that must stop thaws and verifies; the supervisor gives a bit
// more (1.85 s), so that it need not kill a worker that is about to be done.
constexpr base::Duration kThawWithin = std::chrono::milliseconds{1700};
// Then the status says so, if the API server answers soon.
constexpr base::Duration kLastWordWithin = std::chrono::milliseconds{300};
// The time-out of one call to the API server: a stop waits for no call, but a hung one must not
// hold up the next.
constexpr base::Duration kCallTimeout = std::chrono::seconds{10};
// The supervisor takes a worker for hung when the beat stands still for some seconds
// (worker_watch.h).
constexpr base::Duration kBeatEvery = std::chrono::seconds{1};
// The switcher's news are for status and metrics only, so they may wait. Each one handled at once
// would wake the main thread several times in every slice.
constexpr base::Duration kNewsEvery = std::chrono::milliseconds{250};

// Returns true if one of them is ready before the time is over.
// False if not, also if a signal handler ran: the caller looks at its clock anyway.
bool poll_for(std::span<pollfd> fds, base::Duration timeout) {
  const timespec relative = os::to_timespec(timeout);
  return ::ppoll(fds.data(), fds.size(), &relative, nullptr) > 0;
}

// SIGTERM and SIGINT as a descriptor. Threads that are started later inherit the blocked signals.
os::FileDescriptor stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::sigaddset(&set, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return os::FileDescriptor{::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)};
}

// Pages stay where they are once they have been touched; only those (MCL_ONFAULT), since a program
// with OpenSSL has five times as many.
bool lock_memory() {
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return true;
  spdlog::info("memory is not locked (CAP_IPC_LOCK allows it)");
  return false;
}

base::Result<std::unique_ptr<kube::HttpTransport>> make_transport(const Options& options,
                                                                  const kube::Clock& clock) {
  const base::Result<kube::TransportConfig> config = kube::default_config(options.kubeconfig);
  if (!config) return config.error();
  return kube::HttpTransport::create(*config, clock);
}

// Everything that a running worker is made of, in the order in which it is made.
class Worker {
 public:
  Worker(const Options& options, kube::Transport& transport, PodCgroups cgroups,
         Heartbeat heartbeat, bool memory_locked);

  base::Status start();
  int run();

 private:
  base::Status serve_health();
  base::Status is_ready() const;
  int stop();
  void end_calls();
  void beat() { heartbeat_.main_beat().fetch_add(1); }
  // Returns true if something came.
  bool wait(base::Duration timeout);
  void notify();
  void hand_on(AgentReport report);
  std::optional<kube::NodeTopology> read_topology_now();
  std::vector<Grant> check_node_now(const ClockReading& clock) const;

  const Options& options_;
  const bool memory_locked_;
  os::FileDescriptor signals_;
  os::FileDescriptor wake_up_;
  RealSwitchClock clock_;
  kube::ThreadSleeper sleeper_;
  PodCgroups cgroups_;
  Heartbeat heartbeat_;
  kube::Client client_;
  kube::Client last_word_;  // not stopped with the other
  NodeWatch watch_;
  Switcher switcher_;
  CgroupPodOpener opener_;
  NodePolicy policy_;
  Metrics metrics_;
  kube::Waker status_waker_;
  StatusWriter status_writer_;
  std::unique_ptr<Agent> agent_;
  std::string shown_pods_;  // as last written
  TopologyWatch topology_;
  std::atomic<bool> ready_{false};
  std::unique_ptr<kube::HealthServer> health_;
  kube::RunLoop loops_;
};

kube::ClientOptions client_options(const Options& options) {
  return {.call = {.timeout = kCallTimeout},
          .field_manager = "kubegang-agent",
          .seed = std::hash<std::string>{}(options.node_name)};
}

Worker::Worker(const Options& options, kube::Transport& transport, PodCgroups cgroups,
               Heartbeat heartbeat, bool memory_locked)
    : options_{options},
      memory_locked_{memory_locked},
      signals_{stop_signals()},
      wake_up_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)},
      cgroups_{std::move(cgroups)},
      heartbeat_{std::move(heartbeat)},
      client_{transport, clock_, sleeper_, client_options(options)},
      last_word_{transport, clock_, sleeper_, client_options(options)},
      // The seed comes from the node's name, so that the retries of thousands of agents spread, and
      // those of one agent can be repeated.
      watch_{client_,
             clock_,
             {.node = options.node_name,
              .lease = options.lease_key(),
              .seed = std::hash<std::string>{}(options.node_name)},
             [this] { notify(); }},
      switcher_{clock_, heartbeat_.switcher_beat(), {.try_fifo = options.fifo}},
      opener_{cgroups_},
      policy_{options.node_name, JournalFile{options.run_directory + "/" + kJournalName},
              read_boot_id(), opener_, switcher_},
      status_writer_{client_, clock_, watch_, status_waker_},
      topology_{options.cpu_directory} {}

// Called from the watches' threads. An eventfd coalesces: many changes at once are one step.
// A write can only fail if the counter is at its end; then the main thread is woken already.
void Worker::notify() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_up_.get(), &one, sizeof one);
}

// Called by the agent at most every 100 ms. The file is written only if it would change, which on a
// node that takes turns is with each slice.
void Worker::hand_on(AgentReport report) {
  // For people: if it cannot be written, the journal cannot either, and that is reported.
  if (std::string text = format_shown_pods(report.pods); text != shown_pods_) {
    (void)os::replace_text_file(options_.run_directory + "/" + kShownPodsName, text);
    shown_pods_ = std::move(text);
  }
  status_writer_.offer(std::move(report));
}

// Warns once for each new reason.
std::optional<kube::NodeTopology> Worker::read_topology_now() {
  const std::string before = topology_.error();
  std::optional<kube::NodeTopology> now = topology_.read();
  if (!now && topology_.error() != before) {
    spdlog::warn("topology is unknown error={}", base::log_value(topology_.error()));
  }
  return now;
}

std::vector<Grant> Worker::check_node_now(const ClockReading& clock) const {
  return check_node({.cgroup_root = options_.cgroup_root,
                     .kubelet_root = options_.kubelet_cgroup_root,
                     .run_directory = options_.run_directory,
                     .fifo_wanted = options_.fifo,
                     .fifo = switcher_.policy() == ThreadPolicy::kFifo,
                     .memory_locked = memory_locked_,
                     .open_files_max = os::open_files_max(),
                     .clock = clock});
}

base::Status Worker::is_ready() const {
  if (ready_.load()) return {};
  return base::Error{base::Code::kUnavailable,
                     "the API server has not yet sent this node's pods and timetable, "
                     "and the SchedulerConfig"};
}

// /healthz only shows that the process answers; the supervisor detects hung loops, and sooner than
// kubelet would.
base::Status Worker::serve_health() {
  if (options_.metrics_address.empty()) return {};
  const std::optional<HostPort> address = parse_host_port(options_.metrics_address);
  CHECK(address.has_value());  // parse_options() has refused anything else
  base::Result<std::unique_ptr<kube::HealthServer>> server = kube::HealthServer::create(
      {.address = address->host, .port = address->port},
      {.ready = [this] { return is_ready(); }, .metrics = [this] { return metrics_.render(); }});
  if (!server) return server.error().with_context("--metrics-address");
  health_ = *std::move(server);
  spdlog::info("serving metrics address={} port={}", address->host, health_->port());
  loops_.start("health", [this](std::stop_token stop) {
    health_->serve(stop);
    return base::Duration{std::chrono::hours{1}};
  });
  return {};
}

// 1. serve health and metrics, 2. start the switcher's thread, 3. take over from the journal, 4.
//    make the first step from the journal alone, 5. start the watches and the status thread.
base::Status Worker::start() {
  // Health first: a port that is taken must fail before anything is inherited or frozen.
  if (base::Status status = serve_health(); !status) return status;
  if (base::Status status = switcher_.start(); !status) return status;
  // The journal is taken over after the switcher's thread runs: inherited pods go to it at once.
  metrics_.set_policy(switcher_.policy());
  const NodePolicy::Inherited inherited = policy_.inherit();
  if (!inherited.damage.empty()) {
    spdlog::error("the journal is damaged: waiting for the API server to name the pods error={}",
                  base::log_value(inherited.damage));
  }
  if (inherited.found && inherited.damage.empty()) {
    spdlog::info("took over pods={} timetable={}", inherited.journal.pods.size(),
                 !inherited.journal.timetable.empty());
  }
  AgentParts parts{
      .node = options_.node_name,
      .clock = clock_,
      .watch = watch_,
      .policy = policy_,
      .switcher = switcher_,
      .metrics = metrics_,
      .report = [this](AgentReport report) { hand_on(std::move(report)); },
      .frozen_time = [this](const PodView& pod) -> std::optional<base::Duration> {
        const base::Result<PodCgroup> cgroup = cgroups_.at(pod.path, pod.uid);
        return cgroup ? read_frozen_time(*cgroup) : std::nullopt;
      },
      .read_topology = [this] { return read_topology_now(); },
      .online_cpus = [this] { return topology_.online(); },
      .check_node = [this](const ClockReading& clock) { return check_node_now(clock); }};
  agent_ = std::make_unique<Agent>(std::move(parts), inherited.journal);
  agent_->step();  // Inherited pods take their turns before the API server answers.
  watch_.start(loops_);
  loops_.start(
      "status", [this](std::stop_token) { return status_writer_.step(); }, &status_waker_);
  return {};
}

// Handles the switcher's events at most every kNewsEvery (each turn produces several), and API
// changes and signals immediately.
// Example: with slices of 1 s the switcher has news at each boundary. The first 250 ms after a step
// they are not looked at; from then on they end the wait. So the main thread steps at most four
// times a second for them.
bool Worker::wait(base::Duration timeout) {
  std::array<pollfd, 2> fds{pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                            pollfd{.fd = wake_up_.get(), .events = POLLIN, .revents = 0}};
  const base::Duration first = std::min(timeout, kNewsEvery);
  bool came = poll_for(fds, first);
  if (!came && timeout > first) {
    std::array<pollfd, 3> all{fds[0], fds[1],
                              pollfd{.fd = switcher_.news_fd(), .events = POLLIN, .revents = 0}};
    came = poll_for(all, timeout - first);
  }
  signalfd_siginfo signal{};
  if (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) agent_->request_stop();
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(wake_up_.get(), &count, sizeof count);
  // News that came after the last poll ran out is left for the next one: it has not been handled.
  if (came) switcher_.clear_news();
  return came;
}

// Steps when something came or when the last step's deadline has passed. In between it wakes once a
// second to beat and to see whether the switcher's reports wait.
int Worker::run() {
  spdlog::info("running node={} version={} cgroup_root={} run_dir={} policy={} pid={}",
               options_.node_name, KUBEGANG_VERSION, cgroups_.root(), options_.run_directory,
               to_string(switcher_.policy()), ::getpid());
  while (!agent_->stop_requested()) {
    const base::Duration next = clock_.monotonic() + agent_->step();
    ready_.store(agent_->ready());
    // In between it only shows that it lives.
    for (bool due = false; !due;) {
      beat();
      const base::Duration left = next - clock_.monotonic();
      due = wait(std::clamp(left, base::Duration{0}, kBeatEvery)) || left <= kBeatEvery ||
            agent_->has_reports();
    }
  }
  return stop();
}

// On a thread of its own: a connection that is being made cannot be broken off, and at an API
// server that does not answer that takes up to 20 s. The process ends by _Exit, so no one waits for
// it.
void Worker::end_calls() {
  std::thread{[this] {
    loops_.request_stop();
    client_.request_stop();
  }}.detach();
}

// Steps until the switcher confirms that everything runs, or the time is over. Exit code 0 tells
// the supervisor that no thaw is left to do.
// The order of a stop is that of importance: the pods run, the journal names none of them, the API
// server knows.
int Worker::stop() {
  const base::Duration since = clock_.monotonic();
  bool calls_end = false;
  while (true) {
    agent_->step();
    beat();
    // Calls in flight end while the pods are thawed.
    if (!std::exchange(calls_end, true)) end_calls();
    const base::Duration waited = clock_.monotonic() - since;
    if (agent_->stopped()) {
      agent_->step();  // The journal no longer names a pod.
      spdlog::info("stopped, everything is thawed node={} took_ms={}", options_.node_name,
                   waited.count() / 1000);
      status_writer_.say_stopped(last_word_, std::min(kLastWordWithin, kThawWithin - waited));
      return 0;
    }
    if (waited > kThawWithin) {
      spdlog::error("stopped, but not everything is thawed node={}", options_.node_name);
      return 1;
    }
    wait(std::chrono::milliseconds{5});
  }
}

}  // namespace

// 1. lock the memory before anything that counts is allocated, 2. raise the limit of open files, 3.
//    open the cgroup tree and the heartbeat, 4. make the transport, 5. run. Ends by _Exit:
//    destructors would join threads that wait for an API server.
int run_worker(const Options& options) {
  const bool memory_locked = lock_memory();
  os::raise_open_files(kOpenFilesWanted);
  base::Result<PodCgroups> cgroups =
      PodCgroups::open(options.cgroup_root, options.kubelet_cgroup_root);
  if (!cgroups) return fail_with(cgroups.error());
  base::Result<Heartbeat> heartbeat =
      Heartbeat::create(options.run_directory + "/" + kHeartbeatName);
  if (!heartbeat) return fail_with(heartbeat.error());
  const RealSwitchClock clock;
  const base::Result<std::unique_ptr<kube::HttpTransport>> transport =
      make_transport(options, clock);
  if (!transport) return fail_with(transport.error());
  Worker worker{options, **transport, *std::move(cgroups), *std::move(heartbeat), memory_locked};
  if (const base::Status status = worker.start(); !status) return fail_with(status.error());
  const int code = worker.run();
  spdlog::shutdown();
  // No waiting for calls to an API server that may be slow: everything that counts is done.
  std::_Exit(code);
}

}  // namespace agent
