#include "node-agent/freezer/frozen_time.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "linux/cgroup_file.h"

namespace agent {
namespace {

// "frozen_usec 123\n" and what later kernels may add.
constexpr std::size_t kStatBytesMax = 512;
constexpr std::string_view kKey = "frozen_usec ";

}  // namespace

// One "key value" for each line, in no promised order.
std::optional<base::Duration> parse_frozen_time(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(kKey)) continue;
    const std::string_view number = line.substr(kKey.size());
    std::int64_t micros = 0;
    const char* end = number.data() + number.size();
    const auto [rest, error] = std::from_chars(number.data(), end, micros);
    if (error != std::errc{} || rest != end || micros < 0) return std::nullopt;
    return base::Duration{micros};
  }
  return std::nullopt;
}

// The file is missing on kernels that do not count frozen time and on v1 (freezer.md 2.5): no
// value, no error.
std::optional<base::Duration> read_frozen_time(const PodCgroup& cgroup) {
  const base::Result<os::FileDescriptor> file =
      os::open_beneath(cgroup.directory.get(), "cgroup.stat.local", O_RDONLY);
  if (!file) return std::nullopt;
  std::array<char, kStatBytesMax> buffer;
  const os::FileText stat = os::read_file(file->get(), buffer);
  if (stat.result != IoResult::kOk) return std::nullopt;
  return parse_frozen_time(stat.text);
}

}  // namespace agent
