#include "simulation/plan_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

namespace simulation {
namespace {

using std::chrono::milliseconds;

// A field of a line and its name there.
template <typename T>
struct Field {
  std::string_view name;
  std::variant<int T::*, std::uint64_t T::*, bool T::*, Time T::*, std::string T::*> member;
};

const std::array kRoundFields{
    Field<Plan>{"seed", &Plan::seed},
    Field<Plan>{"nodes", &Plan::nodes},
    Field<Plan>{"slice", &Plan::slice},
    Field<Plan>{"fail-open-after", &Plan::fail_open_after},
    Field<Plan>{"preempt-mode", &Plan::preempt_mode},
    Field<Plan>{"turns", &Plan::turns},
    Field<Plan>{"fair-share", &Plan::fair_share},
    Field<Plan>{"faults-end", &Plan::faults_end},
};
const std::array kJobFields{
    Field<JobPlan>{"nodes", &JobPlan::nodes},
    Field<JobPlan>{"work", &JobPlan::work},
    Field<JobPlan>{"exit-code", &JobPlan::exit_code},
    Field<JobPlan>{"high", &JobPlan::high},
    Field<JobPlan>{"batch", &JobPlan::batch},
    Field<JobPlan>{"wrong", &JobPlan::wrong},
    Field<JobPlan>{"time-limit", &JobPlan::time_limit},
    Field<JobPlan>{"pods", &JobPlan::pods},
    Field<JobPlan>{"completions", &JobPlan::completions},
    Field<JobPlan>{"indexed", &JobPlan::indexed},
    Field<JobPlan>{"requeue", &JobPlan::requeue},
    Field<JobPlan>{"rack", &JobPlan::rack},
    Field<JobPlan>{"tolerates", &JobPlan::tolerates},
    Field<JobPlan>{"start-timeout", &JobPlan::start_timeout},
    Field<JobPlan>{"init", &JobPlan::init},
    Field<JobPlan>{"init-ends", &JobPlan::init_ends},
    Field<JobPlan>{"init-waits", &JobPlan::init_waits},
    Field<JobPlan>{"waits-for", &JobPlan::waits_for},
    Field<JobPlan>{"waits-kind", &JobPlan::waits_kind},
    Field<JobPlan>{"waits-task", &JobPlan::waits_task},
    Field<JobPlan>{"devices", &JobPlan::devices},
    Field<JobPlan>{"array", &JobPlan::array},
    Field<JobPlan>{"throttle", &JobPlan::throttle},
    Field<JobPlan>{"fails-task", &JobPlan::fails_task},
};

std::string written(int value) {
  return std::to_string(value);
}
std::string written(std::uint64_t value) {
  return std::to_string(value);
}
std::string written(bool value) {
  return value ? "yes" : "no";
}
std::string written(Time value) {
  return std::to_string(value / milliseconds{1}) + "ms";
}
std::string written(const std::string& value) {
  return value;
}

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [stopped, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && stopped == text.data() + text.size();
}
bool read(std::string_view text, bool& value) {
  value = text == "yes";
  return value || text == "no";
}
bool read(std::string_view text, Time& value) {
  std::int64_t count = 0;
  if (!text.ends_with("ms") || !read(text.substr(0, text.size() - 2), count)) return false;
  value = milliseconds{count};
  return true;
}
bool read(std::string_view text, std::string& value) {
  value = text;
  return true;
}

// Writes the fields that differ from the default.
template <typename T>
std::string fields_of(const T& object, std::span<const Field<T>> fields) {
  const T defaults{};
  std::string text;
  for (const Field<T>& field : fields) {
    std::visit(
        [&](auto member) {
          if (object.*member == defaults.*member) return;
          text += " " + std::string{field.name} + "=" + written(object.*member);
        },
        field.member);
  }
  return text;
}

// Takes the next word off the text; "" at its end.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

// Reads fields, each as name=value, into the object.
template <typename T>
bool read_fields(std::string_view text, std::span<const Field<T>> fields, T& object) {
  for (std::string_view word = take_word(text); !word.empty(); word = take_word(text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) return false;
    const auto field = std::find_if(fields.begin(), fields.end(), [&](const Field<T>& one) {
      return one.name == word.substr(0, equals);
    });
    if (field == fields.end()) return false;
    const bool ok = std::visit(
        [&](auto member) { return read(word.substr(equals + 1), object.*member); }, field->member);
    if (!ok) return false;
  }
  return true;
}

// Takes what stands before `mark` off the text, with the mark; nullopt if the mark is not there.
std::optional<std::string_view> take_until(std::string_view& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return before;
}

// Reads a line as to_string(Event) writes it.
bool read_event(std::string_view text, Event& event) {
  std::int64_t at = 0, length = 0;
  const auto when = take_until(text, " ms: ");
  const auto name = take_until(text, " (target ");
  const auto target = take_until(text, ", ");
  const auto lasts = take_until(text, " ms, amount ");
  const auto amount = take_until(text, ")");
  if (!when || !name || !target || !lasts || !amount || !text.empty()) return false;
  const auto act = parse_act(*name);
  if (!act || !read(*when, at) || !read(*target, event.target) || !read(*lasts, length) ||
      !read(*amount, event.amount)) {
    return false;
  }
  event.act = *act;
  event.at = milliseconds{at};
  event.length = milliseconds{length};
  return true;
}

bool read_line(std::string_view line, Plan& plan) {
  std::string_view rest = line;
  const std::string_view first = take_word(rest);
  if (first.empty() || first.starts_with('#')) return true;
  if (first == "round") return read_fields<Plan>(rest, kRoundFields, plan);
  if (first != "job") return read_event(line, plan.events.emplace_back());
  JobPlan& job = plan.jobs.emplace_back();
  job.name = take_word(rest);
  return !job.name.empty() && read_fields<JobPlan>(rest, kJobFields, job);
}

}  // namespace

std::string to_string(const Plan& plan) {
  std::string text = "round" + fields_of<Plan>(plan, kRoundFields) + "\n";
  for (const JobPlan& job : plan.jobs) {
    text += "job " + job.name + fields_of<JobPlan>(job, kJobFields) + "\n";
  }
  for (const Event& event : plan.events) text += to_string(event) + "\n";
  return text;
}

// A round without a job, a node or an end of its faults would not be a round.
base::Result<Plan> parse_plan(std::string_view text) {
  Plan plan;
  int number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    if (!read_line(line, plan)) {
      return base::invalid_argument("line " + std::to_string(number) + " of the plan: invalid \"" +
                                    std::string{line} + "\"");
    }
  }
  const bool is_round = !plan.jobs.empty() && plan.nodes > 0 && plan.slice > Time{0} &&
                        plan.fail_open_after > Time{0} && plan.faults_end > Time{0};
  if (!is_round) {
    return base::invalid_argument(
        "the plan lacks jobs, or nodes, slice, fail-open-after or faults-end of its round");
  }
  std::stable_sort(plan.events.begin(), plan.events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  return plan;
}

}  // namespace simulation
