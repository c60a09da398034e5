#include "cli/import/remarks.h"

#include <algorithm>
#include <map>

#include "slurm/text.h"

namespace cli {
namespace {

// Returns the text with '?' for control characters: files may have any, and remarks go to
// terminals.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20U || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

std::size_t Remarks::count(RemarkKind kind) const {
  const auto is_of = [&](const auto& remark) { return std::get<0>(remark) == kind; };
  return static_cast<std::size_t>(std::count_if(remarks_.begin(), remarks_.end(), is_of));
}

std::vector<std::string> Remarks::texts(const std::vector<std::string>& file_names) const {
  std::vector<std::string> texts;
  std::map<std::size_t, std::size_t> foreign;  // count of each file
  for (const auto& [kind, file, line, text] : remarks_) {
    if (kind == RemarkKind::kForeign) {
      ++foreign[file];
      continue;
    }
    texts.push_back(printable(file_names.at(file) + ":" + std::to_string(line) + ": " + text));
  }
  for (const auto& [file, count] : foreign) {
    texts.push_back(printable(file_names.at(file)) + ": " + std::to_string(count) +
                    (count == 1 ? " parameter is" : " parameters are") + " not about scheduling");
  }
  return texts;
}

std::string about(const std::string& subject, const std::string& message) {
  if (slurm::same_word(message.substr(0, subject.size()), subject)) return message;
  return subject + ": " + message;
}

}  // namespace cli
