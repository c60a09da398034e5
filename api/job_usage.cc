#include "api/job_usage.h"

#include <algorithm>

#include "api/job_codec.h"

namespace kube {
namespace {

constexpr std::string_view kMessageBegin = "{\"kubegangUsage\":1,";

// `T`: of a message, or its part JobUsage.
template <typename T>
std::optional<T> read(std::string_view text) {
  static const KnownFields kFields = codec::list_fields<T>();
  const auto json = JsonText::read(text, kFields);
  if (!json || !json->root().is_object()) return std::nullopt;
  T value;
  std::optional<std::string> failure;
  codec::Decoder decoder{json->root(), nullptr, failure};
  visit(decoder, value);
  if (failure) return std::nullopt;
  return value;
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '+' || c == '_';
}

// More than the 292 years of Go's durations was read as these (parse_duration).
bool is_time(base::Duration time) {
  return time >= base::Duration{};
}

bool is_memory(Bytes memory) {
  return memory >= Bytes{} && memory <= kUsageMemoryMax;
}

// A number of a step has ten digits at most.
bool is_step_id(const std::string& id) {
  if (id == "batch") return true;
  const bool is_number =
      std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; }) && id.size() <= 10;
  return is_number && !id.empty() && (id == "0" || id[0] != '0');
}

bool is_legal(const StepUsage& step) {
  return is_step_id(step.id) && step.name.size() <= kUsageNameBytesMax &&
         std::ranges::all_of(step.name, is_plain) && step.tasks >= 1 && step.tasks <= 65'536 &&
         step.nodes >= 1 && step.nodes <= 65'536 && step.cpus >= 0 && step.cpus <= 100'000'000 &&
         step.exit_code >= 0 && step.exit_code <= 255 && step.signal >= 0 && step.signal <= 64 &&
         step.start_time && *step.start_time >= base::Instant{} && is_time(step.elapsed) &&
         is_time(step.user_cpu) && is_time(step.system_cpu) && is_memory(step.max_rss);
}

bool is_legal(const JobUsage& usage) {
  const bool are_once = std::ranges::all_of(usage.steps, [&](const StepUsage& step) {
    return std::ranges::count(usage.steps, step.id, &StepUsage::id) == 1;
  });
  return is_time(usage.user_cpu) && is_time(usage.system_cpu) && is_memory(usage.max_rss) &&
         is_memory(usage.memory_peak) && usage.steps.size() <= kUsageStepsMax && are_once &&
         std::ranges::all_of(usage.steps, [](const StepUsage& step) { return is_legal(step); }) &&
         usage.more_steps >= 0 && usage.more_steps <= 1'000'000'000;
}

}  // namespace

bool is_usage_message(std::string_view message) {
  return message.starts_with(kMessageBegin) && message.size() <= kUsageMessageBytesMax;
}

std::optional<UsageMessage> read_usage_message(std::string_view message) {
  if (!is_usage_message(message)) return std::nullopt;
  std::optional<UsageMessage> said = read<UsageMessage>(message);
  if (!said || !is_legal(said->usage)) return std::nullopt;
  return said;
}

std::string write_steps(const JobUsage& usage) {
  if (usage.steps.empty() && usage.more_steps == 0) return "";
  nlohmann::json json = nlohmann::json::object();
  codec::Encoder encoder{json};
  visit_steps(encoder, usage);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool read_steps(std::string_view text, JobUsage& usage) {
  const std::optional<JobUsage> read_usage = text.empty() ? JobUsage{} : read<JobUsage>(text);
  if (!read_usage) return false;
  usage.steps = read_usage->steps;
  usage.more_steps = read_usage->more_steps;
  return true;
}

}  // namespace kube
