// Tables of sacct and sshare: named fields with widths, or values with | between them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/slurm/format.h"
#include "cli/slurm/reference.h"
#include "slurm/text.h"

namespace cli {

template <class Row>
struct RecordField {
  std::string_view name;
  std::size_t width;
  std::string (*value)(const Row&);  // null: kubegang does not know it, and it is empty
  bool at_left = false;
};

enum class RecordForm { kTable, kEnded, kBetween };  // neither, --parsable, --parsable2

template <class Row>
class RecordTable {
 public:
  RecordForm form = RecordForm::kTable;
  std::string delimiter = "|";

  // Reads --format: "jobid%20,name%-8" (a minus: at the left).
  base::Status set_columns(std::span<const RecordField<Row>> fields, std::string_view format) {
    columns_.clear();
    for (const std::string& word : slurm::split(format, ',')) {
      if (word.empty()) continue;
      const std::size_t percent = std::min(word.find('%'), word.size());
      const std::string name = word.substr(0, percent);
      const auto field = std::ranges::find_if(
          fields, [&](const auto& f) { return slurm::same_word(f.name, name); });
      if (field == fields.end()) {
        return base::invalid_argument("Invalid field requested: \"" + name + "\"");
      }
      Column column{.field = &*field, .width = field->width, .at_left = field->at_left};
      std::string width = word.substr(std::min(percent + 1, word.size()));
      // SOURCE: a width that is given says the side, too.
      if (!width.empty()) column.at_left = width.starts_with('-');
      if (width.starts_with('-')) width.erase(0, 1);
      if (!width.empty()) {
        const auto count = slurm::parse_integer("width", width, {.min = 0, .max = kFormatWidthMax});
        if (!count) return count.error();
        column.width = static_cast<std::size_t>(*count);
      }
      columns_.push_back(column);
    }
    return {};
  }

  // Returns true if a column has this value.
  bool has(std::string (*value)(const Row&)) const {
    return std::ranges::any_of(columns_, [&](const Column& c) { return c.field->value == value; });
  }

  void print_heading(std::ostream& out) const {
    std::vector<std::string> names;
    std::vector<std::string> lines;
    for (const Column& column : columns_) {
      names.emplace_back(column.field->name);
      lines.emplace_back(column.width, '-');
    }
    print(names, true, out);
    if (form == RecordForm::kTable) print(lines, true, out);
  }

  void print_row(const Row& row, std::ostream& out) const {
    std::vector<std::string> values;
    for (const Column& column : columns_) {
      values.push_back(column.field->value == nullptr ? "" : column.field->value(row));
    }
    print(values, false, out);
  }

 private:
  struct Column {
    const RecordField<Row>* field = nullptr;
    std::size_t width = 0;
    bool at_left = false;
  };

  // SOURCE: a value that is too long ends in a plus.
  static std::string cell(const Column& column, std::string text, bool is_heading) {
    if (column.width == 0) return " ";
    if (!is_heading && width_of(text) > column.width && column.width > 0) {
      text = cut_to_width(text, column.width - 1) + "+";
    }
    return placed(std::move(text), column.width, !column.at_left) + " ";
  }

  void print(const std::vector<std::string>& values, bool is_heading, std::ostream& out) const {
    std::string line;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const bool is_last = i + 1 == values.size();
      if (form == RecordForm::kTable) {
        line += cell(columns_[i], values[i], is_heading);
      } else {
        line += values[i];
        if (!is_last || form == RecordForm::kEnded) line += delimiter;
      }
    }
    out << line << "\n";
  }

  std::vector<Column> columns_;
};

template <class Row>
std::vector<FieldReference> references_of(std::span<const RecordField<Row>> fields) {
  std::vector<FieldReference> all;
  for (const RecordField<Row>& field : fields) {
    all.push_back({.letter = "",
                   .name = std::string{field.name},
                   .is_constant = field.value == nullptr,
                   .constant = ""});
  }
  return all;
}

// SOURCE: --helpformat has four names in a line.
template <class Row>
void list_fields(std::span<const RecordField<Row>> fields, std::ostream& out) {
  std::size_t in_line = 0;
  for (const RecordField<Row>& field : fields) {
    out << placed(std::string{field.name}, 19, false);
    if (++in_line % 4 == 0) out << "\n";
  }
  out << "\n";
}

}  // namespace cli
