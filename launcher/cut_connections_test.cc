// Connections between the pods of a job that are cut on the way: steps go on, and no message is
// lost or doubled.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <string>

#include "launcher/testing/job_of_pods.h"

namespace launcher {
namespace {

class CutConnections : public JobOfPods {
 protected:
  CutConnections() { way_ = std::make_unique<Proxy>(loop_, port_); }

  void pass_running_time(std::chrono::seconds time) {
    for (RunTime::Duration left = time; left.count() > 0; left -= RunTime::kStep) {
      ahead_ += RunTime::kStep;
      for (const auto& [index, node] : nodes_) (void)node->look(now());
      (void)hub_->look(now());
      loop_.wait(0);
    }
  }
  static void say(Srun& srun, std::uint32_t rank, const std::string& line) {
    srun.channel->send({.kind = Kind::kInput, .rank = rank, .text = line});
  }
};

// Nothing runs while a gang is frozen, so the launchers hear of it at their next turn.
TEST_F(CutConnections, OneThatWasDroppedWhileFrozenIsMadeAgain) {
  begin_node(1);
  begin_node(2);
  const auto srun = ask(shell("echo up; read a; echo got $a", 3, 3));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n2:up\n"; }));
  way_->cut();
  ahead_ += std::chrono::hours{5};
  const int before = way_->connections();
  for (const std::uint32_t rank : {0U, 1U, 2U}) say(*srun, rank, "it\n");
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:up\ngot it\n1:up\ngot it\n2:up\ngot it\n");
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{0, 0}, {1, 0}, {2, 0}}));
  EXPECT_FALSE(srun->has(Kind::kLost));
  EXPECT_GE(way_->connections() - before, 2);
}

// The step begins on connections whose cut neither side has noticed yet.
TEST_F(CutConnections, AStepMayBeginOnOne) {
  begin_node(1);
  begin_node(2);
  const auto first = ask(shell("echo first", 3, 3));
  ASSERT_TRUE(wait_for([&] { return first->has(Kind::kDone); }));
  (void)wait_for([&, looks = 0]() mutable { return ++looks > 20; });
  way_->cut();
  const auto srun = ask(shell("echo here", 3, 3));
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
  EXPECT_EQ(srun->output(), "0:here\n1:here\n2:here\n");
  EXPECT_FALSE(srun->has(Kind::kLost));
}

// Cut again and again, at any byte, also while it is being made again.
TEST_F(CutConnections, NothingIsLostOrDoubledHoweverOftenItHappens) {
  begin_node(1);
  StepRequest request = shell("cat", 1, 1);
  request.required = {1};
  const auto srun = ask(request);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kCreated); }));
  std::string sent;
  for (int i = 0; sent.size() < 3U << 20U; ++i) sent += std::to_string(i) + "\n";
  // Pieces of any size, and so any number of them in what is kept.
  std::mt19937 random{1};
  for (std::size_t at = 0, size = 0; at < sent.size(); at += size) {
    size = 1 + random() % (random() % 8 == 0 ? kChunkBytesMax : 2'000);
    say(*srun, kAllTasks, sent.substr(at, size));
  }
  srun->channel->send({.kind = Kind::kInputEnd, .rank = kAllTasks});
  int looks = 0;
  ASSERT_TRUE(wait_for([&] {
    if (++looks % (1 + static_cast<int>(random() % 60)) == 0) way_->cut();
    ahead_ += RunTime::kStep;
    return srun->has(Kind::kDone);
  }));
  EXPECT_TRUE(srun->output() == "0:" + sent) << srun->output().size() << " of " << sent.size();
  EXPECT_GT(way_->connections(), 20);
}

TEST_F(CutConnections, ThatOfASrunInAnotherPodIsMadeAgain) {
  begin_node(1);
  begin_node(2);
  const auto outer = ask(shell("echo $KUBEGANG_STEPS; read a", 2, 2));
  ASSERT_TRUE(wait_for([&] { return outer->output().find("\n1:") != std::string::npos; }));
  std::string address = outer->output().substr(outer->output().find("\n1:") + 3);
  address.pop_back();
  StepRequest request = shell("echo up; read a; echo got $a", 1, 1);
  request.overlaps = true;
  const auto inner = ask(request, address);
  ASSERT_TRUE(wait_for([&] { return inner->output() == "0:up\n"; }));
  way_->cut();
  say(*inner, 0, "it\n");
  ASSERT_TRUE(wait_for([&] { return inner->has(Kind::kDone); }));
  EXPECT_EQ(inner->output(), "0:up\ngot it\n");
  say(*outer, kAllTasks, "go\n");
  ASSERT_TRUE(wait_for([&] { return outer->has(Kind::kDone); }));
  // The end of srun is not taken for a cut, also if srun leaves output unread.
  auto killed = ask(shell("exec yes", 4, 2), address);
  ASSERT_TRUE(wait_for([&] { return killed->output().size() > kPiledUpBytesMax; }));
  killed.reset();
  const auto next = ask(shell("echo next", 4, 2));
  EXPECT_TRUE(wait_for([&] { return next->has(Kind::kDone); }));
}

// Both ends give up in the same way, but not for the time that the gang is frozen.
TEST_F(CutConnections, OneThatStaysCutEndsTheTasksOfItsNode) {
  begin_node(1);
  const auto srun = ask(shell("echo up; read a; echo got $a", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n"; }));
  way_->close_for_all(true);
  way_->cut();
  (void)wait_for([&, looks = 0]() mutable { return ++looks > 20; });
  for (int i = 0; i < 20; ++i) {
    ahead_ += std::chrono::hours{1};
    pass_running_time(std::chrono::seconds{1});
  }
  EXPECT_TRUE(srun->ends().empty());
  EXPECT_TRUE(nodes_[1]->has_tasks());
  pass_running_time(std::chrono::minutes{3});
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kLost) && !nodes_[1]->has_tasks(); }));
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{1, SIGKILL}}));
  // The next step takes the node as soon as it is there again.
  way_->close_for_all(false);
  StepRequest request = shell("echo next", 1, 1);
  request.required = {1};
  request.overlaps = true;
  const auto next = ask(request);
  ASSERT_TRUE(wait_for([&] { return next->has(Kind::kDone); }));
  EXPECT_EQ(next->output(), "0:next\n");
}

// A launcher that runs again is not the one whose connection was cut.
TEST_F(CutConnections, ALauncherThatBeginsAgainHasNoTasksOfBefore) {
  begin_node(1);
  const auto srun = ask(shell("echo up; sleep 100", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n"; }));
  way_->cut();
  begin_node(1);
  ASSERT_TRUE(wait_for([&] { return srun->has(Kind::kLost); }));
  EXPECT_EQ(srun->ends(), (std::map<std::uint32_t, std::uint32_t>{{1, SIGKILL}}));
}

// A connection that is resumed must be known.
TEST_F(CutConnections, NobodyGoesOnWithWhatIsNotTheirs) {
  begin_node(1);
  const auto srun = ask(shell("echo up; read a", 2, 2));
  ASSERT_TRUE(wait_for([&] { return srun->output() == "0:up\n1:up\n"; }));
  const Tls tls{key_of('k')};
  const auto fd = connect_to("127.0.0.1", port_);
  bool is_closed = false;
  std::vector<Message> heard;
  Channel channel{loop_, *fd, tls.for_client(*fd),
                  Channel::Calls{.message = [&](const Message& m) { heard.push_back(m); },
                                 .closed = [&] { is_closed = true; }}};
  channel.send({.kind = Kind::kResume, .number = 1, .text = "another"});
  ASSERT_TRUE(wait_for([&] { return is_closed; }));
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].kind, Kind::kRefused);
  say(*srun, kAllTasks, "go\n");
  EXPECT_TRUE(wait_for([&] { return srun->has(Kind::kDone); }));
}

TEST(Ledger, KeepsWhatHasNotCome) {
  Ledger ledger;
  for (const char* word : {"a", "bb", "ccc"}) ledger.said(word);
  EXPECT_EQ(ledger.kept(), "abbccc");
  EXPECT_TRUE(ledger.has_come(2));
  EXPECT_EQ(ledger.kept(), "ccc");
  EXPECT_EQ(ledger.kept_bytes(), 3U);
  EXPECT_FALSE(ledger.has_come(1)) << "it has heard two";
  EXPECT_FALSE(ledger.has_come(4)) << "three were said";
  EXPECT_TRUE(ledger.has_come(3));
  EXPECT_EQ(ledger.kept(), "");
}

}  // namespace
}  // namespace launcher
