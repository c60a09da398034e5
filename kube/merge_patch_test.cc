#include "kube/merge_patch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/prng.h"

namespace kube {
namespace {

using nlohmann::json;

// b.d is removed (null), b.c and e are changed, h is new; a and f are equal and do not occur. A
// list is replaced as a whole.
TEST(MergePatch, HasChangedAndRemovedFieldsOnly) {
  const json from = json::parse(R"({"a": 1, "b": {"c": 2, "d": 3}, "e": [1], "f": {"g": 1}})");
  const json to = json::parse(R"({"a": 1, "b": {"c": 4}, "e": [1, 2], "h": 5, "f": {"g": 1}})");
  EXPECT_EQ(merge_patch(from, to),
            json::parse(R"({"b": {"c": 4, "d": null}, "e": [1, 2], "h": 5})"));
  EXPECT_EQ(merge_patch(from, from), json::object());
}

// Small names and values, so that the two trees have much in common.
json random_value(base::Prng& prng, int depth) {
  if (depth == 0 || prng.below(3) == 0) return prng.below(4);
  json out = json::object();
  for (const char* name : {"a", "b", "c"}) {
    if (prng.below(2) == 0) out[name] = random_value(prng, depth - 1);
  }
  return out;
}

// Goal: applying the patch gives the target. Method: nlohmann's RFC 7386 as the model.
TEST(MergePatch, AppliedGivesTheTarget) {
  base::Prng prng{7};
  for (int i = 0; i < 2000; ++i) {
    json from{{"x", random_value(prng, 3)}};
    const json to{{"x", random_value(prng, 3)}};
    const json patch = merge_patch(from, to);
    const std::string what = from.dump() + " -> " + to.dump() + " by " + patch.dump();
    from.merge_patch(patch);
    ASSERT_EQ(from, to) << what;
  }
}

}  // namespace
}  // namespace kube
