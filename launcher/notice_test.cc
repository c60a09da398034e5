#include "launcher/notice.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace launcher {
namespace {

TEST(Notice, IsReadFromTheOptionsOfTheOperator) {
  std::optional<Notice> notice;
  for (const char* word :
       {"--output=a", "--signal=SIGUSR2", "--signal-after-ms=30000", "--signal-to-script"}) {
    read_notice_option(word, notice);
  }
  EXPECT_EQ(notice,
            (Notice{.signal = SIGUSR2, .after = std::chrono::seconds{30}, .to_script = true}));
}

TEST(Notice, IsNoneWithoutASignal) {
  std::optional<Notice> notice;
  read_notice_option("--signal-after-ms=30000", notice);
  EXPECT_FALSE(notice);
}

}  // namespace
}  // namespace launcher
