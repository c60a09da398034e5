#include "e2e/devcluster/pod_log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "kube/api/time_format.h"
#include "kube/clock.h"

namespace devcluster {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
// How much one read may bring; the server asks again for more.
constexpr std::size_t kReadBytesMax = 65536;

// Returns the offset at which the last `lines` lines begin; 0 if there are fewer. A line break at
// the very end belongs to the last line.
// Reads the whole file: logs of a demo are small.
std::int64_t tail_offset(const std::string& path, std::int64_t lines) {
  std::ifstream in{path};
  std::ostringstream stream;
  stream << in.rdbuf();
  const std::string text = std::move(stream).str();
  std::size_t at = text.size();
  // From the end to the front, one line for each line break that is met.
  if (at > 0 && text[at - 1] == '\n') --at;
  for (; at > 0; --at) {
    if (text[at - 1] == '\n' && --lines <= 0) break;
  }
  return lines <= 0 ? static_cast<std::int64_t>(at) : 0;
}

// A file as the answer to GET …/log. With `follow` it goes on until the container has ended and all
// its output has been read. One thread reads; any may cancel.
class LogStream final : public BodyStream {
 public:
  LogStream(LogFile log, const PodLogRequest& request)
      : log_{std::move(log)},
        file_{::open(log_.path.c_str(), O_RDONLY | O_CLOEXEC)},
        follow_{request.follow},
        has_times_{request.timestamps},
        bytes_left_{request.limit_bytes.value_or(INT64_MAX)} {
    if (request.tail_lines && *request.tail_lines == 0) {
      // "tailLines: 0" asks only for what comes from now on.
      ::lseek(file_.get(), 0, SEEK_END);
    } else if (request.tail_lines) {
      ::lseek(file_.get(), tail_offset(log_.path, *request.tail_lines), SEEK_SET);
    }
  }

  // Returns kOpen with or without text if more may come, kEnd if none will. Waits `wait` at most,
  // in short naps: a file cannot be polled.
  StreamState read(std::string& out, base::Duration wait) override {
    const auto deadline = std::chrono::steady_clock::now() + wait;
    while (!cancelled_.load()) {
      const bool was_ended = log_.ended->load();  // before reading: what came until then is read
      if (read_more(out)) return bytes_left_ == 0 ? StreamState::kEnd : StreamState::kOpen;
      // Nothing was there, and the container had ended before that look: nothing more comes.
      if (!follow_ || was_ended) return StreamState::kEnd;
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) return StreamState::kOpen;
      const auto pause = std::min<std::chrono::nanoseconds>(left, kLookEvery);
      ::poll(nullptr, 0,
             static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(pause).count()));
    }
    return StreamState::kEnd;
  }

  void cancel() override { cancelled_.store(true); }

 private:
  // Appends what the file has beyond the last read, up to kReadBytesMax; false if there is nothing
  // more, or the limit is reached.
  bool read_more(std::string& out) {
    std::array<char, kReadBytesMax> buffer{};
    const auto wanted = static_cast<std::size_t>(
        std::min<std::int64_t>(bytes_left_, static_cast<std::int64_t>(buffer.size())));
    // A container that has not started has no file yet, and then no log.
    const ssize_t count = file_.is_open() ? ::read(file_.get(), buffer.data(), wanted) : 0;
    if (count <= 0) return false;
    add(out, {buffer.data(), static_cast<std::size_t>(count)});
    bytes_left_ -= count;
    return true;
  }

  // A process's output has no times, so each line has that at which it is read.
  void add(std::string& out, std::string_view text) {
    if (!has_times_) {
      out += text;
      return;
    }
    while (!text.empty()) {
      if (!is_in_line_) out += kube::format_micro_time(kube::SystemClock{}.wall()) + " ";
      const std::size_t end = text.find('\n');
      is_in_line_ = end == std::string_view::npos;
      const std::size_t size = is_in_line_ ? text.size() : end + 1;
      out += text.substr(0, size);
      text.remove_prefix(size);
    }
  }

  const LogFile log_;
  const os::FileDescriptor file_;
  const bool follow_;
  const bool has_times_;
  bool is_in_line_ = false;  // what was read last did not end a line
  std::int64_t bytes_left_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace

// Called by the API server for each GET …/pods/NAME/log.
PodLogHook pod_log_hook(const Kubelet& kubelet) {
  return [&kubelet](const PodLogRequest& request) -> base::Result<std::shared_ptr<BodyStream>> {
    // Refused and not ignored: an answer with too many lines would look right.
    if (request.since_seconds) {
      return base::invalid_argument(
          "sinceSeconds is not supported: the devcluster keeps a process's output as it is, "
          "without times");
    }
    if (request.previous) {
      return base::Error{base::Code::kNotFound,
                         "previous terminated container in pod \"" + request.pod + "\" not found"};
    }
    base::Result<LogFile> log = kubelet.find_log(request.ns, request.pod, request.container);
    if (!log.ok()) return log.error();
    return std::shared_ptr<BodyStream>{
        std::make_shared<LogStream>(std::move(log).value(), request)};
  };
}

}  // namespace devcluster
