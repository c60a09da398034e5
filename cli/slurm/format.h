// Formats of Slurm's commands: letters ("%.18i %j") and lists of fields ("jobid:10,name").
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.h"
#include "slurm/text.h"

namespace cli {

// A field of Slurm's. Fields that say something of what kubegang does not have print what Slurm
// prints where it is not configured.
template <class Row>
struct SlurmField {
  char letter;            // of --format; '\0': it has none
  std::string_view name;  // of --Format, in lower case; "": it has none
  std::string_view heading;
  std::string (*value)(const Row&);  // null: the constant, always
  std::string_view constant{};
  // Shortens a value that is wider than its place; null: to its beginning.
  std::string (*cut)(const Row&, const std::string& value, std::size_t width,
                     bool at_right) = nullptr;

  std::string of(const Row& row) const {
    return value == nullptr ? std::string{constant} : value(row);
  }
};

template <class Row>
struct FormatCell {
  std::string text_before;
  const SlurmField<Row>* field = nullptr;  // null: text alone
  std::size_t width = 0;                   // 0: as wide as the value
  bool at_right = false;
};

inline constexpr std::size_t kFormatWidthMax = 4'096;
inline constexpr std::size_t kLongFieldWidth = 20;  // of a field of --Format without one

// Cuts or pads to the width, if there is one.
inline std::string placed(std::string text, std::size_t width, bool at_right) {
  if (width == 0) return text;
  text = cut_to_width(text, width);
  const std::string blanks(width - std::min(width, width_of(text)), ' ');
  return at_right ? blanks + text : text + blanks;
}

// Reads "[.][width]", for example "8" or ".18"; `at` is moved behind it.
template <class Row>
void read_width(std::string_view text, std::size_t& at, FormatCell<Row>& cell) {
  cell.at_right = at < text.size() && text[at] == '.';
  if (cell.at_right) ++at;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    cell.width =
        std::min(cell.width * 10 + static_cast<std::size_t>(text[at] - '0'), kFormatWidthMax);
  }
}

// Reads --format. As Slurm does, an unknown field stays as it is written; `unknown` gets its
// letter. SOURCE: recorded: several "%" are one, and one at the end is none.
template <class Row>
std::vector<FormatCell<Row>> read_letters(std::span<const SlurmField<Row>> fields,
                                          std::string_view format,
                                          std::vector<std::string>& unknown) {
  std::vector<FormatCell<Row>> cells(1);
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      cells.back().text_before += format[i];
      continue;
    }
    if (i + 1 == format.size()) break;
    if (format[i + 1] == '%') continue;
    std::size_t at = i + 1;
    FormatCell<Row> cell;
    read_width(format, at, cell);
    const char letter = at < format.size() ? format[at] : '\0';
    const auto field = std::ranges::find_if(
        fields, [&](const auto& f) { return letter != '\0' && f.letter == letter; });
    if (field == fields.end()) {
      unknown.push_back(std::string(letter == '\0' ? 0 : 1, letter));
      cells.back().text_before += format.substr(i, at + 1 - i);
    } else {
      cell.text_before = std::move(cells.back().text_before);
      cell.field = &*field;
      cells.back() = std::move(cell);
      cells.emplace_back();
    }
    i = at;
  }
  return cells;
}

// Reads --Format: "name[:[.][width][suffix]],…". An unknown field prints nothing. SOURCE: recorded:
// with a colon and no width a value has the width that it needs.
template <class Row>
std::vector<FormatCell<Row>> read_fields(std::span<const SlurmField<Row>> fields,
                                         std::string_view list, std::vector<std::string>& unknown) {
  std::vector<FormatCell<Row>> cells(1);
  for (const std::string& word : slurm::split(list, ',')) {
    if (word.empty()) continue;
    const std::size_t colon = std::min(word.find(':'), word.size());
    const std::string name = slurm::lower_case(std::string_view{word}.substr(0, colon));
    const auto field = std::ranges::find_if(fields, [&](const auto& f) { return f.name == name; });
    if (field == fields.end()) {
      unknown.push_back(word.substr(0, colon));
      continue;
    }
    FormatCell<Row> cell;
    std::size_t at = std::min(colon + 1, word.size());
    read_width(word, at, cell);
    if (colon == word.size()) cell.width = kLongFieldWidth;
    cell.text_before = std::move(cells.back().text_before);
    cell.field = &*field;
    cells.back() = std::move(cell);
    cells.emplace_back();
    cells.back().text_before = word.substr(at);
  }
  return cells;
}

template <class Row>
std::string format_heading(std::span<const FormatCell<Row>> cells) {
  std::string line;
  for (const FormatCell<Row>& cell : cells) {
    line += cell.text_before;
    if (cell.field == nullptr) continue;
    line += placed(std::string{cell.field->heading}, cell.width, cell.at_right);
  }
  return line;
}

template <class Row>
std::string format_line(std::span<const FormatCell<Row>> cells, const Row& row) {
  std::string line;
  for (const FormatCell<Row>& cell : cells) {
    line += cell.text_before;
    if (cell.field == nullptr) continue;
    const std::string value = cell.field->of(row);
    const bool is_cut = cell.width > 0 && width_of(value) > cell.width;
    line += is_cut && cell.field->cut != nullptr
                ? cell.field->cut(row, value, cell.width, cell.at_right)
                : placed(value, cell.width, cell.at_right);
  }
  return line;
}

}  // namespace cli
