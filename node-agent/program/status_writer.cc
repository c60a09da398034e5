#include "node-agent/program/status_writer.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace agent {
namespace {

constexpr base::Duration kIdle = std::chrono::minutes{10};

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

base::Duration StatusWriter::step() {
  const auto object = watch_.timetable();
  std::optional<AgentReport> report;
  {
    const std::lock_guard lock{mu_};
    report = report_;
  }
  if (!object || !report) return kIdle;
  // What we wrote last, where the watch has not brought it back yet.
  kube::NodeTimetable from = *object;
  if (written_uid_ == from.metadata.uid && written_at_) from.status = written_;
  kube::NodeTimetable to = from;
  to.status = node_status(from.status, *report, clock_.wall());
  if (!worth_a_write(from.status, to.status)) return kIdle;
  if (written_at_) {
    const base::Duration since = clock_.monotonic() - *written_at_;
    if (since < kStatusWriteInterval) return kStatusWriteInterval - since;
  }
  written_at_ = clock_.monotonic();
  const base::Result<kube::NodeTimetable> written =
      client_.patch_status_from(from, to, /*check_version=*/false);
  if (!written) {
    if (written.error().code != base::Code::kCancelled) {
      spdlog::warn("cannot write status node={} code={} error=\"{}\"", from.metadata.name,
                   base::to_string(written.error().code), written.error().message);
    }
    return kStatusWriteInterval;
  }
  written_ = to.status;
  written_uid_ = from.metadata.uid;
  return kIdle;
}

}  // namespace agent
