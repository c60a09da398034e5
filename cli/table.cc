#include "cli/table.h"

#include <algorithm>

#include "base/check.h"

namespace cli {
namespace {

// Continuation bytes of UTF-8 take no column.
bool begins_column(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
}

}  // namespace

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_column));
}

std::string cut_to_width(std::string_view text, std::size_t width_max) {
  std::size_t width = 0;
  const auto end = std::find_if(text.begin(), text.end(),
                                [&](char c) { return begins_column(c) && ++width > width_max; });
  return {text.begin(), end};
}

// squeue's default format, so that scripts and eyes that know it find their way.
std::array<Column, 8> squeue_columns() {
  return {Column{"JOBID", 8}, {"PARTITION", 9}, {"NAME", 8},  {"USER", 8},
          {"ST", 2},          {"TIME", 10},     {"NODES", 6}, {"NODELIST(REASON)", 0, true}};
}

// START_TIME has a place more than squeue's %.19S: times here end with the Z of UTC.
std::array<Column, 9> squeue_start_columns() {
  return {Column{"JOBID", 8},
          {"PARTITION", 9},
          {"NAME", 8},
          {"USER", 8},
          {"ST", 2},
          {"START_TIME", 20},
          {"NODES", 6},
          {"SCHEDNODES", 20, true},
          {"NODELIST(REASON)", 0, true}};
}

// Two passes: the widths, then the lines. A column never cuts a value: squeue does, and users have
// to ask again with --Format; `queue` cuts by itself where a terminal is too narrow.
// For example the columns {"JOBID", 8} and {"USER", 8} with the row {"7", "team-a"}:
//
//      JOBID     USER
//          7   team-a
std::string format_table(std::span<const Column> columns,
                         std::span<const std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    widths.push_back(std::max(column.width_min, width_of(column.title)));
  }
  for (const std::vector<std::string>& row : rows) {
    CHECK(row.size() == columns.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  const auto add_line = [&](const auto& value_at) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& value = value_at(i);
      const std::string blanks(widths[i] - width_of(value), ' ');
      if (i != 0) text += ' ';
      if (!columns[i].left) text += blanks;
      text += value;
      // No blanks at the end of a line: terminals would wrap them, and diffs would show them.
      if (columns[i].left && i + 1 != columns.size()) text += blanks;
    }
    text += '\n';
  };
  add_line([&](std::size_t i) -> const std::string& { return columns[i].title; });
  for (const std::vector<std::string>& row : rows) {
    add_line([&](std::size_t i) -> const std::string& { return row[i]; });
  }
  return text;
}

}  // namespace cli
