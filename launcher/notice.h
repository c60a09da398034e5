// sbatch --signal: a signal before the time limit. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace launcher {

struct Notice {
  int signal = 0;
  std::chrono::milliseconds after{};  // of the job's time
  bool to_script = false;             // else to the tasks of all steps
  friend bool operator==(const Notice&, const Notice&) = default;
};

// Reads one option of the launcher into it; leaves it alone if the option is another one. The
// operator alone writes these (operator/gang/batch_pod.cc): --signal=SIGUSR1 first, then
// --signal-after-ms=N and --signal-to-script.
void read_notice_option(std::string_view word, std::optional<Notice>& notice);

}  // namespace launcher
