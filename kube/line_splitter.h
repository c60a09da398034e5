// Cuts a stream of bytes into lines.
#pragma once

#include <string>
#include <string_view>

namespace kube {

class LineSplitter {
 public:
  enum class Outcome { kMore, kStopped, kTooLong };

  explicit LineSplitter(std::size_t line_bytes_max) : line_bytes_max_{line_bytes_max} {}

  // Calls on_line (bool(std::string_view)) for each complete line, empty ones left out, until it
  // returns false. The rest is kept for the next call.
  template <typename OnLine>
  Outcome feed(std::string_view bytes, OnLine&& on_line) {
    while (true) {
      const std::size_t end = bytes.find('\n');
      if (end == std::string_view::npos) break;
      std::string_view line = bytes.substr(0, end);
      bytes.remove_prefix(end + 1);
      if (partial_.size() + line.size() > line_bytes_max_) return Outcome::kTooLong;
      if (!partial_.empty()) {
        partial_ += line;
        line = partial_;
      }
      const bool go_on = line.empty() || on_line(line);
      partial_.clear();
      if (!go_on) return Outcome::kStopped;
    }
    if (partial_.size() + bytes.size() > line_bytes_max_) return Outcome::kTooLong;
    partial_ += bytes;
    return Outcome::kMore;
  }

  // Calls on_line for what stands behind the last newline, if there is anything.
  template <typename OnLine>
  void finish(OnLine&& on_line) {
    if (!partial_.empty()) (void)on_line(std::string_view{partial_});
  }

 private:
  const std::size_t line_bytes_max_;
  std::string partial_;
};

}  // namespace kube
