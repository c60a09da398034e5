#include "kube/api/known_fields.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "kube/api/pod.h"

namespace kube {
namespace {

using nlohmann::json;

KnownFields fields(std::initializer_list<std::initializer_list<const char*>> paths) {
  KnownFields out;
  for (const auto& path : paths) {
    KnownFields* at = &out;
    for (const char* name : path) at = &at->at(name);
  }
  return out;
}

// First, last, in the middle, several in a row, and all; commas stay right.
TEST(KnownFields, OtherMembersGoWithTheirCommas) {
  const KnownFields a_and_b = fields({{"a"}, {"b"}});
  EXPECT_EQ(only_known(R"({"x":1,"a":1})", a_and_b), R"({"a":1})");
  EXPECT_EQ(only_known(R"({"a":1,"x":1})", a_and_b), R"({"a":1})");
  EXPECT_EQ(only_known(R"({"a":1,"x":1,"y":2,"b":2})", a_and_b), R"({"a":1,"b":2})");
  EXPECT_EQ(only_known(R"({"x":1,"y":{},"a":1,"z":[],"b":2,"w":""})", a_and_b),
            R"({"a":1,"b":2})");
  EXPECT_EQ(only_known(R"({"x":1,"y":2})", a_and_b), "{}");
  EXPECT_EQ(only_known("{}", a_and_b), "{}");
  EXPECT_EQ(only_known(" { \"x\" : 1 , \"a\" : 2 } \n", a_and_b), " {  \"a\" : 2 } \n");
}

// A member without names of its own is kept whole; lists have the names of their elements, lists in
// lists do not.
TEST(KnownFields, GoDownIntoObjectsAndLists) {
  const KnownFields tree = fields({{"a", "b"}, {"whole"}});
  EXPECT_EQ(only_known(R"({"a":{"b":1,"c":2},"whole":{"c":[3]},"b":4})", tree),
            R"({"a":{"b":1},"whole":{"c":[3]}})");
  EXPECT_EQ(only_known(R"({"a":[{"c":1,"b":2},{"c":3},5,"x",{}]})", tree),
            R"({"a":[{"b":2},{},5,"x",{}]})");
  EXPECT_EQ(only_known(R"({"a":[[{"c":1}]]})", tree), R"({"a":[[{"c":1}]]})");
  EXPECT_EQ(only_known(R"({"a":null,"whole":-1.5e3})", tree), R"({"a":null,"whole":-1.5e3})");
}

TEST(KnownFields, StringsMayHaveAnyCharacters) {
  const KnownFields a = fields({{"a"}});
  EXPECT_EQ(only_known(R"({"x":"}],\"a\":1,\\","a":"{\"x\":1}\\"})", a), R"({"a":"{\"x\":1}\\"})");
  // It may be the name of a field that is written differently.
  EXPECT_EQ(only_known(R"({"\u0061":1,"x":2})", a), R"({"\u0061":1})");
}

// The parser says what is wrong with them.
TEST(KnownFields, TextsThatAreNotJsonStay) {
  const KnownFields a = fields({{"a", "b"}});
  for (const char* text : {"", "{", R"({"x")", R"({"x":)", R"({"x":1)", R"({"x":1,)", R"({"x":"1})",
                           R"({"x":"1\)", R"({"x":[{]})", R"({x:1})", R"({"x" 1})", R"({"a":[1})",
                           R"({"a":[{"b":1}})", R"({"x":1 "a":2})", "[1,2"}) {
    EXPECT_EQ(only_known(text, a), text);
  }
}

// Trees full of what could mislead the search. The model does to the tree what is done to the text.
json tree_of_traps(base::Prng& prng, int depth) {
  if (depth == 0) return R"(a "quoted" \ {[:,]} b)";
  json out = prng.below(3) == 0 ? json::array() : json::object();
  for (const char* name : {"a", "b", "c", "d", "{,\"a\":["}) {
    if (prng.below(2) == 0) continue;
    json value = tree_of_traps(prng, depth - 1);
    if (out.is_array()) {
      out.push_back(std::move(value));
    } else {
      out[name] = std::move(value);
    }
  }
  return out;
}

void keep(json& value, const KnownFields& known) {
  if (known.keeps_all()) return;
  if (value.is_array()) {
    for (json& each : value) {
      if (each.is_object()) keep(each, known);
    }
  }
  if (!value.is_object()) return;
  json kept = json::object();
  for (auto& [name, member] : value.items()) {
    const KnownFields* inner = known.find(name);
    const bool has_escapes = name.find('"') != std::string::npos;
    if (inner != nullptr) keep(member, *inner);
    if (inner != nullptr || has_escapes) kept[name] = std::move(member);
  }
  value = std::move(kept);
}

TEST(KnownFields, RandomTreesBecomeWhatTheModelSays) {
  const KnownFields known = fields({{"a", "b"}, {"b"}, {"c", "a", "d"}, {"c", "c"}});
  base::Prng prng{20'261'126};
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    json tree = tree_of_traps(prng, 5);
    const std::string text = tree.dump(prng.below(2) == 0 ? -1 : 1);
    keep(tree, known);
    ASSERT_EQ(json::parse(only_known(text, known)), tree) << text;
  }
}

TEST(KnownFields, OnesThatAreRemovedGo) {
  KnownFields known = fields({{"a", "b"}, {"a", "c"}, {"b"}});
  known.remove({"a", "b"});
  EXPECT_EQ(only_known(R"({"a":{"b":1,"c":2},"b":3})", known), R"({"a":{"c":2},"b":3})");
}

// A type's names come from its own list of fields.
TEST(KnownFields, OfAPodAreThoseThatItReads) {
  const char* text = R"({"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[{"a":1}],)"
                     R"("labels":{"any":"1"},"name":"p"},"spec":{"containers":[{"name":"m",)"
                     R"("volumeMounts":[{"name":"v"}],"env":[{"name":"E","valueFrom":{"fieldRef":)"
                     R"({"apiVersion":"v1","fieldPath":"x"}}}],"livenessProbe":{"any":{}}}],)"
                     R"("dnsPolicy":"ClusterFirst","volumes":[{"name":"v"}]},"status":{"phase":)"
                     R"("Running","podIPs":[{"ip":"1"}],"podIP":"1"}})";
  const char* kept = R"({"apiVersion":"v1","kind":"Pod","metadata":{)"
                     R"("labels":{"any":"1"},"name":"p"},"spec":{"containers":[{"name":"m",)"
                     R"("env":[{"name":"E","valueFrom":{"fieldRef":)"
                     R"({"fieldPath":"x"}}}],"livenessProbe":{"any":{}}}]},"status":{"phase":)"
                     R"("Running","podIP":"1"}})";
  EXPECT_EQ(only_known(text, known_fields<Pod>()), kept);
  EXPECT_EQ(*decode<Pod>(json::parse(text)), *decode<Pod>(json::parse(kept)));
}

}  // namespace
}  // namespace kube
