#include "kube/token_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kube/testing/manual_clock.h"

namespace kube {
namespace {

// A token file as kubelet mounts it into a pod, and a clock that stands still.
class TokenSourceTest : public testing::Test {
 protected:
  TokenSourceTest() { std::filesystem::create_directories(directory_); }
  ~TokenSourceTest() override { std::filesystem::remove_all(directory_); }
  void write(const std::string& text) { std::ofstream{file_} << text; }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("kube-token-source-" + std::to_string(getpid()));
  std::string file_ = (directory_ / "token").string();
  ManualClock clock_;
};

// The newline of the first token is not a part of it. kubelet replaces the token long before the
// old one expires, so a minute is early enough, and a read for each request would be too much.
TEST_F(TokenSourceTest, ReadsTheFileAgainWhenItIsAMinuteOld) {
  write("first\n");
  TokenSource source{"", file_, clock_};
  EXPECT_EQ(*source.token(), "first");
  write("second");
  clock_.advance(std::chrono::seconds{59});
  EXPECT_EQ(*source.token(), "first");
  clock_.advance(std::chrono::seconds{1});
  EXPECT_EQ(*source.token(), "second");
}

// The server decides whether the token still counts.
TEST_F(TokenSourceTest, KeepsTheLastTokenWhenTheFileIsGone) {
  write("first");
  TokenSource source{"", file_, clock_};
  EXPECT_EQ(*source.token(), "first");
  std::filesystem::remove(file_);
  clock_.advance(std::chrono::hours{1});
  EXPECT_EQ(*source.token(), "first");
}

// A request without a token would be one of an anonymous user, and its refusal would name a missing
// right instead of the missing file.
TEST_F(TokenSourceTest, FileThatWasNeverThereIsAnError) {
  TokenSource source{"", file_, clock_};
  EXPECT_EQ(source.token().error().code, base::Code::kUnauthenticated);
  write(" \n");
  EXPECT_EQ(source.token().error().message, "the token file " + file_ + " is empty");
}

// refresh() says false, so that the caller hands on the server's refusal and does not repeat the
// request.
TEST_F(TokenSourceTest, FixedTokenStaysAndCannotBeRefreshed) {
  TokenSource source{"fixed", "", clock_};
  EXPECT_EQ(*source.token(), "fixed");
  EXPECT_FALSE(source.refresh("fixed"));
}

}  // namespace
}  // namespace kube
