#include "kube/api/json_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/prng.h"

namespace kube {
namespace {

using nlohmann::json;

void expect_as_the_library(const json& value) {
  EXPECT_EQ(compact_text(value), value.dump(-1, ' ', false, json::error_handler_t::replace));
}

TEST(CompactText, IsWhatTheLibraryWrites) {
  for (const json& value :
       {json(nullptr), json(true), json(false), json(0), json(-1), json(1.5), json(1e300),
        json(NAN), json(std::numeric_limits<std::int64_t>::min()),
        json(std::numeric_limits<std::uint64_t>::max()), json(""), json::object(), json::array(),
        json{{"a", nullptr}}, json{{"", {1, "b", json::object()}}, {"z", json::array()}},
        json::array({json::array(), json::array({json::array()})})}) {
    expect_as_the_library(value);
  }
}

// Each byte alone, within a text, as a name, and cut off in the middle of a character.
TEST(CompactText, WritesAnyByteAsTheLibraryDoes) {
  for (int byte = 0; byte < 256; ++byte) {
    SCOPED_TRACE(byte);
    const std::string one(1, static_cast<char>(byte));
    expect_as_the_library(one);
    expect_as_the_library("plain" + one + "plain");
    expect_as_the_library(json{{one, "a"}, {"b", one}});
  }
  expect_as_the_library("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  expect_as_the_library("\xe2\x82");
}

json tree_of_values(base::Prng& prng, int depth) {
  const auto kind = prng.below(depth == 0 ? 4 : 6);
  if (kind == 0) return prng.below(1'000'000);
  if (kind == 1) return -static_cast<std::int64_t>(prng.below(1'000));
  if (kind == 2) return prng.below(2) == 0;
  if (kind == 3) {
    const std::size_t length = prng.below(20);
    const char c = prng.below(8) == 0 ? '\\' : 'x';
    return std::string(length, c);
  }
  json out = kind == 4 ? json::array() : json::object();
  for (int i = 0; i < 4; ++i) {
    json value = tree_of_values(prng, depth - 1);
    if (out.is_array()) {
      out.push_back(std::move(value));
    } else {
      out["name" + std::to_string(i)] = std::move(value);
    }
  }
  return out;
}

TEST(CompactText, WritesTreesAsTheLibraryDoes) {
  base::Prng prng{20'261'127};
  for (int i = 0; i < 500; ++i) expect_as_the_library(tree_of_values(prng, 4));
}

}  // namespace
}  // namespace kube
