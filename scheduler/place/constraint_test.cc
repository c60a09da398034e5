// --constraint (4.2.3, 4.2.4): which nodes an expression matches.
#include "scheduler/place/constraint.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

namespace sched {
namespace {

bool matches(const std::string& expression, const std::string& features) {
  const auto constraint = Constraint::parse(expression);
  EXPECT_TRUE(constraint.ok()) << expression;
  std::istringstream words{features};
  std::vector<std::string> list;
  for (std::string word; words >> word;) list.push_back(word);
  return constraint.ok() && constraint->matches(list);
}

// Without an expression every node fits.
TEST(Constraint, EmptyMatchesEverything) {
  EXPECT_TRUE(matches("", ""));
  EXPECT_TRUE(matches("", "gpu"));
  EXPECT_TRUE(Constraint::parse("")->empty());
}

// A name is compared as a whole: gpus is another feature than gpu.
TEST(Constraint, NamesAFeature) {
  EXPECT_TRUE(matches("gpu", "ssd gpu"));
  EXPECT_FALSE(matches("gpu", "ssd gpus"));  // whole names
}

// There is no precedence: from left to right, so the last "&" binds all before it.
TEST(Constraint, IsEvaluatedFromLeftToRight) {
  EXPECT_TRUE(matches("a|b&c", "a c"));
  EXPECT_FALSE(matches("a|b&c", "a"));  // (a|b)&c, not a|(b&c)
  EXPECT_TRUE(matches("a&b|c", "c"));
}

// One level of parentheses is what Slurm allows (4.2.3).
TEST(Constraint, EvaluatesParenthesesFirst) {
  EXPECT_TRUE(matches("a|(b&c)", "a"));
  EXPECT_FALSE(matches("a&(b|c)", "a"));
  EXPECT_TRUE(matches("(a|b)&(c|d)", "b d"));
}

// A counted feature filters no node by itself; how many nodes of it are needed is told apart.
TEST(Constraint, CountsNodesOfAFeature) {
  const auto constraint = Constraint::parse("gpu*2&ssd*4");
  ASSERT_TRUE(constraint.ok());
  EXPECT_TRUE(constraint->matches({}));
  ASSERT_EQ(constraint->counted().size(), 2U);
  EXPECT_EQ(constraint->counted()[0].feature, "gpu");
  EXPECT_EQ(constraint->counted()[0].count, 2);
  EXPECT_EQ(constraint->counted()[1].count, 4);
}

// [a|b]: any of them on a node, and all nodes of a job by one alternative.
TEST(Constraint, OffersAlternativesForAllNodes) {
  const auto constraint = Constraint::parse("[rack1|rack2]");
  ASSERT_TRUE(constraint.ok());
  ASSERT_EQ(constraint->alternatives(), 2U);
  EXPECT_EQ(constraint->alternative(0), "rack1");
  EXPECT_EQ(constraint->alternative(1), "rack2");
}

// kInvalidArgument turns a submission away; an expression that is misread would send jobs to wrong
// nodes.
TEST(Constraint, RefusesWhatIsNoExpression) {
  for (const std::string bad : {"&", "a&", "a||b", "(a", "a)", "[a|b", "a*0", "a*x", "((a))"}) {
    const auto constraint = Constraint::parse(bad);
    ASSERT_FALSE(constraint.ok()) << bad;
    EXPECT_EQ(constraint.error().code, base::Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace sched
