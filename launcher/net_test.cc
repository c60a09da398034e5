#include "launcher/net.h"

#include <gtest/gtest.h>

#include <set>

namespace launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

// A name server that has denied a name keeps to that for 5 s (CoreDNS).
TEST(NameInTurn, EachRestsForMoreThanFiveSecondsAndIsTheSameInAllPods) {
  const system_clock::time_point begin{std::chrono::seconds{1'700'000'000}};
  std::set<std::string> asked;
  for (int turn = 0; turn < 30; ++turn) {
    const auto name = [&](int ms) {
      return name_in_turn("_first-%._tcp.job.ns.svc.k8s.example.", 30,
                          begin + milliseconds{turn * 200 + ms});
    };
    EXPECT_EQ(name(0), name(199)) << turn;
    EXPECT_TRUE(asked.insert(name(0)).second) << name(0);
  }
  EXPECT_TRUE(asked.contains("_first-0._tcp.job.ns.svc.k8s.example."));
  EXPECT_TRUE(asked.contains("_first-29._tcp.job.ns.svc.k8s.example."));
  EXPECT_EQ(name_in_turn("whole", 1, begin), "whole0") << "not a pattern";
}

}  // namespace
}  // namespace launcher
