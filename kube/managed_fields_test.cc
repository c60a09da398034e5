#include "kube/managed_fields.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/prng.h"

namespace kube {
namespace {

using nlohmann::json;

// Alone, first, last and in the middle of an object, and twice in one text.
TEST(ManagedFields, GoWithOneOfTheirCommas) {
  EXPECT_EQ(without_managed_fields(R"({"managedFields":[]})"), "{}");
  EXPECT_EQ(without_managed_fields(R"({"managedFields":[{"f:a":{}}],"a":1})"), R"({"a":1})");
  EXPECT_EQ(without_managed_fields(R"({"a":1,"managedFields":[{"f:a":{}}]})"), R"({"a":1})");
  EXPECT_EQ(without_managed_fields(R"({"a":1,"managedFields":[1,[2]],"b":2})"), R"({"a":1,"b":2})");
  EXPECT_EQ(without_managed_fields(R"([{"managedFields":[]},{"a":1,"managedFields":[]}])"),
            R"([{},{"a":1}])");
}

// Names inside strings, with and without escaped quotes; a value that is not a list; a list without
// an end.
TEST(ManagedFields, WhatOnlyLooksLikeThemStays) {
  for (const char* text : {"", "null", R"({"a":"managedFields"})", R"({"managedFields":{"a":1}})",
                           R"({"a":"\"managedFields\":[1]"})", R"({"managedFieldsOf":[1]})",
                           R"({"a\"managedFields":[1]})", R"({"a,\"managedFields":[1]})",
                           R"({"managedFields":[{"a":"]"})"}) {
    EXPECT_EQ(without_managed_fields(text), text);
  }
}

// Trees whose names and texts are full of what could mislead the search: quotes, braces, brackets,
// backslashes and the name itself.
json random_tree(base::Prng& prng, int depth) {
  if (depth == 0) return R"(a "quoted" \ {[:,]} managedFields)";
  json out = prng.below(3) == 0 ? json::array() : json::object();
  for (const char* name : {"a", "managedFields", "z\"managedFields", "{,\"managedFields\":["}) {
    if (prng.below(2) == 0) continue;
    json value = random_tree(prng, depth - 1);
    if (out.is_array()) {
      out.push_back(std::move(value));
    } else {
      out[name] = std::move(value);
    }
  }
  return out;
}

void erase_managed_fields(json& tree) {
  if (tree.is_object() && tree.contains("managedFields") && tree["managedFields"].is_array()) {
    tree.erase("managedFields");
  }
  for (json& child : tree) {
    if (child.is_structured()) erase_managed_fields(child);
  }
}

// Method: the parsed tree as the model.
TEST(ManagedFields, NothingElseGoes) {
  base::Prng prng{11};
  for (int i = 0; i < 2000; ++i) {
    const json tree = random_tree(prng, 5);
    json want = tree;
    if (want.is_structured()) erase_managed_fields(want);
    ASSERT_EQ(json::parse(without_managed_fields(tree.dump())), want) << tree.dump();
  }
}

}  // namespace
}  // namespace kube
