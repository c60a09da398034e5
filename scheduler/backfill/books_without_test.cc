// The books without the jobs that end first, and without victims. Nodes a to d of 4 cores.
#include "scheduler/backfill/books_without.h"

#include <gtest/gtest.h>

#include <string>

#include "scheduler/testing/ends_world.h"

namespace sched::testing {
namespace {

// Jobs 1 to 4 on a to d end in this order; with two rows 5 to 8 are there too, and end later. Asked
// is which nodes a job of all four cores of one node gets.
class BooksWithoutTest : public ::testing::TestWithParam<int> {
 protected:
  BooksWithoutTest() {
    for (int i = 0; i < 4 * GetParam(); ++i) {
      world_.running(1 + i, std::string{static_cast<char>('a' + i % 4)}, 10 * (i + 1));
    }
    JobRequest request = job(99, 1);
    request.tasks = 4;
    asks_ = &world_.submit(request);
    world_.ends_at(1);
  }
  std::string chosen(std::size_t count, const std::string& letters,
                     const Victims* victims = nullptr) {
    return world_.chosen(books_.first(count, victims), *asks_, world_.set_of(letters));
  }
  // Returns this job as a victim, which ends as the index-th.
  Victims victim(std::int64_t id, std::size_t index) {
    Victims victims;
    victims.jobs.emplace_back(&world_.books.find(JobId{id})->select,
                              Selector::Trial::Keep::kNothing);
    victims.fates.resize(world_.ends.all().size());
    victims.fates[index] = Victims::Fate::kMustEnd;
    return victims;
  }

  EndsWorld world_{EndsWorld::of_cores(GetParam())};
  Job* asks_ = nullptr;
  BooksWithout books_{world_.cluster, world_.books, world_.ends};
};
INSTANTIATE_TEST_SUITE_P(Rows, BooksWithoutTest, ::testing::Values(1, 2));

// Goal: an answer does not depend on what was asked before. Method: more, fewer, and none.
TEST_P(BooksWithoutTest, SoManyJobsAreGone) {
  EXPECT_EQ(chosen(0, "abcd"), "-");
  EXPECT_EQ(chosen(2, "bcd"), "b");
  EXPECT_EQ(chosen(4, "cd"), "c");
  EXPECT_EQ(chosen(3, "d"), "-") << "4 came back";
  EXPECT_EQ(chosen(1, "abcd"), "a");
  EXPECT_EQ(chosen(1, "bcd"), "-");
  EXPECT_EQ(chosen(0, "abcd"), "-");
}

// Goal: a question sees the jobs on its nodes gone that end by its instant, and no other. Method:
// later, earlier, on other nodes, and by count in between.
TEST_P(BooksWithoutTest, OnSomeNodesJobsAreGoneThatEndByThen) {
  if (GetParam() == 2) return;  // cores cannot be counted there
  const auto on = [&](const std::string& letters, double instant) {
    const NodeSet nodes = world_.set_of(letters);
    return world_.chosen(books_.on(nodes, at(instant)), *asks_, nodes);
  };
  EXPECT_EQ(on("abcd", 9), "-");
  EXPECT_EQ(on("abcd", 10), "a");
  EXPECT_EQ(on("bcd", 20), "b");
  EXPECT_EQ(on("cd", 40), "c");
  EXPECT_EQ(on("cd", 29), "-") << "3 and 4 are back";
  EXPECT_EQ(chosen(1, "abcd"), "a") << "and no job of these nodes is gone";
  EXPECT_EQ(chosen(1, "cd"), "-");
  EXPECT_EQ(on("d", 40), "d");
  books_.release();
  EXPECT_EQ(world_.chosen(world_.books.selector(), *asks_, world_.set_of("abcd")), "-");
}

// Goal: a job on several of the nodes is taken away once.
TEST_P(BooksWithoutTest, OnSomeNodesAJobOnTwoOfThemIsGoneFromBoth) {
  if (GetParam() == 2) return;
  world_.end(1);
  world_.end(2);
  world_.running(7, "ab", 30);
  world_.ends_at(1);
  const NodeSet nodes = world_.set_of("ab");
  EXPECT_EQ(world_.chosen(books_.on(nodes, at(29)), *asks_, nodes), "-");
  EXPECT_EQ(world_.chosen(books_.on(nodes, at(30)), *asks_, nodes), "a");
}

TEST_P(BooksWithoutTest, ReleasedTheyAreTheRealBooks) {
  EXPECT_EQ(chosen(2, "abcd"), "a");
  books_.release();
  EXPECT_EQ(world_.chosen(world_.books.selector(), *asks_, world_.set_of("abcd")), "-");
  EXPECT_EQ(chosen(2, "bcd"), "b") << "from there on it begins anew";
}

TEST_P(BooksWithoutTest, VictimsAreGoneFromTheBeginning) {
  const Victims of_c = victim(3, 2);
  EXPECT_EQ(chosen(0, "abcd", &of_c), "c");
  EXPECT_EQ(chosen(1, "ab", &of_c), "a");
  EXPECT_EQ(chosen(4, "d", &of_c), "d") << "the victim is not taken away twice";
  EXPECT_EQ(chosen(1, "bd", &of_c), "-");
  EXPECT_EQ(chosen(1, "c", &of_c), "c") << "nor does it come back";
  books_.release();
  EXPECT_EQ(chosen(1, "c"), "-") << "another job has no victims";
  const Victims of_d = victim(4, 3);
  EXPECT_EQ(chosen(1, "c", &of_d), "-") << "or others";
  EXPECT_EQ(chosen(1, "d", &of_d), "d");
}

TEST_P(BooksWithoutTest, AfterAChangeTheyAreMadeAnew) {
  EXPECT_EQ(chosen(1, "abcd"), "a");
  books_.release();
  world_.end(1);
  world_.running(50, "a", 5);
  if (GetParam() == 2) world_.running(51, "b", 6);
  world_.ends_at(2);
  EXPECT_EQ(chosen(1, "abcd"), "a") << "50 ends first now";
  EXPECT_EQ(chosen(0, "abcd"), "-");
}

}  // namespace
}  // namespace sched::testing
