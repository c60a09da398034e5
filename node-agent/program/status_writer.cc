#include "node-agent/program/status_writer.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <thread>
#include <utility>

#include "base/log_fields.h"

namespace agent {
namespace {

// The pause while there is nothing to write. offer() wakes the loop, so no report waits for it.
constexpr base::Duration kIdle = std::chrono::minutes{10};

// Returns false if another thread holds the mutex all the time. It is asked again and again: a
// std::timed_mutex would wait by a call that g++ 12's ThreadSanitizer does not know.
bool lock_within(std::unique_lock<std::mutex>& lock, base::Duration limit) {
  constexpr std::chrono::milliseconds kBetween{10};
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kBetween);
  }
  return true;
}

}  // namespace

StatusWriter::StatusWriter(kube::Client client, const kube::Clock& clock, const NodeWatch& watch,
                           kube::Waker& waker)
    : client_{std::move(client)}, clock_{clock}, watch_{watch}, waker_{waker} {}

void StatusWriter::offer(AgentReport report) {
  {
    const std::lock_guard lock{mu_};
    report_ = std::move(report);
  }
  waker_.wake();
}

// The watch shows our own write a moment later. Until then its object has the old status, and
// comparing with that would write the same again; so the status that was written last counts.
kube::NodeTimetable StatusWriter::as_written(
    const std::shared_ptr<const kube::NodeTimetable>& seen) const {
  kube::NodeTimetable object = *seen;
  if (written_.seen == seen) object.status = written_.status;
  return object;
}

// 1. Without an object, a report, or after say_stopped(): nothing to do.
// 2. The new status is worked out from the one that was written last.
// 3. If it says something new, it is patched, at most once per kStatusWriteInterval. The report of
//    a later step() holds whatever changed meanwhile, so a write that is put off loses nothing.
base::Duration StatusWriter::step() {
  const auto object = watch_.timetable();
  std::optional<AgentReport> report;
  {
    const std::lock_guard lock{mu_};
    report = report_;
  }
  const std::lock_guard writing{writing_};
  // After say_stopped() no report may replace its last word.
  if (!object || !report || stopped_) return kIdle;
  const kube::NodeTimetable from = as_written(object);
  kube::NodeTimetable to = from;
  to.status = node_status(from.status, *report, clock_.wall());
  if (!worth_a_write(from.status, to.status)) return kIdle;
  if (written_.at) {
    const base::Duration since = clock_.monotonic() - *written_.at;
    if (since < kStatusWriteInterval) return kStatusWriteInterval - since;
  }
  // Counted from the attempt: an API server that refuses every write is asked no more often than
  // one that takes them.
  written_.at = clock_.monotonic();
  const base::Result<kube::NodeTimetable> written =
      // Without the resource version: the operator writes the spec at any time, and a conflict with
      // that would only delay the report.
      client_.patch_status_from(from, to, /*check_version=*/false);
  if (!written) {
    if (written.error().code != base::Code::kCancelled) {
      spdlog::warn("cannot write status node={} code={} error={}", from.metadata.name,
                   base::to_string(written.error().code), base::log_value(written.error().message));
    }
    return kStatusWriteInterval;
  }
  written_.status = to.status;
  written_.seen = object;
  return kIdle;
}

// 1. take the last report, with `stopped` set, 2. wait for a third of the time until step()'s write
//    is over, and forbid further ones, 3. patch, within what is left of the time.
void StatusWriter::say_stopped(const kube::Client& client, base::Duration limit) {
  const auto object = watch_.timetable();
  if (!object) return;
  AgentReport report;
  {
    const std::lock_guard lock{mu_};
    if (report_) report = *report_;
  }
  report.stopped = true;
  std::unique_lock writing{writing_, std::defer_lock};
  // A write that does not end may still arrive after this one: then the operator sees the agent's
  // pod end, as after a kill.
  const base::Duration until = clock_.monotonic() + limit;
  const bool alone = lock_within(writing, limit / 3);
  const kube::NodeTimetable from = alone ? as_written(object) : *object;
  if (alone) stopped_ = true;
  kube::NodeTimetable to = from;
  to.status = node_status(from.status, report, clock_.wall());
  const base::Duration left = until - clock_.monotonic();
  const auto written = client.with({.timeout = left, .attempts_max = 1})
                           .patch_status_from(from, to, /*check_version=*/false);
  if (!written) {
    spdlog::info("the status does not say that the agent has stopped error={}",
                 base::log_value(written.error().message));
  }
}

}  // namespace agent
