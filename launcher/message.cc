#include "launcher/message.h"

#include <algorithm>
#include <functional>

namespace launcher {
namespace {

constexpr std::size_t kHeadBytes = 2 * sizeof(std::uint32_t);
constexpr auto kKindMax = static_cast<std::uint32_t>(Kind::kRequeue);

void put(std::string& out, std::uint32_t number) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>((number >> shift) & 0xFFU);
  }
}

void put(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

void put(std::string& out, const std::vector<std::string>& words) {
  put(out, static_cast<std::uint32_t>(words.size()));
  for (const std::string& word : words) put(out, std::string_view{word});
}

void put(std::string& out, const std::vector<std::uint32_t>& numbers) {
  put(out, static_cast<std::uint32_t>(numbers.size()));
  for (const std::uint32_t number : numbers) put(out, number);
}

void put(std::string& out, const std::vector<std::vector<std::string>>& programs) {
  put(out, static_cast<std::uint32_t>(programs.size()));
  for (const std::vector<std::string>& program : programs) put(out, program);
}

// Reads fields in the order in which they were put. After a field that is not there `is_good` is
// false, and all others are empty.
struct Fields {
  std::string_view left;
  bool is_good = true;

  std::uint32_t number() {
    std::uint32_t value = 0;
    if (left.size() < sizeof value) {
      is_good = false;
      left = {};
      return 0;
    }
    for (std::size_t i = 0; i < sizeof value; ++i) {
      value |= std::uint32_t{static_cast<unsigned char>(left[i])} << (8 * i);
    }
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint32_t size = number();
    if (size > left.size()) {
      is_good = false;
      left = {};
      return {};
    }
    std::string value{left.substr(0, size)};
    left.remove_prefix(size);
    return value;
  }
  std::vector<std::uint32_t> numbers() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t count = number(); count > 0 && is_good; --count) all.push_back(number());
    return all;
  }
  std::vector<std::vector<std::string>> programs() {
    std::vector<std::vector<std::string>> all;
    for (std::uint32_t count = number(); count > 0 && is_good; --count) {
      all.push_back(words());
      if (all.back().empty()) is_good = false;
    }
    return all;
  }
  std::vector<std::string> words() {
    std::vector<std::string> all;
    // Each word has a length of its own, so a count that is too large ends with the bytes.
    for (std::uint32_t count = number(); count > 0 && is_good; --count) all.push_back(text());
    return all;
  }
};

bool all_below(const std::vector<std::uint32_t>& numbers, std::uint64_t limit) {
  return std::ranges::all_of(numbers, [&](std::uint32_t number) { return number < limit; });
}

void put(std::string& out, const StepRequest& step) {
  put(out, std::string_view{step.secret});
  for (const std::uint32_t number :
       {step.tasks, step.nodes, step.cpus_per_task, step.tasks_per_node, step.relative}) {
    put(out, number);
  }
  put(out, step.required);
  put(out, step.excluded);
  put(out, static_cast<std::uint32_t>(step.distribution));
  put(out, step.plane);
  put(out, step.arranged);
  put(out, std::string_view{step.distribution_within});
  put(out, static_cast<std::uint32_t>(step.packing));
  for (const bool flag :
       {step.is_exact, step.overlaps, step.overcommits, step.is_immediate, step.is_unbuffered}) {
    put(out, flag ? 1U : 0U);
  }
  put(out, static_cast<std::uint32_t>(step.mpi));
  put(out, step.window.rows);
  put(out, step.window.columns);
  put(out, std::string_view{step.directory});
  put(out, step.programs);
  put(out, step.environment);
  put(out, std::string_view{step.name});
}

// Each node that is arranged is one of those that the step must be on.
bool is_arranged(const StepRequest& step) {
  if (step.distribution != Distribution::kArbitrary) return step.arranged.empty();
  return step.arranged.size() == step.tasks &&
         std::ranges::all_of(step.arranged, [&](std::uint32_t node) {
           return std::ranges::find(step.required, node) != step.required.end();
         });
}

StepRequest read_step(Fields& fields) {
  StepRequest step;
  step.secret = fields.text();
  for (std::uint32_t* const number :
       {&step.tasks, &step.nodes, &step.cpus_per_task, &step.tasks_per_node, &step.relative}) {
    *number = fields.number();
  }
  step.required = fields.numbers();
  step.excluded = fields.numbers();
  const std::uint32_t distribution = fields.number();
  step.distribution = static_cast<Distribution>(distribution);
  step.plane = fields.number();
  step.arranged = fields.numbers();
  step.distribution_within = fields.text();
  const std::uint32_t packing = fields.number();
  step.packing = static_cast<Packing>(packing);
  for (bool* const flag : {&step.is_exact, &step.overlaps, &step.overcommits, &step.is_immediate,
                           &step.is_unbuffered}) {
    *flag = fields.number() != 0;
  }
  const std::uint32_t mpi = fields.number();
  step.mpi = static_cast<Mpi>(mpi);
  step.window.rows = fields.number();
  step.window.columns = fields.number();
  step.directory = fields.text();
  step.programs = fields.programs();
  step.environment = fields.words();
  step.name = fields.text();
  const bool fits = step.tasks >= 1 && step.tasks <= kTasksMax && step.nodes >= 1 &&
                    step.nodes <= step.tasks && step.cpus_per_task >= 1 && step.plane >= 1 &&
                    distribution < kDistributionsCount && packing < kPackingsCount &&
                    mpi < kMpisCount && all_below(step.required, kNodesMax) &&
                    all_below(step.excluded, kNodesMax) && is_arranged(step) &&
                    (step.programs.size() == 1 || step.programs.size() == step.tasks);
  if (!fits) fields.is_good = false;
  return step;
}

// Puts all fields, but those of PMIx for a step without it.
void put(std::string& out, const TaskSet& set) {
  put(out, set.ranks);
  put(out, static_cast<std::uint32_t>(set.mpi));
  if (set.mpi == Mpi::kPmix) {
    put(out, std::string_view{set.pmix.name});
    put(out, set.pmix.nodes);
    put(out, set.pmix.places);
    put(out, set.pmix.place);
  }
  put(out, set.is_unbuffered ? 1U : 0U);
  put(out, set.window.rows);
  put(out, set.window.columns);
  put(out, std::string_view{set.directory});
  put(out, set.programs);
  put(out, set.environment);
}

// Each rank of the set is at this place, and no other rank of the step.
bool fits_ranks(const PmixJob& job, const std::vector<std::uint32_t>& ranks) {
  std::vector<std::uint32_t> here;
  for (std::uint32_t rank = 0; rank < job.places.size(); ++rank) {
    if (job.places[rank] == job.place) here.push_back(rank);
  }
  return job.places.size() <= kTasksMax && job.nodes.size() <= kNodesMax &&
         all_below(job.places, job.nodes.size()) && here == ranks;
}

PmixJob read_pmix_job(Fields& fields) {
  PmixJob job;
  job.name = fields.text();
  job.nodes = fields.words();
  job.places = fields.numbers();
  job.place = fields.number();
  return job;
}

TaskSet read_tasks(Fields& fields) {
  TaskSet set;
  set.ranks = fields.numbers();
  const std::uint32_t mpi = fields.number();
  set.mpi = static_cast<Mpi>(mpi);
  if (set.mpi == Mpi::kPmix) set.pmix = read_pmix_job(fields);
  set.is_unbuffered = fields.number() != 0;
  set.window.rows = fields.number();
  set.window.columns = fields.number();
  set.directory = fields.text();
  set.programs = fields.programs();
  set.environment = fields.words();
  const bool is_ascending =
      std::ranges::adjacent_find(set.ranks, std::greater_equal<>{}) == set.ranks.end();
  const bool fits = !set.ranks.empty() && is_ascending && set.ranks.back() < kTasksMax &&
                    mpi < kMpisCount &&
                    (set.mpi != Mpi::kPmix || fits_ranks(set.pmix, set.ranks)) &&
                    (set.programs.size() == 1 || set.programs.size() == set.ranks.size());
  if (!fits) fields.is_good = false;
  return set;
}

StepLayout read_layout(Fields& fields) {
  StepLayout layout;
  layout.nodes = fields.numbers();
  layout.places = fields.numbers();
  const bool fits = layout.places.size() <= kTasksMax && all_below(layout.nodes, kNodesMax) &&
                    all_below(layout.places, layout.nodes.size());
  if (!fits) fields.is_good = false;
  return layout;
}

void put(std::string& out, const PmixMessage& message) {
  for (const std::uint32_t number : {static_cast<std::uint32_t>(message.kind), message.id,
                                     message.rank, static_cast<std::uint32_t>(message.status)}) {
    put(out, number);
  }
  put(out, message.ranks);
  put(out, message.words);
  put(out, std::string_view{message.data});
}

PmixMessage read_pmix(Fields& fields) {
  PmixMessage message;
  const std::uint32_t kind = fields.number();
  message.kind = static_cast<PmixKind>(kind);
  message.id = fields.number();
  message.rank = fields.number();
  message.status = static_cast<std::int32_t>(fields.number());
  message.ranks = fields.numbers();
  message.words = fields.words();
  message.data = fields.text();
  const bool is_ascending =
      std::ranges::adjacent_find(message.ranks, std::greater_equal<>{}) == message.ranks.end();
  const bool fits = kind >= 1 && kind < kPmixKindsEnd && message.rank < kTasksMax && is_ascending;
  if (!fits) fields.is_good = false;
  return message;
}

void put(std::string& out, const std::vector<TaskEnd>& ends) {
  put(out, static_cast<std::uint32_t>(ends.size()));
  for (const TaskEnd& end : ends) {
    put(out, end.rank);
    put(out, end.wait_status);
    put(out, std::string_view{end.used});
  }
}

std::vector<TaskEnd> read_ends(Fields& fields) {
  std::vector<TaskEnd> ends;
  for (std::uint32_t count = fields.number(); count > 0 && fields.is_good; --count) {
    TaskEnd end{.rank = fields.number(), .wait_status = fields.number()};
    end.used = fields.text();
    ends.push_back(std::move(end));
  }
  const bool is_ascending =
      std::ranges::adjacent_find(ends, std::greater_equal<>{}, &TaskEnd::rank) == ends.end();
  if (ends.empty() || !is_ascending || ends.back().rank >= kTasksMax) fields.is_good = false;
  return ends;
}

}  // namespace

std::string encode(const Message& message) {
  std::string body;
  put(body, message.rank);
  put(body, message.number);
  put(body, std::string_view{message.text});
  if (message.step) put(body, *message.step);
  if (message.tasks) put(body, *message.tasks);
  if (message.layout) {
    put(body, message.layout->nodes);
    put(body, message.layout->places);
  }
  if (message.pmix) put(body, *message.pmix);
  if (!message.ends.empty()) put(body, message.ends);
  std::string out;
  put(out, static_cast<std::uint32_t>(message.kind));
  put(out, std::string_view{body});
  return out;
}

std::optional<Message> MessageReader::next() {
  if (is_broken_ || pending_.size() < kHeadBytes) return std::nullopt;
  Fields head{std::string_view{pending_}.substr(0, kHeadBytes)};
  const std::uint32_t kind = head.number();
  const std::uint32_t size = head.number();
  if (kind < 1 || kind > kKindMax || size > kMessageBytesMax) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (pending_.size() < kHeadBytes + size) return std::nullopt;
  Message message{.kind = static_cast<Kind>(kind)};
  Fields fields{std::string_view{pending_}.substr(kHeadBytes, size)};
  message.rank = fields.number();
  message.number = fields.number();
  message.text = fields.text();
  if (message.kind == Kind::kCreate) message.step = read_step(fields);
  if (message.kind == Kind::kRun) message.tasks = read_tasks(fields);
  if (message.kind == Kind::kCreated) message.layout = read_layout(fields);
  if (message.kind == Kind::kPmix) message.pmix = read_pmix(fields);
  if (message.kind == Kind::kExited) message.ends = read_ends(fields);
  if (!fields.is_good || !fields.left.empty()) {
    is_broken_ = true;
    return std::nullopt;
  }
  pending_.erase(0, kHeadBytes + size);
  return message;
}

}  // namespace launcher
