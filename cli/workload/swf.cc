#include "cli/workload/swf.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "slurm/text.h"

namespace cli {
namespace {

constexpr std::size_t kFieldsCount = 18;
// The fields in the order of the file, as messages name them.
constexpr std::array<std::string_view, kFieldsCount> kNames = {"job number",
                                                               "submit time",
                                                               "wait time",
                                                               "run time",
                                                               "allocated processors",
                                                               "average CPU time",
                                                               "used memory",
                                                               "requested processors",
                                                               "requested time",
                                                               "requested memory",
                                                               "status",
                                                               "user",
                                                               "group",
                                                               "executable",
                                                               "queue",
                                                               "partition",
                                                               "preceding job",
                                                               "think time"};
// SOURCE: the Standard Workload Format of the Parallel Workloads Archive, version 2.2: 18 numbers
// in a line, -1 for what is not known, comments after a semicolon. Only these fields matter for a
// scenario.
// swf.h says why the others are not used.
enum Field : std::size_t {
  kNumber = 0,
  kSubmit = 1,
  kRun = 3,
  kAllocated = 4,
  kRequested = 7,
  kTime = 8,
  kMemory = 9,
  kStatus = 10,
  kUser = 11,
  kGroup = 12,
  kQueue = 14
};

// Larger numbers are mistakes: 95 years in seconds, a pebibyte in KiB. They also keep sums of times
// within 64 bits, in microseconds.
constexpr std::int64_t value_max(std::size_t field) {
  return field == kSubmit || field == kRun || field == kTime ? kSwfSecondsMax : 1'000'000'000'000;
}
// The numbers of a line as they are written; some archives have fractions of seconds. A double
// holds every integer that value_max() lets pass.
using Fields = std::array<double, kFieldsCount>;

// A carriage return is one as well, for files with lines that end in "\r\n".
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// Returns the words of the line up to a comment. A line that is only a comment has none.
// A loop and not a stream: a trace may have 256 MiB, and a word is a view into the text.
std::vector<std::string_view> words_of(std::string_view line) {
  line = line.substr(0, line.find(';'));
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < line.size();) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < line.size() && !is_blank(line[end])) ++end;
    words.push_back(line.substr(i, end - i));
    i = end;
  }
  return words;
}

// Returns all 18 numbers of a line. Those that are not used must be numbers, too: a line with a
// text in it is another format.
base::Result<Fields> fields_of(const std::vector<std::string_view>& words) {
  if (words.size() != kFieldsCount) {
    return base::invalid_argument("has " + std::to_string(words.size()) + " fields; a job has " +
                                  std::to_string(kFieldsCount));
  }
  Fields fields{};
  for (std::size_t i = 0; i < kFieldsCount; ++i) {
    const char* const end = words[i].data() + words[i].size();
    const auto [stop, error] = std::from_chars(words[i].data(), end, fields[i]);
    if (error != std::errc{} || stop != end ||
        // Negated, so that NaN, which compares false with everything, is refused too.
        !(std::abs(fields[i]) <= static_cast<double>(value_max(i)))) {
      return base::invalid_argument("field " + std::to_string(i + 1) + " (" +
                                    std::string{kNames[i]} + ") " + slurm::in_quotes(words[i]) +
                                    ": must be a number of at most " +
                                    std::to_string(value_max(i)));
    }
  }
  return fields;
}

// Seconds as a duration; nullopt for a negative number, which the format uses for "not known".
std::optional<base::Duration> time_of(double seconds) {
  if (seconds < 0) return std::nullopt;
  return base::Duration{std::llround(seconds * 1e6)};
}

// The same for counts and numbers; larger ones than the type holds are cut to its largest. A
// fraction is cut off.
// Without the cut a conversion of what the type cannot hold would be undefined. 64 bits need none,
// since value_max() bounds all fields.
template <typename Integer>
std::optional<Integer> number_of(double value) {
  if (value < 0) return std::nullopt;
  constexpr double kMax = static_cast<double>(std::numeric_limits<std::int32_t>::max());
  if constexpr (sizeof(Integer) == sizeof(std::int32_t)) value = std::min(value, kMax);
  return static_cast<Integer>(value);
}

// Returns the fields of a line that a scenario needs. Only the submit time must be known. Run time
// 0 is kept: such jobs exist, and add_trace() decides what to make of them.
base::Result<SwfJob> job_of(const Fields& fields) {
  const std::optional<base::Duration> submit = time_of(fields[kSubmit]);
  if (!submit) return base::invalid_argument("field 2 (submit time): is missing");
  SwfJob job;
  job.number = static_cast<std::int64_t>(fields[kNumber]);
  job.submit = *submit;
  job.run = time_of(fields[kRun]);
  // No job has 0 processors, no time or no memory: that is another way to write "not known".
  const auto positive = [&](Field field) { return fields[field] >= 1 ? fields[field] : -1; };
  job.processors_allocated = number_of<int>(positive(kAllocated));
  job.processors_requested = number_of<int>(positive(kRequested));
  job.requested_time = time_of(positive(kTime));
  job.requested_memory_kib = number_of<std::int64_t>(positive(kMemory));
  job.status = number_of<int>(fields[kStatus]);
  job.user = number_of<int>(fields[kUser]);
  job.group = number_of<int>(fields[kGroup]);
  job.queue = number_of<int>(fields[kQueue]);
  return job;
}

// Returns "-1" if it is not known. These two write what time_of() and number_of()
// read.
template <typename Integer>
std::string text_of(const std::optional<Integer>& value) {
  return value ? std::to_string(*value) : "-1";
}
std::string text_of(const std::optional<base::Duration>& time) {
  return time ? std::to_string(std::chrono::round<std::chrono::seconds>(*time).count()) : "-1";
}

}  // namespace

// An error names the line and the field and ends the reading: a trace with one job missing would
// give other results without a word. The bound on jobs counts jobs, not lines, because archives
// have long headers.
// One pass without a list of lines; the trace itself has 112 bytes for each job.
base::Result<SwfTrace> read_swf(std::string_view text, const std::string& file) {
  SwfTrace trace;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(begin, end - begin));
    begin = end + 1;
    ++number;
    if (words.empty()) continue;
    const std::string place = file + ":" + std::to_string(number);
    const base::Result<Fields> fields = fields_of(words);
    if (!fields) return fields.error().with_context(place);
    const base::Result<SwfJob> job = job_of(*fields);
    if (!job) return job.error().with_context(place);
    if (trace.size() == kSwfJobsMax) {
      return base::invalid_argument(place + ": more than " + std::to_string(kSwfJobsMax) + " jobs");
    }
    trace.push_back(*job);
  }
  // Archives have lines out of order. Jobs of the same second keep the order of the file.
  std::stable_sort(trace.begin(), trace.end(),
                   [](const SwfJob& a, const SwfJob& b) { return a.submit < b.submit; });
  return trace;
}

// Does the inverse of read_swf(), with whole seconds. Fields that a SwfJob does not have are -1.
// Each line of `comment` becomes a comment of the file.
std::string write_swf(const SwfTrace& trace, std::string_view comment) {
  std::string text = "; Version: 2.2\n";
  for (const std::string& line : slurm::split(comment, '\n')) text += "; " + line + "\n";
  for (const SwfJob& job : trace) {
    const std::array<std::string, kFieldsCount> fields = {std::to_string(job.number),
                                                          text_of(std::optional{job.submit}),
                                                          "-1",
                                                          text_of(job.run),
                                                          text_of(job.processors_allocated),
                                                          "-1",
                                                          "-1",
                                                          text_of(job.processors_requested),
                                                          text_of(job.requested_time),
                                                          text_of(job.requested_memory_kib),
                                                          text_of(job.status),
                                                          text_of(job.user),
                                                          text_of(job.group),
                                                          "-1",
                                                          text_of(job.queue),
                                                          "-1",
                                                          "-1",
                                                          "-1"};
    for (std::size_t i = 0; i < kFieldsCount; ++i) text += (i == 0 ? "" : " ") + fields[i];
    text += "\n";
  }
  return text;
}

}  // namespace cli
