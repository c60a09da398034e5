#include "slurm/dependency.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

#include "slurm/array.h"
#include "slurm/exit_code.h"
#include "slurm/text.h"

namespace slurm {
namespace {

using sched::DependencyKind;

constexpr std::array<std::pair<std::string_view, DependencyKind>, 6> kDependencyKinds = {{
    {"after", DependencyKind::kAfter},
    {"afterany", DependencyKind::kAfterAny},
    {"afterok", DependencyKind::kAfterOk},
    {"afternotok", DependencyKind::kAfterNotOk},
    {"aftercorr", DependencyKind::kAfterCorr},
    {"singleton", DependencyKind::kSingleton},
}};
constexpr std::array<std::string_view, 2> kMissingKinds = {"afterburstbuffer", "expand"};

// One part between the separators, read into its terms.
class PartReader {
 public:
  PartReader(std::string_view what, std::string_view part, sched::Dependency& into)
      : what_{what}, part_{part}, into_{into} {}

  base::Status read() {
    std::vector<std::string> words = split(part_, ':');
    if (words.empty()) return wrong("a part is empty");
    const auto kind = std::ranges::find_if(
        kDependencyKinds, [&](const auto& each) { return same_word(words.front(), each.first); });
    for (const std::string_view missing : kMissingKinds) {
      if (same_word(words.front(), missing)) {
        return wrong(std::string{missing} + " is not supported; leave it out");
      }
    }
    // Numbers alone are afterany.
    const bool has_kind = kind != kDependencyKinds.end();
    if (!has_kind && words.front().find_first_not_of("0123456789") != std::string::npos) {
      return wrong("there is no kind of dependency " + in_quotes(words.front()) +
                   "; use after, afterany, afterok, afternotok, aftercorr or singleton");
    }
    sched::DependencyTerm term{.kind = has_kind ? kind->second : DependencyKind::kAfterAny};
    if (has_kind) words.erase(words.begin());
    if (term.kind == DependencyKind::kSingleton) {
      if (!words.empty()) return wrong("singleton names no job");
      add(term);
      return {};
    }
    if (words.empty() || words.front().empty()) return wrong("the number of a job is missing");
    for (const std::string& word : words) {
      const base::Status status = read_job(word, term);
      if (!status) return status;
      add(term);
    }
    return {};
  }

 private:
  base::Status wrong(const std::string& why) const {
    return base::Error{kEndsWithOne, std::string{what_} + " " + in_quotes(part_) + ": " + why};
  }

  // Reads "12", "12_3", or "12+5". A delay counts for the jobs behind it too, as recorded.
  base::Status read_job(std::string_view word, sched::DependencyTerm& term) const {
    const std::size_t plus = word.find('+');
    const std::optional<sched::JobId> job = parse_job_id(word.substr(0, plus));
    if (!job) return wrong(in_quotes(word) + " is not the number of a job");
    if (job->is_task() && term.kind == DependencyKind::kAfterCorr) {
      return wrong("aftercorr names an array as a whole");
    }
    term.job = *job;
    if (plus == std::string_view::npos) return {};
    if (term.kind != DependencyKind::kAfter) return wrong("a delay (+) goes with after alone");
    // SOURCE: recorded: 0 is refused.
    const auto minutes = parse_integer(what_, word.substr(plus + 1), {.min = 1});
    if (!minutes) return wrong(in_quotes(word) + " is not a job and minutes, like 12+5");
    term.delay = std::chrono::minutes{*minutes};
    return {};
  }

  void add(const sched::DependencyTerm& term) {
    if (std::ranges::count(into_.terms, term) == 0) into_.terms.push_back(term);
  }

  std::string_view what_;
  std::string_view part_;
  sched::Dependency& into_;
};

}  // namespace

base::Result<sched::Dependency> parse_dependency(std::string_view what, std::string_view text) {
  sched::Dependency all;
  if (text.empty()) return all;
  all.any = text.find('?') != std::string_view::npos;
  if (all.any && text.find(',') != std::string_view::npos) {
    return base::Error{kEndsWithOne, std::string{what} + " " + in_quotes(text) +
                                         ": use either , (all) or ? (any)"};
  }
  for (const std::string& part : split(text, all.any ? '?' : ',')) {
    const base::Status status = PartReader{what, part, all}.read();
    if (!status) return status.error();
    if (all.terms.size() > kDependencyTermsMax) {
      return base::Error{kEndsWithOne, std::string{what} + ": more than " +
                                           std::to_string(kDependencyTermsMax) + " jobs"};
    }
  }
  return all;
}

std::string_view name_of(DependencyKind kind) {
  return std::ranges::find(kDependencyKinds, kind,
                           &std::pair<std::string_view, DependencyKind>::second)
      ->first;
}

std::string format_term(const sched::DependencyTerm& term) {
  std::string text{name_of(term.kind)};
  if (term.kind == DependencyKind::kSingleton) return text;
  text += ":" + to_string(term.job);
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(term.delay).count();
  return minutes == 0 ? text : text + "+" + std::to_string(minutes);
}

}  // namespace slurm
