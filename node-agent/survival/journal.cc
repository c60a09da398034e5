#include "node-agent/survival/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "linux/file_descriptor.h"
#include "linux/text_file.h"

namespace agent {
namespace {

// One fact per line, a word and its values (journal.h). The number changes if an older agent could
// no longer read the text.
constexpr std::string_view kHeader = "kubegang-agent-journal 1";
constexpr std::string_view kKilled = "killed";

// Takes the text up to the next separator off the front.
// Without a separator all of the text is taken.
std::string_view take(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view{} : text.substr(at + 1);
  return head;
}

// The whole text must be a number. One that a crash has cut off would still be one; the line "end"
// guards against that.
std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Strict on purpose: a line that is not understood makes the whole journal damaged. A journal that
// was read in part would name too few pods, and those that it lacks would stay frozen forever.
// A word of a newer version is refused, too: to an older agent such a journal is damaged, and it
// waits for the API server to name the pods.
bool parse_line(std::string_view line, Journal& journal) {
  const std::string_view word = take(line, ' ');
  if (word == "boot") {
    journal.boot_id = line;
  } else if (word == "lease") {
    const std::optional<std::int64_t> at = parse_number(take(line, ' '));
    const std::optional<std::int64_t> renewed = parse_number(line);
    // "-": no renewTime has been read yet, and `at` is when that agent began to wait for one.
    if (!at || (!renewed && line != "-")) return false;
    journal.lease = LeaseSeen{.at = base::Duration{*at}};
    if (renewed) journal.lease->renew_time = base::instant_from_micros(*renewed);
  } else if (word == "rules") {
    // Three durations in microseconds, then "killed" or "-".
    Rules rules;
    for (base::Duration* value :
         {&rules.settings.settle, &rules.settings.barrier, &rules.settings.fail_open_after}) {
      const std::optional<std::int64_t> micros = parse_number(take(line, ' '));
      if (!micros || *micros < 0) return false;
      *value = base::Duration{*micros};
    }
    rules.kill_switch = line == kKilled;
    if (!rules.kill_switch && line != "-") return false;
    journal.rules = rules;
  } else if (word == "pod") {
    PodIdentity pod;
    pod.uid = take(line, ' ');
    pod.name = take(line, ' ');
    pod.job_uid = take(line, ' ');
    pod.path = line;
    if (pod.uid.empty() || pod.path.empty()) return false;
    journal.pods.push_back(std::move(pod));
  } else if (word == "unread" || word == "bound") {
    if (line.empty()) return false;
    (word == "unread" ? journal.unread : journal.bound).emplace_back(line);
  } else if (word == "timetable") {
    journal.timetable = line;
  } else {
    return false;
  }
  return true;
}

}  // namespace

// The order of the lines does not matter to the reader, except that "end" is the last.
std::string format_journal(const Journal& journal) {
  std::string text{kHeader};
  text += "\nboot " + journal.boot_id + "\n";
  if (journal.lease) {
    text += "lease " + std::to_string(journal.lease->at.count()) + " " +
            (journal.lease->renew_time
                 ? std::to_string(base::micros_since_epoch(*journal.lease->renew_time))
                 : "-") +
            "\n";
  }
  if (journal.rules) {
    const TimetableSettings& settings = journal.rules->settings;
    text += "rules";
    for (const base::Duration value :
         {settings.settle, settings.barrier, settings.fail_open_after}) {
      text += " " + std::to_string(value.count());
    }
    text += " " + std::string{journal.rules->kill_switch ? kKilled : "-"} + "\n";
  }
  for (const PodIdentity& pod : journal.pods) {
    // The path comes last, since it alone could contain a space.
    text += "pod " + pod.uid + " " + pod.name + " " + pod.job_uid + " " + pod.path + "\n";
  }
  for (const std::string& uid : journal.unread) text += "unread " + uid + "\n";
  for (const std::string& uid : journal.bound) text += "bound " + uid + "\n";
  if (!journal.timetable.empty()) text += "timetable " + journal.timetable + "\n";
  return text + "end\n";
}

// Reads all or nothing: a journal without its last line was cut off, and then the agent's pods are
// not known.
// Text behind "end" is not looked at.
base::Result<Journal> parse_journal(std::string_view text) {
  Journal journal;
  if (take(text, '\n') != kHeader) return base::invalid_argument("journal: not a journal");
  for (int number = 2; !text.empty(); ++number) {
    const std::string_view line = take(text, '\n');
    if (line == "end") {
      std::sort(journal.unread.begin(), journal.unread.end());
      std::sort(journal.bound.begin(), journal.bound.end());
      return journal;
    }
    if (!parse_line(line, journal)) {
      return base::invalid_argument("journal: line " + std::to_string(number) + " cannot be read");
    }
  }
  return base::invalid_argument("journal: cut off");
}

// Missing, of an earlier boot (both kNotFound), damaged, or the journal.
base::Result<Journal> JournalFile::read(std::string_view boot_id) const {
  const base::Result<std::string> text = os::read_text_file(path_, kJournalBytesMax);
  if (!text) return base::Error{text.error().code, "journal " + text.error().message};
  const base::Result<Journal> journal = parse_journal(*text);
  if (!journal) return journal.error().with_context(path_);
  // A reboot has thawed everything, and UIDs of cgroups from before it mean nothing.
  if (journal->boot_id == boot_id) return journal;
  return base::Error{base::Code::kNotFound, "journal " + path_ + ": of an earlier boot"};
}

// On an error, the old journal is still there and still right for what is frozen: the caller must
// not freeze anything that only the new one names.
base::Status JournalFile::write(const Journal& journal) const {
  // A new file that is renamed over the old one: a crash leaves one of the two, never half of one.
  const base::Status status = os::replace_text_file(path_, format_journal(journal));
  if (status) return {};
  return base::Error{status.error().code, "journal " + status.error().message};
}

// Reads a random UUID that the kernel makes at each boot. "" if it cannot be read; all journals of
// such a machine then count as of one boot.
std::string read_boot_id() {
  const os::FileDescriptor file{::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)};
  if (!file.is_open()) return {};
  char buffer[64];
  const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
  if (got <= 0) return {};
  std::string_view text{buffer, static_cast<std::size_t>(got)};
  return std::string{text.substr(0, text.find('\n'))};
}

}  // namespace agent
