#include "translation/usage_translation.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "slurm/array.h"
#include "translation/units.h"

namespace control {
namespace {

// Takes the number at the front of `text`, and `after` behind it, away from it. Returns nullopt if
// no number is there, or something else is behind it and not the end.
std::optional<std::int64_t> take_number(std::string_view& text, char after) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.empty()) return number;
  if (text.front() != after) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

}  // namespace

// The usage of accounts is not stored: it is the sum of that of their namespaces. Jobs are one
// string "id:seconds,id:seconds" (of a task of an array 12_3:seconds) and not a list of objects,
// which would be many times as long.
kube::UsageRecordSpec encode_usage(const sched::UsageState& usage, base::Instant taken_at) {
  kube::UsageRecordSpec record{.as_of = usage.as_of, .taken_at = taken_at};
  for (const sched::UserUsage& user : usage.users) {
    record.namespaces.push_back({.account = user.account,
                                 .ns = user.user,
                                 .billed = user.used.billed,
                                 .run_time_millis = user.used.wall_milli});
  }
  for (const sched::QosUsage& qos : usage.qos) {
    record.qos.push_back({qos.qos, qos.used.billed, qos.used.wall_milli});
  }
  for (const sched::JobCharged& job : usage.jobs) {
    // Rounded down, so that after a restart a second may be charged twice but none is lost.
    record.jobs += (record.jobs.empty() ? "" : ",") + to_string(job.job) + ":" +
                   std::to_string(whole_seconds_down(job.run));
  }
  return record;
}

sched::UsageState decode_usage(const kube::UsageRecordSpec& record) {
  sched::UsageState usage;
  usage.as_of = record.as_of.value_or(base::Instant{});
  for (const kube::NamespaceUsage& each : record.namespaces) {
    usage.users.push_back({each.account, each.ns, {each.billed, each.run_time_millis}});
  }
  for (const kube::QosUsage& each : record.qos) {
    usage.qos.push_back({each.name, {each.billed, each.run_time_millis}});
  }
  for (std::string_view text = record.jobs; !text.empty();) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto job = slurm::parse_job_id(text.substr(0, colon));
    text.remove_prefix(std::min(colon + 1, text.size()));
    const auto seconds = take_number(text, ',');
    if (!job || !seconds || *seconds < 0 || *seconds > whole_seconds_down(kRunMax)) break;
    usage.jobs.push_back({*job, std::chrono::seconds{*seconds}});
  }
  return usage;
}

}  // namespace control
