#include "launcher/notice.h"

#include <signal.h>

#include <array>
#include <charconv>
#include <utility>

namespace launcher {
namespace {

// Those of the CRD. The numbers are this machine's.
constexpr std::array<std::pair<std::string_view, int>, 16> kSignals = {{{"SIGHUP", SIGHUP},
                                                                        {"SIGINT", SIGINT},
                                                                        {"SIGQUIT", SIGQUIT},
                                                                        {"SIGABRT", SIGABRT},
                                                                        {"SIGKILL", SIGKILL},
                                                                        {"SIGUSR1", SIGUSR1},
                                                                        {"SIGUSR2", SIGUSR2},
                                                                        {"SIGALRM", SIGALRM},
                                                                        {"SIGTERM", SIGTERM},
                                                                        {"SIGCONT", SIGCONT},
                                                                        {"SIGSTOP", SIGSTOP},
                                                                        {"SIGTSTP", SIGTSTP},
                                                                        {"SIGTTIN", SIGTTIN},
                                                                        {"SIGTTOU", SIGTTOU},
                                                                        {"SIGURG", SIGURG},
                                                                        {"SIGXCPU", SIGXCPU}}};

}  // namespace

void read_notice_option(std::string_view word, std::optional<Notice>& notice) {
  constexpr std::string_view kName = "--signal=";
  constexpr std::string_view kAfter = "--signal-after-ms=";
  if (word.starts_with(kName)) {
    for (const auto& [name, number] : kSignals) {
      if (word.substr(kName.size()) == name) notice = Notice{.signal = number};
    }
  }
  if (!notice) return;
  if (word == "--signal-to-script") notice->to_script = true;
  if (!word.starts_with(kAfter)) return;
  word.remove_prefix(kAfter.size());
  std::int64_t milliseconds = 0;
  (void)std::from_chars(word.data(), word.data() + word.size(), milliseconds);
  notice->after = std::chrono::milliseconds{milliseconds};
}

}  // namespace launcher
