// The books at an instant on the nodes that are ripe by then. Nodes a to d of 4 cores.
#include "scheduler/backfill/ripe_books.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// 7 on a and b ends at 30, 8 on c at 60, 9 on d at 90. Asked is about a job of one whole node:
// which nodes are ripe, and which it gets.
class RipeBooksTest : public ::testing::Test {
 protected:
  RipeBooksTest() {
    world_.running(7, "ab", 30);
    world_.running(8, "c", 60);
    world_.running(9, "d", 90);
    JobRequest request = job(99, 1);
    request.tasks = 4;
    asks_ = &world_.submit(request);
    ripening_.emplace(world_.cluster, world_.ends_at(1), NodeNeeds{.cores = 4});
  }
  std::string ask(double instant, const std::string& letters) {
    return ask_first(kAll, instant, letters);
  }
  // The first `count` nodes that are ripe by then.
  std::string ask_first(std::size_t count, double instant, const std::string& letters) {
    const RipeBooks::Then then =
        books_.with({at(instant), count}, *ripening_, world_.set_of(letters));
    return world_.letters_of(then.nodes) + ": " + world_.chosen(then.books, *asks_, then.nodes);
  }
  std::string real() {
    return world_.chosen(world_.books.selector(), *asks_, world_.set_of("abcd"));
  }

  static constexpr std::size_t kAll = 4;
  EndsWorld world_{EndsWorld::of_cores()};
  Job* asks_ = nullptr;
  std::optional<Ripening> ripening_;
  RipeBooks books_{world_.cluster, world_.books, world_.ends};
};

TEST_F(RipeBooksTest, JobsThatEndByThenAreGoneFromTheRipeNodesInQuestion) {
  EXPECT_EQ(ask(29, "abcd"), ": -");
  EXPECT_EQ(ask(30, "abcd"), "ab: a");
  EXPECT_EQ(ask(60, "bcd"), "bc: b");
  EXPECT_EQ(ask(90, "d"), "d: d");
}

TEST_F(RipeBooksTest, OnlyTheFirstOfTheRipeNodesMayBeAskedAbout) {
  EXPECT_EQ(ask_first(2, 90, "bcd"), "b: b") << "a and b are the first";
  EXPECT_EQ(ask_first(3, 90, "cd"), "c: c");
  EXPECT_EQ(ask(90, "d"), "d: d");
}

// Goal: a question sees no job gone that ends after its instant. Method: 9 is gone from d at 90;
// then a job that needs one core of d asks, of which one is free now.
TEST_F(RipeBooksTest, AQuestionAboutAnEarlierInstantBeginsAnew) {
  world_.end(9);
  Allocation some;
  some.nodes.push_back({.node = world_.cluster.find_node("d").value(),
                        .cores = CoreSet::first(3),
                        .cpus = 3});
  Job& on_d = world_.submit(10, 1);
  world_.admission.withdraw(on_d);
  world_.books.begin(on_d, world_.in("p"), some, {.shares_nodes = true}, at(0));
  world_.books.set_ready(on_d, at(0));
  on_d.time_limit = seconds(90);
  Ripening whole{world_.cluster, world_.ends_at(1), {.cores = 4}};
  Ripening one{world_.cluster, world_.ends, {.cores = 1}};
  const NodeSet d = world_.set_of("d");
  EXPECT_EQ(world_.chosen(books_.with({at(90), kAll}, whole, d).books, *asks_, d), "d");
  EXPECT_EQ(world_.chosen(books_.with({at(1), kAll}, one, d).books, *asks_, d), "-")
      << "three are taken";
}

TEST_F(RipeBooksTest, ReleasedTheyAreTheRealBooks) {
  EXPECT_EQ(ask(90, "abcd"), "abcd: a");
  books_.release();
  EXPECT_EQ(real(), "-");
  EXPECT_EQ(ask(60, "c"), "c: c");
}

// The chains of ends are those of another generation.
TEST_F(RipeBooksTest, AfterAChangeTheEndsAreChainedAnew) {
  EXPECT_EQ(ask(30, "a"), "a: a");
  books_.release();
  world_.end(7);
  world_.running(6, "ab", 20);
  ripening_.emplace(world_.cluster, world_.ends_at(2), NodeNeeds{.cores = 4});
  EXPECT_EQ(ask(19, "ab"), ": -");
  EXPECT_EQ(ask(20, "ab"), "ab: a");
}

}  // namespace
}  // namespace sched::testing
