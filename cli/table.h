// Text tables as Slurm prints them: right-aligned columns with a least width, grown to the longest
// value, one blank between.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

// Returns the columns that a text in UTF-8 takes on the screen; characters of double width count as
// one.
std::size_t width_of(std::string_view text);

// Returns the text without the characters behind the first `width_max` columns.
std::string cut_to_width(std::string_view text, std::size_t width_max);

struct Column {
  std::string title;
  std::size_t width_min = 0;
  bool left = false;  // left-aligned; in the last column without blanks behind it
};

// SOURCE: squeue(1), default format: %.18i %.9P %.8j %.8u %.2t %.10M %.6D %R
std::array<Column, 8> squeue_columns();

// SOURCE: squeue(1), --start: %.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R
std::array<Column, 9> squeue_start_columns();

// Title line and rows, each ended by a newline. REQUIRES: every row has one value per column.
std::string format_table(std::span<const Column> columns,
                         std::span<const std::vector<std::string>> rows);

}  // namespace cli
