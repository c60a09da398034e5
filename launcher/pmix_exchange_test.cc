#include "launcher/pmix_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace launcher {
namespace {

using PmixReply = PmixExchange::Reply;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

PmixMessage fence(std::uint32_t id, std::vector<std::uint32_t> ranks, std::string data) {
  return {
      .kind = PmixKind::kFence, .id = id, .ranks = std::move(ranks), .data = std::move(data)};
}
PmixReply fenced(std::uint32_t place, std::uint32_t id, std::string data) {
  return {place, {.kind = PmixKind::kFenced, .id = id, .data = std::move(data)}};
}
PmixReply refused(std::uint32_t place, PmixKind kind, std::uint32_t id) {
  return {place, {.kind = kind, .id = id, .status = kPmixFailed}};
}

// Five tasks on three nodes.
class Exchange : public testing::Test {
 protected:
  std::vector<PmixReply> say(std::uint32_t place, const PmixMessage& message, bool is_good = true) {
    std::vector<PmixReply> replies;
    EXPECT_EQ(exchange_.add(place, message, replies), is_good);
    return replies;
  }

  PmixExchange exchange_{{0, 0, 1, 1, 2}};
};

TEST_F(Exchange, AFenceEndsWhenAllNodesOfItsRanksHaveCome) {
  EXPECT_THAT(say(2, fence(5, {}, "c")), IsEmpty());
  EXPECT_THAT(say(0, fence(6, {}, "a")), IsEmpty());
  // Other ranks, another fence.
  EXPECT_THAT(say(0, fence(7, {1, 2}, "x")), IsEmpty());
  EXPECT_THAT(say(1, fence(8, {1, 2}, "y")), ElementsAre(fenced(0, 7, "xy"), fenced(1, 8, "xy")));
  EXPECT_THAT(say(1, fence(9, {}, "b")),
              ElementsAre(fenced(0, 6, "abc"), fenced(1, 9, "abc"), fenced(2, 5, "abc")));
  // One of a node alone.
  EXPECT_THAT(say(2, fence(1, {4}, "z")), ElementsAre(fenced(2, 1, "z")));
}

TEST_F(Exchange, FencesOfTheSameRanksEndInOrder) {
  EXPECT_THAT(say(0, fence(1, {0, 4}, "a")), IsEmpty());
  EXPECT_THAT(say(0, fence(2, {0, 4}, "b")), IsEmpty());
  EXPECT_THAT(say(2, fence(3, {0, 4}, "c")), ElementsAre(fenced(0, 1, "ac"), fenced(2, 3, "ac")));
  EXPECT_THAT(say(2, fence(4, {0, 4}, "d")), ElementsAre(fenced(0, 2, "bd"), fenced(2, 4, "bd")));
}

TEST_F(Exchange, ANodeIsAskedForWhatItsTaskHasPut) {
  const auto asked = say(0, {.kind = PmixKind::kAsk, .id = 3, .rank = 4});
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].place, 2U);
  EXPECT_EQ(asked[0].message.rank, 4U);
  const PmixMessage answer{
      .kind = PmixKind::kAnswer, .id = asked[0].message.id, .status = -2, .data = "d"};
  EXPECT_THAT(say(1, answer, false), IsEmpty());  // not the one that was asked
  const PmixMessage passed{.kind = PmixKind::kAnswer, .id = 3, .status = -2, .data = "d"};
  EXPECT_THAT(say(2, answer), ElementsAre(PmixReply{0, passed}));
  EXPECT_THAT(say(2, answer, false), IsEmpty());  // once
}

TEST_F(Exchange, NobodyWaitsForANodeThatIsGone) {
  say(0, fence(1, {}, "a"));
  say(0, fence(2, {0, 4}, "a"));
  say(0, fence(3, {0, 2}, "a"));
  say(0, {.kind = PmixKind::kAsk, .id = 4, .rank = 4});
  const auto own = say(2, {.kind = PmixKind::kAsk, .id = 5, .rank = 0});
  std::vector<PmixReply> replies;
  exchange_.lose(2, replies);
  EXPECT_THAT(replies, UnorderedElementsAre(refused(0, PmixKind::kFenced, 1),
                                            refused(0, PmixKind::kFenced, 2),
                                            refused(0, PmixKind::kAnswer, 4)));
  EXPECT_THAT(say(1, fence(6, {}, "b")), ElementsAre(refused(1, PmixKind::kFenced, 6)));
  EXPECT_THAT(say(1, {.kind = PmixKind::kAsk, .id = 7, .rank = 4}),
              ElementsAre(refused(1, PmixKind::kAnswer, 7)));
  // The question may still be answered, which has no effect.
  ASSERT_EQ(own.size(), 1U);
  EXPECT_THAT(say(0, {.kind = PmixKind::kAnswer, .id = own[0].message.id}), IsEmpty());
  EXPECT_THAT(say(1, fence(8, {0, 2}, "b")), ElementsAre(fenced(0, 3, "ab"), fenced(1, 8, "ab")));
}

TEST_F(Exchange, TheFirstEndCounts) {
  say(0, {.kind = PmixKind::kAbort, .rank = 2, .status = 7}, false);  // not its task
  say(1, {.kind = PmixKind::kLeft, .rank = 9}, false);
  EXPECT_FALSE(exchange_.end());
  say(1, {.kind = PmixKind::kAbort, .rank = 2, .status = 7});
  say(0, {.kind = PmixKind::kLeft, .rank = 0});
  EXPECT_EQ(exchange_.end(), (PmixExchange::End{.rank = 2, .exit_code = 7}));
}

TEST_F(Exchange, WhatANodeMayNotSayChangesNothing) {
  say(0, fence(1, {7}, "a"), false);     // no such task
  say(0, fence(1, {2, 3}, "a"), false);  // none of its tasks
  say(0, {.kind = PmixKind::kAsk, .rank = 5}, false);
  say(0, {.kind = PmixKind::kFenced}, false);
  say(0, {.kind = PmixKind::kEnvironment}, false);
  EXPECT_THAT(say(1, fence(2, {2, 3}, "b")), ElementsAre(fenced(1, 2, "b")));
}

TEST_F(Exchange, MoreThanFitsIsRefused) {
  const std::string half(kPmixBytesMax / 2, 'x');
  say(0, fence(1, {0, 2}, half));
  EXPECT_THAT(say(1, fence(2, {0, 2}, half)), UnorderedElementsAre(refused(0, PmixKind::kFenced, 1),
                                                         refused(1, PmixKind::kFenced, 2)));
  say(0, fence(3, {0, 2}, "a"));
  EXPECT_THAT(say(1, fence(4, {0, 2}, "b")), ElementsAre(fenced(0, 3, "ab"), fenced(1, 4, "ab")));
}

// Whatever comes in whatever order: each fence and each question has one answer, at its node.
TEST(ExchangeOfMany, EveryoneIsAnsweredOnce) {
  std::mt19937 random{1};
  for (int round = 0; round < 300; ++round) {
    const auto nodes = 1 + static_cast<std::uint32_t>(random() % 5);
    std::vector<std::uint32_t> places;
    for (std::uint32_t rank = 0; rank < nodes * 3; ++rank) places.push_back(rank % nodes);
    PmixExchange exchange{places};
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> answers;  // by place and id
    std::vector<PmixReply> replies;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order;  // place, fence
    for (std::uint32_t place = 0; place < nodes; ++place) {
      for (std::uint32_t id = 0; id < 4; ++id) order.emplace_back(place, id);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::map<std::uint32_t, std::uint32_t> next;
    for (const auto& [place, ignored] : order) {
      const std::uint32_t id = next[place]++;
      ASSERT_TRUE(exchange.add(place, fence(id, {}, std::to_string(id)), replies));
    }
    for (const PmixReply& reply : replies) {
      ++answers[{reply.place, reply.message.id}];
      EXPECT_EQ(reply.message.data,
                std::string(nodes, static_cast<char>('0' + reply.message.id)));
    }
    EXPECT_EQ(answers.size(), nodes * 4);
    for (const auto& [who, count] : answers) EXPECT_EQ(count, 1);
  }
}

}  // namespace
}  // namespace launcher
