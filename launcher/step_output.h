// Passes on the output of a step's tasks: to srun's own, or to files, whole lines at a time, with
// the rank in front of each line if asked for.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace launcher {

class StepOutput {
 public:
  using Write = std::function<void(int fd, std::string_view bytes)>;
  // fds: of standard output and of standard error, for each rank.
  StepOutput(std::vector<std::array<int, 2>> fds, bool has_labels, bool is_unbuffered, Write write);

  // `stream` is 1 or 2.
  void add(std::uint32_t rank, int stream, std::string_view bytes);
  // The task has ended: writes the line that it has begun.
  void end(std::uint32_t rank);

 private:
  void write_line(std::uint32_t rank, int stream, std::string_view line);

  const std::vector<std::array<int, 2>> fds_;
  const bool has_labels_;
  const bool is_unbuffered_;
  const Write write_;
  int label_width_ = 1;
  std::map<std::pair<std::uint32_t, int>, std::string> begun_;
};

}  // namespace launcher
