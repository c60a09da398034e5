#include "launcher/step_output.h"

namespace launcher {
namespace {

// A line that is longer is written in parts, so a program without line breaks costs no memory.
constexpr std::size_t kLineBytesMax = 1U << 16U;

}  // namespace

StepOutput::StepOutput(std::vector<std::array<int, 2>> fds, bool has_labels, bool is_unbuffered,
                       Write write)
    : fds_{std::move(fds)},
      has_labels_{has_labels},
      is_unbuffered_{is_unbuffered},
      write_{std::move(write)} {
  if (!fds_.empty()) label_width_ = static_cast<int>(std::to_string(fds_.size() - 1).size());
}

void StepOutput::write_line(std::uint32_t rank, int stream, std::string_view line) {
  const int fd = fds_[rank][static_cast<std::size_t>(stream - 1)];
  if (!has_labels_) return write_(fd, line);
  const std::string number = std::to_string(rank);
  std::string labeled(static_cast<std::size_t>(label_width_) - number.size(), ' ');
  labeled += number + ": ";
  labeled += line;
  if (!line.ends_with('\n')) labeled += '\n';
  write_(fd, labeled);
}

void StepOutput::add(std::uint32_t rank, int stream, std::string_view bytes) {
  if (rank >= fds_.size() || stream < 1 || stream > 2) return;
  if (is_unbuffered_ && !has_labels_) return write_line(rank, stream, bytes);
  std::string& begun = begun_[{rank, stream}];
  if (!has_labels_) {
    // All whole lines at once.
    const std::size_t end = bytes.rfind('\n');
    if (end != std::string_view::npos) {
      begun += bytes.substr(0, end + 1);
      write_line(rank, stream, begun);
      begun.clear();
      bytes.remove_prefix(end + 1);
    }
  }
  while (has_labels_) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) break;
    begun += bytes.substr(0, end + 1);
    write_line(rank, stream, begun);
    begun.clear();
    bytes.remove_prefix(end + 1);
  }
  begun += bytes;
  // A line that comes in pieces is as many lines with labels, as in Slurm.
  if (begun.size() < kLineBytesMax && (!is_unbuffered_ || begun.empty())) return;
  write_line(rank, stream, begun);
  begun.clear();
}

void StepOutput::end(std::uint32_t rank) {
  for (const int stream : {1, 2}) {
    const auto begun = begun_.find({rank, stream});
    if (begun == begun_.end()) continue;
    if (!begun->second.empty()) write_line(rank, stream, begun->second);
    begun_.erase(begun);
  }
}

}  // namespace launcher
