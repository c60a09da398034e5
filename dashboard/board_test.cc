#include "dashboard/board.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace dashboard {
namespace {

using Json = nlohmann::json;

Json since(const Board& board, std::uint64_t seen) {
  return Json::parse(board.since(seen, base::instant_from_micros(7)).json);
}

TEST(Board, TellsAFirstReaderEverything) {
  Board board;
  board.set("jobs", "a", "1");
  board.set("nodes", "n1", "{\"x\":2}");
  EXPECT_EQ(since(board, 0), Json::parse(R"({"now":7,"full":true,"gone":{},
            "set":{"jobs":{"a":1},"nodes":{"n1":{"x":2}}}})"));
}

// Goal: a reader hears only of what is newer, whatever other readers have heard.
TEST(Board, TellsAReaderOnlyWhatChangedSince) {
  int changes = 0;
  Board board{[&] { ++changes; }};
  board.set("jobs", "a", "1");
  board.set("jobs", "b", "1");
  const std::uint64_t seen = board.version();
  board.set("jobs", "b", "1");  // no change
  EXPECT_EQ(board.version(), seen);
  board.set("jobs", "b", "2");
  board.remove("jobs", "a");
  board.remove("jobs", "never there");
  EXPECT_EQ(since(board, seen), Json::parse(R"({"now":7,"full":false,
            "set":{"jobs":{"b":2}},"gone":{"jobs":["a"]}})"));
  EXPECT_EQ(changes, 4);
}

TEST(Board, ANameThatComesBackIsNotGone) {
  Board board;
  board.set("jobs", "a", "1");
  const std::uint64_t seen = board.version();
  board.remove("jobs", "a");
  board.set("jobs", "a", "1");
  EXPECT_EQ(since(board, seen)["gone"], Json::object());
  EXPECT_EQ(since(board, seen)["set"], Json::parse(R"({"jobs":{"a":1}})"));
}

// Goal: what is remembered of removals is bounded. Method: one more than that; a reader from before
// gets everything instead.
TEST(Board, TellsAReaderThatIsFarBehindEverything) {
  Board board;
  board.set("jobs", "kept", "1");
  board.set("jobs", "first", "1");
  const std::uint64_t seen = board.version();
  for (int i = 0; i <= 10'000; ++i) {
    board.set("jobs", "x", "1");
    board.remove("jobs", "x");
  }
  EXPECT_TRUE(since(board, seen)["full"]);
  EXPECT_FALSE(since(board, board.version() - 2)["full"]);
}

// Goal: a reader hears of what is in their sight alone, of removals too.
TEST(Board, TellsAReaderWhatIsInTheirSight) {
  Board board;
  board.set("jobs", "a", "1", "jobs/a");
  board.set("jobs", "b", "1", "jobs/b");
  board.set("about", "server", "1");
  EXPECT_EQ(board.scopes(), (Sight{"jobs/a", "jobs/b"}));
  const Sight sight{"jobs/a"};
  const auto seen_by = [&](std::uint64_t seen) {
    return Json::parse(board.since(seen, base::instant_from_micros(7), &sight).json);
  };
  EXPECT_EQ(seen_by(0)["set"], Json::parse(R"({"about":{"server":1},"jobs":{"a":1}})"));
  const std::uint64_t seen = board.version();
  board.set("jobs", "b", "2", "jobs/b");
  board.remove("jobs", "b");
  EXPECT_EQ(seen_by(seen), Json::parse(R"({"now":7,"full":false,"set":{},"gone":{}})"));
  board.remove("jobs", "a");
  EXPECT_EQ(seen_by(seen)["gone"], Json::parse(R"({"jobs":["a"]})"));
  EXPECT_EQ(board.scopes(), Sight{});
}

// A name is a JSON string whatever is in it.
TEST(Board, QuotesNames) {
  Board board;
  board.set("jobs", "\"}</script>\n\xff", "1");
  EXPECT_EQ(since(board, 0)["set"]["jobs"].size(), 1U);
}

}  // namespace
}  // namespace dashboard
