#include "operator/process/process.h"

#include <malloc.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>

#include "api/wellknown.h"
#include "base/log_fields.h"
#include "kube/clock_watch.h"
#include "kube/event_recorder.h"
#include "kube/health_server.h"
#include "kube/http_transport.h"
#include "kube/leader_elector.h"
#include "kube/run_loop.h"
#include "operator/gang/batch_pod.h"
#include "operator/loop/control_loop.h"
#include "operator/loop/informers.h"
#include "operator/loop/pace.h"
#include "operator/process/beat.h"
#include "operator/process/list_patience.h"
#include "operator/process/metrics.h"
#include "operator/write/crash_points.h"
#include "operator/write/thread_writer.h"

namespace control {
namespace {

constexpr int kFailed = 1;
// The loop looks at the clock at least that often, because wall clocks may be set.
constexpr base::Duration kLongestWait = std::chrono::seconds{5};
// The time without any leader before a process leads whose clock is off.
constexpr base::Duration kLeadAnyhowAfter = std::chrono::minutes{1};
// Many threads, few of them busy: their own arenas would only cost memory.
constexpr int kMallocArenas = 2;

// Reports an error before there is a log: one sentence for the terminal. Returns the exit code.
int sentence(const std::string& message) {
  std::fprintf(stderr, "kubegang-operator: %s\n", message.c_str());
  return kFailed;
}

// Times in UTC with microseconds, as timetables have them. Each line of level info and above is
// flushed, so that the last words of a process that dies are there.
void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("operator");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

// The operator is a pod itself, so names are resolved for it as they are for the pods of jobs.
PodLauncher pod_launcher(const Options& options) {
  PodLauncher launcher{.image = options.launcher_image,
                       .directory = options.launcher_directory,
                       .port = options.launcher_port};
  if (options.launcher_image_volume == "auto") launcher.volume = ImageVolume::kAuto;
  if (options.launcher_image_volume == "true") launcher.volume = ImageVolume::kTrue;
  if (options.name_servers.empty()) {
    std::ifstream file{"/etc/resolv.conf"};
    std::ostringstream text;
    text << file.rdbuf();
    launcher.dns = read_cluster_dns(text.str());
  } else {
    launcher.dns = {options.name_servers, options.cluster_domain};
  }
  return launcher;
}

// A host name alone is not unique: the process that restarts on it would take the Lease of its
// predecessor for its own, without a new term.
std::string unique_identity(const kube::Clock& clock) {
  char host[256] = "host";
  (void)::gethostname(host, sizeof host - 1);
  return std::string{host} + "_" + std::to_string(::getpid()) + "_" +
         std::to_string(base::micros_since_epoch(clock.wall()));
}

// Ends the process at once: what it decided since it lost the Lease must not be finished.
[[noreturn]] void end_now(const std::string& why) {
  spdlog::error("{}", why);
  spdlog::default_logger()->flush();
  std::_Exit(kFailed);
}

constexpr std::int32_t kUnlimited = std::numeric_limits<std::int32_t>::max();

// One process of the operator: its threads and its life.
//
// 1. The health server answers from the beginning; a stand-by counts as ready.
// 2. One thread waits for signals. The informers list and watch, so that a process that cannot does
//    not lead.
// 3. One thread tries for the Lease, and renews it. The main thread waits until this process leads,
//    or until it must end.
// 4. Then the informers list again, the writers and the events get their threads, and the main
//    thread becomes the control loop: it alone touches the scheduler and everything that is
//    decided. Other threads put changes and answers into the inbox and wake it.
// 5. It ends in one of two ways. A SIGTERM is orderly (stop()). A lost Lease, or the sight of a
//    higher term, ends the process on the spot (end_now()), because whatever it would still finish
//    might be written after its successor has begun.
class Process {
 public:
  Process(const Options& options, kube::Transport& transport, CrashPoints& crash_points)
      : options_{options},
        crash_points_{crash_points},
        transport_{transport, clock_, clock_watch_},
        client_{transport_,
                clock_,
                sleeper_,
                // No limits of its own: what reaches the server is bounded by the number of
                // writers, informers and the event recorder.
                {.rate = {.per_second = kUnlimited, .burst = 1},
                 .in_flight_max = kUnlimited,
                 .field_manager = std::string{kube::kComponent}}},
        lease_client_{transport_,
                      clock_,
                      sleeper_,
                      {.call = {.timeout = options.retry_period, .attempts_max = 1},
                       .field_manager = std::string{kube::kComponent}}},
        inbox_{waker_},
        recorder_{client_, clock_, {.component = std::string{kube::kComponent}}},
        elector_{lease_client_, clock_, election_options(), election_callbacks()},
        writer_{Actuator{client_, pod_launcher(options)}, inbox_, crash_points_, options.writers,
                [this] { return leads(); }},
        informers_{
            client_,
            clock_,
            inbox_,
            templates_,
            [](std::string_view kind, const base::Error& error) {
              spdlog::warn("watch failed kind={} error={}", kind, base::log_value(error.message));
            },
            {.batch_jobs = options.adopt_batch_jobs, .pod_groups = options.adopt_pod_groups}},
        loop_{clock_, inbox_, writer_, templates_, hooks()} {
    if (!options.agents_namespace.empty()) loop_.expect_agents_in(options.agents_namespace);
    if (!options.records_lease.empty()) {
      loop_.wait_for_records({options.ns, options.records_lease});
    }
    if (options.adopt_pods) loop_.adopt_pods({.groups = options.adopt_pod_groups});
  }

  // 1. health and signals, which work from the beginning
  // 2. list, and wait for the Lease; a signal may come first
  // 3. lead until a signal
  // 4. end in order
  int run() {
    auto health = serve_health();
    if (!health.ok()) return sentence(health.error().with_context("--metrics-address").message);
    loops_.start("signals", [this](std::stop_token stop) { return wait_for_signal(stop); });
    if (options_.leader_elect && !wait_until_leading()) return stop();
    if (start_leading()) lead();
    return stop();
  }

 private:
  bool leads() const { return !options_.leader_elect || elector_.is_leader(); }

  // The seed spreads the tries of several stand-bys over time.
  kube::LeaderElectionOptions election_options() const {
    return {.lease = options_.lease(),
            .identity = options_.identity.empty() ? unique_identity(clock_) : options_.identity,
            .lease_duration = options_.lease_duration,
            .renew_deadline = options_.renew_deadline,
            .retry_period = options_.retry_period,
            .seed = static_cast<std::uint64_t>(base::micros_since_epoch(clock_.wall()))};
  }

  kube::LeaderElector::Callbacks election_callbacks() {
    return {.on_started =
                [this](std::int32_t transitions) {
                  transitions_ = transitions;
                  leading_ = true;
                  waker_.wake();
                },
            // Not an orderly end: that would wait for writes under way, and each of them may come
            // after the next leader has begun.
            .on_lost = [] { end_now("lost the Lease; ending"); },
            .may_hold = [this](base::Duration free_for) { return is_fit(free_for); },
            .on_new_leader =
                [](const std::string& identity) {
                  spdlog::info("leader identity={}", base::log_value(identity));
                },
            .on_error =
                [](const base::Error& error) {
                  spdlog::warn("lease error={}", base::log_value(error.message));
                }};
  }

  // Makes the way from the loop to the outside: logs, events, and the end of the process. The loop
  // itself does no I/O.
  LoopHooks hooks() {
    return {.log = [](const std::string& message,
                      const std::string& fields) { spdlog::info("{} {}", message, fields); },
            .warn = [](const std::string& message,
                       const std::string& fields) { spdlog::warn("{} {}", message, fields); },
            .event =
                [this](const kube::ObjectReference& object, bool warning, const std::string& reason,
                       const std::string& message) {
                  recorder_.record(object,
                                   warning ? kube::EventType::kWarning : kube::EventType::kNormal,
                                   reason, message);
                },
            .ended = [](const std::string& why) { end_now(why + "; ending"); }};
  }

  // Returns true if this process may lead: its main thread goes round, and its clock is right. A
  // clock that is off counts only while another process may lead, with a clock that is right.
  bool is_fit(base::Duration free_for) {
    if (!beat_.is_fresh(options_.renew_deadline)) return false;
    if (leading_) return true;
    const bool is_off = clock_watch_.is_in_doubt();
    distrusts_clock_ = is_off;
    if (!is_off || free_for >= kLeadAnyhowAfter) return true;
    if (free_for == base::Duration{}) {
      spdlog::warn("does not lead: the wall clock differs from the API server's");
    }
    return false;
  }

  // A leader whose clock is off ends, so that another one leads. No other process could if it leads
  // anyhow: then it ends when the clock is right, and time limits count again.
  void look_at_clock() {
    if (distrusts_clock_) {
      if (clock_watch_.is_in_doubt()) return;
      end_now("the wall clock is that of the API server again; ending, to lead with time limits");
    }
    const auto off = clock_watch_.off();
    if (!off) return;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*off).count();
    end_now("the wall clock is " + std::to_string(seconds) +
            " s ahead of the API server's; set it, as with NTP; ending");
  }

  base::Duration longest_wait() const {
    return std::min(kLongestWait, options_.renew_deadline / 2);
  }

  // Alive as long as the main thread goes round. Ready when all kinds are listed, and a leader has
  // finished its first step.
  base::Status serve_health() {
    auto server = kube::HealthServer::create(
        {.address = options_.metrics_host, .port = options_.metrics_port},
        {.alive = [this] { return beat_.alive(options_.renew_deadline); },
         .ready = [this]() -> base::Status {
           // A stand-by is ready: it does what it is there for.
           if (leading_ ? !serving_ : !has_listed_) {
             return base::Error{base::Code::kUnavailable, "still listing"};
           }
           return {};
         },
         .metrics = [this] { return metrics_.render(); }});
    if (!server.ok()) return server.error();
    health_ = std::move(*server);
    spdlog::info("serving address={}:{}", options_.metrics_host, health_->port());
    loops_.start("health", [this](std::stop_token stop) {
      health_->serve(std::move(stop));
      return kLongestWait;
    });
    return {};
  }

  // Wakes up now and then to see whether it must end.
  base::Duration wait_for_signal(std::stop_token stop) {
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    ::sigaddset(&signals, SIGINT);
    const timespec patience{.tv_sec = 0, .tv_nsec = 200'000'000};
    while (!stop.stop_requested()) {
      const int signal = ::sigtimedwait(&signals, nullptr, &patience);
      if (signal != SIGTERM && signal != SIGINT) continue;
      spdlog::info("stopping signal={}", signal);
      stopping_ = true;
      waker_.wake();
    }
    return kLongestWait;
  }

  // Gives the informers their threads, and waits until all kinds are listed. Returns false if the
  // process must end.
  bool list_all(kube::RunLoop& loops) {
    for (auto& [name, step] : informers_.steps()) loops.start(name, step);
    const ListPatience patience{clock_};
    while (!informers_.have_synced() && !stopping_) {
      beat_.beat();
      if (const auto why = patience.end(informers_.missing())) end_now(*why);
      waker_.wait_for(std::chrono::milliseconds{20}, {});
    }
    return !stopping_;
  }

  // Returns true if the process leads now, false if it must end.
  bool wait_until_leading() {
    if (!list_all(standby_)) return false;
    has_listed_ = true;
    election_.start("lease", [this](std::stop_token) { return elector_.step(); });
    while (!leading_ && !stopping_) {
      beat_.beat();
      waker_.wait_for(longest_wait(), {});
    }
    return leading_ && !stopping_;
  }

  // 1. the loop learns its term
  // 2. the informers list again: a watch may be behind what the last leader has written
  // 3. events and writers get their threads
  // Returns false if the process must end. The first step of the loop restores from complete
  // lists (ControlLoop::step).
  bool start_leading() {
    leading_ = true;
    loop_.lead(transitions_);
    standby_.request_stop();
    standby_.join();
    informers_.list_again();
    if (!list_all(loops_)) return false;
    if (!options_.leader_elect) distrusts_clock_ = clock_watch_.is_in_doubt();
    if (distrusts_clock_) {
      spdlog::warn(
          "leads although the wall clock differs from the API server's: no job ends because "
          "its time is over; set the clock, as with NTP");
      loop_.distrust_clock();
    }
    loops_.start("events", [this](std::stop_token) { return recorder_.step(); });
    for (int i = 0; i < writer_.at_once(); ++i) {
      writers_.start("writer", [this](std::stop_token stop) {
        writer_.work(std::move(stop));
        return kLongestWait;
      });
    }
    return true;
  }

  // The control loop, until a signal. It steps when something has arrived, when something is due,
  // and at least every longest_wait().
  void lead() {
    while (!stopping_) {
      look_at_clock();
      beat_.beat();
      const base::Duration began = clock_.monotonic();
      const base::Instant due = loop_.step();
      beat_.beat();
      const base::Duration took = clock_.monotonic() - began;
      metrics_.update(loop_.counters(), loop_.totals(), loop_.term(), took);
      serving_ = true;
      // A step that took long is followed by a rest, in which changes gather: one step for a
      // hundred changes costs little more than one for one (pace.h).
      if (const base::Duration rest = rest_after(took, loop_.writes_wait()); rest.count() > 0) {
        (void)sleeper_.sleep(rest, {});
      }
      const base::Duration wait =
          due == base::kNever ? longest_wait() : std::min(due - clock_.wall(), longest_wait());
      if (wait.count() > 0) waker_.wait_for(wait, {});
    }
  }

  // Finishes what is under way, gives the Lease up, so that the next one need not wait.
  int stop() {
    // The order matters: writes that are under way end first, and only then is the Lease given up.
    // The other way round a new leader could begin while this one still writes.
    standby_.request_stop();
    loops_.request_stop();
    writers_.request_stop();
    writers_.join();
    client_.request_stop();
    standby_.join();
    loops_.join();
    election_.request_stop();
    election_.join();
    if (options_.leader_elect) elector_.release();
    spdlog::info("stopped");
    return 0;
  }

  const Options options_;
  CrashPoints& crash_points_;
  kube::SystemClock clock_;
  kube::ThreadSleeper sleeper_;
  Beat beat_{clock_};
  kube::ClockWatch clock_watch_{clock_};
  kube::ClockWatchTransport transport_;
  kube::Client client_;
  kube::Client lease_client_;  // of its own, so that no rate limit delays a renewal
  kube::Waker waker_;
  Inbox inbox_;
  TemplateBook templates_;
  kube::EventRecorder recorder_;
  kube::LeaderElector elector_;
  ThreadWriter writer_;
  Informers informers_;
  Metrics metrics_;
  ControlLoop loop_;
  std::unique_ptr<kube::HealthServer> health_;

  std::atomic<bool> has_listed_{false};
  std::atomic<bool> leading_{false};
  std::atomic<bool> distrusts_clock_{false};
  std::atomic<bool> serving_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::int32_t> transitions_{0};

  // Last, so that they end first.
  kube::RunLoop standby_;  // the informers', until it leads
  kube::RunLoop election_;
  kube::RunLoop writers_;
  kube::RunLoop loops_;
};

// Before there is any thread: all inherit it.
void block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

}  // namespace

// Everything that can be wrong with the surroundings is found here, before any thread runs: the
// variable for crash tests, the kubeconfig, the connection's files.
int run_process(const Options& options) {
  ::mallopt(M_ARENA_MAX, kMallocArenas);
  block_signals();
  set_up_log(options.log_level);
  const char* crash_at = std::getenv("KUBEGANG_CRASH_AT");
  auto crash_points = CrashPoints::parse(crash_at == nullptr ? "" : crash_at);
  if (!crash_points.ok()) return sentence(crash_points.error().message);
  const auto config = kube::default_config(options.kubeconfig, {.context = options.context});
  if (!config.ok()) return sentence(config.error().message);
  const kube::SystemClock clock;
  auto transport = kube::HttpTransport::create(*config, clock);
  if (!transport.ok()) return sentence(transport.error().message);
  Process process{options, **transport, *crash_points};
  return process.run();
}

}  // namespace control
