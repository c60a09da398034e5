// CPU time and memory of processes of this machine, from /proc, and a process that is started for a
// measurement.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace kubernetes_bench {

double cpu_seconds(pid_t pid);  // user and system, all threads; 0 when it is gone
// CPU time of each thread by its name, in nanoseconds; those of one name together. The main thread
// is "loop". Threads that have ended are not in it.
using ThreadTimes = std::map<std::string, std::int64_t>;
ThreadTimes thread_times(pid_t pid);
double rss_mebibytes(pid_t pid);
double peak_rss_mebibytes(pid_t pid);

// Ends with this object or with this process, whatever ends that.
class ChildProcess {
 public:
  // stdout and stderr go to the file.
  static base::Result<ChildProcess> start(const std::vector<std::string>& command,
                                          const std::string& log_file);
  ~ChildProcess();  // SIGTERM, and waits
  ChildProcess(ChildProcess&& other) noexcept : pid_{std::exchange(other.pid_, 0)} {}
  ChildProcess& operator=(ChildProcess&&) = delete;

  pid_t pid() const { return pid_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_{pid} {}

  pid_t pid_ = 0;
};

}  // namespace kubernetes_bench
