#include "records/process.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <signal.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/log_fields.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/health_server.h"
#include "kube/http_transport.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"
#include "kube/transport_config.h"
#include "records/acknowledger.h"
#include "records/api_port.h"
#include "records/feeder.h"
#include "records/recorder.h"

namespace records {
namespace {

constexpr int kFailed = 1;
constexpr base::Duration kLongestWait = std::chrono::seconds{5};
constexpr base::Duration kAfterError = std::chrono::seconds{1};
// Some 200 MB. A database that cannot be written all that time will hardly be a moment later; the
// next process begins with a list, so nothing is lost but what is deleted meanwhile.
constexpr std::size_t kWaitingMax = 200'000;
// The interval of looks whether the certificate or the trusted CA has changed.
constexpr base::Duration kLookAtTrust = std::chrono::minutes{1};

int sentence(const std::string& message) {
  std::fprintf(stderr, "kubegang-records: %s\n", message.c_str());
  return kFailed;
}

void set_up_log(const std::string& level) {
  auto logger = spdlog::stderr_logger_mt("records");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ %l %v", spdlog::pattern_time_type::utc);
  logger->set_level(spdlog::level::from_str(level));
  logger->flush_on(spdlog::level::info);
  spdlog::set_default_logger(std::move(logger));
}

[[noreturn]] void end_now(const std::string& why) {
  spdlog::error("{}", why);
  spdlog::default_logger()->flush();
  std::_Exit(kFailed);
}

void block_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

void raise(prometheus::Counter& counter, const std::atomic<std::int64_t>& to) {
  counter.Increment(static_cast<double>(to) - counter.Value());
}

class Metrics {
 public:
  void update(const RecorderCounters& counters, std::size_t waiting) {
    raise(changes_, counters.changes);
    raise(errors_, counters.errors);
    raise(lost_, counters.lost_jobs);
    raise(bare_, counters.bare_ends);
    waiting_.Set(static_cast<double>(waiting));
  }
  std::string render() const { return kube::metrics_text(registry_); }
  prometheus::Registry& registry() { return registry_; }

 private:
  prometheus::Counter& counter(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add({});
  }

  prometheus::Registry registry_;
  prometheus::Counter& changes_ = counter("kubegang_records_changes_total", "Changes written.");
  prometheus::Counter& errors_ = counter("kubegang_records_write_failures_total",
                                         "Transactions that failed and are tried again.");
  prometheus::Counter& lost_ =
      counter("kubegang_records_lost_jobs_total", "Jobs whose end was not seen.");
  prometheus::Counter& bare_ =
      counter("kubegang_records_bare_task_ends_total",
              "Tasks of arrays of whose ends nothing was seen but the outcome.");
  prometheus::Gauge& waiting_ = prometheus::BuildGauge()
                                    .Name("kubegang_records_waiting_changes")
                                    .Help("Changes that are not written yet.")
                                    .Register(registry_)
                                    .Add({});
};

// Metrics of the copy in PostgreSQL, if there is one.
class CopyMetrics {
 public:
  explicit CopyMetrics(prometheus::Registry& registry)
      : rows_{prometheus::BuildCounter()
                  .Name("kubegang_records_copied_rows_total")
                  .Help("Rows written to PostgreSQL.")
                  .Register(registry)
                  .Add({})},
        failures_{prometheus::BuildCounter()
                      .Name("kubegang_records_copy_failures_total")
                      .Help("Connections and transactions with PostgreSQL that failed.")
                      .Register(registry)
                      .Add({})},
        behind_{prometheus::BuildGauge()
                    .Name("kubegang_records_copy_behind_seconds")
                    .Help("For how long PostgreSQL has not had all that SQLite has.")
                    .Register(registry)
                    .Add({})} {}

  void update(const FeederCounters& counters, base::Duration now) {
    raise(rows_, counters.rows);
    raise(failures_, counters.failures);
    behind_.Set(std::chrono::duration<double>(now - base::Duration{counters.complete_at}).count());
  }

 private:
  prometheus::Counter& rows_;
  prometheus::Counter& failures_;
  prometheus::Gauge& behind_;
};

// Everything of the API port that may change while the program runs.
struct ApiFiles {
  std::string certificate;
  std::string key;
  AskersTrust trust;

  friend bool operator==(const ApiFiles&, const ApiFiles&) = default;
};

// One process: the watch has a thread, health one, the API port some; the main thread writes.
class Process {
 public:
  Process(const Options& options, kube::Transport& transport, Writer writer)
      : options_{options},
        client_{transport, clock_, sleeper_, {.field_manager = "kubegang-records"}},
        queue_{waker_},
        follower_{client_, clock_, options.cluster, queue_,
                  [](const base::Error& error) {
                    spdlog::warn("watch failed error={}", base::log_value(error.message));
                  }},
        recorder_{std::move(writer), queue_, follower_, options.cluster, clock_} {}

  int run() {
    if (const base::Status status = serve_health(); !status) {
      return sentence(status.error().with_context("--metrics-address").message);
    }
    if (options_.api_port != 0) {
      if (const base::Status status = serve_api(); !status) {
        return sentence(status.error().with_context("--api-port").message);
      }
    }
    if (options_.lease) acknowledge();
    if (!options_.postgresql_file.empty()) {
      if (const base::Status status = feed(); !status) return sentence(status.error().message);
    }
    loops_.start("signals", [this](std::stop_token stop) { return wait_for_signal(stop); });
    loops_.start("watch-jobs",
                 [this](std::stop_token stop) { return follower_.step(std::move(stop)); });
    while (!stopping_) write();
    return stop();
  }

 private:
  void write() {
    last_step_ = clock_.monotonic().count();
    const bool was_up_to_date = recorder_.is_up_to_date();
    const auto written = recorder_.step();
    if (!written) spdlog::warn("write failed error={}", base::log_value(written.error().message));
    if (!was_up_to_date && recorder_.is_up_to_date()) {
      spdlog::info("up to date jobs={} lost={}", follower_.uids().size(),
                   recorder_.counters().lost_jobs.load());
    }
    const std::size_t waiting = queue_.size();
    metrics_.update(recorder_.counters(), waiting);
    if (feeder_) copy_metrics_->update(feeder_->counters(), clock_.monotonic());
    if (waiting > kWaitingMax) end_now("too many changes wait to be written; ending");
    if (written && *written > 0) return;
    const bool is_soon = !written || !recorder_.is_up_to_date();
    waker_.wait_for(is_soon ? kAfterError : kLongestWait, {});
  }

  void acknowledge() {
    acknowledger_.emplace(
        client_, *options_.lease, [this] { return recorder_.stored(); },
        [](const base::Error& error) {
          spdlog::warn("not acknowledged error={}", base::log_value(error.message));
        });
    loops_.start("acknowledge", [this](std::stop_token) { return acknowledger_->step(); });
  }

  base::Status feed() {
    auto reader = Reader::open(options_.database);
    if (!reader) return reader.error();
    feeder_.emplace(
        std::move(*reader), clock_,
        [this]() -> base::Result<std::string> {
          auto url = kube::read_config_file(options_.postgresql_file);
          if (!url) return url.error().with_context("--postgresql-file");
          while (url->ends_with('\n')) url->pop_back();
          return url;
        },
        [](const base::Error& error) {
          spdlog::warn("not copied error={}", base::log_value(error.message));
        });
    copy_metrics_.emplace(metrics_.registry());
    loops_.start("postgresql", [this](std::stop_token) { return feeder_->step(); });
    return {};
  }

  base::Status serve_health() {
    auto server = kube::HealthServer::create(
        {.address = options_.metrics_host, .port = options_.metrics_port},
        {.alive = [this]() -> base::Status {
           const base::Duration since = clock_.monotonic() - base::Duration{last_step_};
           if (since < std::chrono::minutes{1}) return {};
           return base::Error{base::Code::kUnavailable, "the main thread stands still"};
         },
         .ready = [this]() -> base::Status {
           if (recorder_.is_up_to_date()) return {};
           return base::Error{base::Code::kUnavailable, "still listing"};
         },
         .metrics = [this] { return metrics_.render(); }});
    if (!server) return server.error();
    health_ = std::move(*server);
    spdlog::info("serving address={}:{}", options_.metrics_host, health_->port());
    loops_.start("health", [this](std::stop_token stop) {
      health_->serve(std::move(stop));
      return kLongestWait;
    });
    return {};
  }

  base::Result<ApiFiles> read_api_files() const {
    const auto certificate = kube::read_config_file(options_.tls_certificate);
    if (!certificate) return certificate.error().with_context("--tls-certificate");
    const auto key = kube::read_config_file(options_.tls_key);
    if (!key) return key.error().with_context("--tls-key");
    auto trust = read_trust(client_);
    if (!trust) return trust.error();
    return ApiFiles{*certificate, *key, std::move(*trust)};
  }

  base::Status serve_api() {
    auto files = read_api_files();
    if (!files) return files.error();
    auto reader = Reader::open(options_.database);
    if (!reader) return reader.error();
    auto api = ApiPort::create({.port = options_.api_port,
                                .certificate = files->certificate,
                                .key = files->key,
                                .trust = files->trust,
                                .cluster = options_.cluster},
                               std::move(*reader));
    if (!api) return api.error();
    api_ = std::move(*api);
    loops_.start("api", [this](std::stop_token) {
      api_->serve();
      return kLongestWait;
    });
    loops_.start("api-files", [this, files = std::move(*files)](std::stop_token) {
      const auto now = read_api_files();
      if (now && *now != files) {
        end_now(
            "the certificate, or whom the API server's certificates are signed by, has "
            "changed; ending, to begin again with it");
      }
      return kLookAtTrust;
    });
    return {};
  }

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

  // Changes in the queue are of objects that exist, or were deleted a moment ago.
  int stop() {
    loops_.request_stop();
    client_.request_stop();
    if (api_) api_->stop();
    if (feeder_) feeder_->interrupt();
    loops_.join();
    while (queue_.size() > 0 && recorder_.step()) {
    }
    spdlog::info("stopped");
    return 0;
  }

  const Options options_;
  kube::SystemClock clock_;
  kube::ThreadSleeper sleeper_;
  kube::Client client_;
  kube::Waker waker_;
  ChangeQueue queue_;
  JobFollower follower_;
  Recorder recorder_;
  std::optional<Acknowledger> acknowledger_;
  std::optional<Feeder> feeder_;
  Metrics metrics_;
  std::optional<CopyMetrics> copy_metrics_;
  std::unique_ptr<kube::HealthServer> health_;
  std::unique_ptr<ApiPort> api_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> last_step_{0};
  kube::RunLoop loops_;  // ends before what it drives
};

}  // namespace

int run_process(const Options& options) {
  block_signals();
  // A PostgreSQL that does not answer; libpq knows no other default.
  ::setenv("PGCONNECT_TIMEOUT", "10", 0);
  set_up_log(options.log_level);
  const kube::SystemClock clock;
  const auto config = kube::default_config(options.kubeconfig, {.context = options.context});
  if (!config) return sentence(config.error().message);
  auto transport = kube::HttpTransport::create(*config, clock);
  if (!transport) return sentence(transport.error().message);
  auto writer = Writer::open(options.database, clock.wall());
  if (!writer) return sentence(writer.error().with_context("--database").message);
  Process process{options, **transport, std::move(*writer)};
  return process.run();
}

}  // namespace records
