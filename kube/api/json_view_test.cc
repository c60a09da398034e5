// Goal: what is read of a text is what the JSON library reads, without the members that are not
// wanted.
#include "kube/api/json_view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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

// Returns what was read, as a tree.
json tree_of(const JsonView& value) {
  if (!value.is_list() && !value.is_object()) return value.tree();
  json out = value.is_list() ? json::array() : json::object();
  if (value.is_list()) {
    for (const JsonView element : value.elements()) out.push_back(tree_of(element));
    EXPECT_EQ(value.elements().count(), out.size());
  }
  for (const auto& [name, member] : value.members()) {
    out[name] = tree_of(member);
    EXPECT_EQ(tree_of(value.find(name)), out[name]) << name;
  }
  return out;
}

// Discarded if it is not JSON.
json read(std::string_view text, const KnownFields& known) {
  const auto read = JsonText::read(text, known);
  return read ? tree_of(read->root()) : json(json::value_t::discarded);
}

TEST(JsonView, MembersThatAreNotWantedAreNotThere) {
  const KnownFields a_and_b = fields({{"a"}, {"b"}});
  const auto want = [](const char* text) { return json::parse(text); };
  EXPECT_EQ(read(R"({"x":1,"a":1})", a_and_b), want(R"({"a":1})"));
  EXPECT_EQ(read(R"({"a":1,"x":1,"y":2,"b":2})", a_and_b), want(R"({"a":1,"b":2})"));
  EXPECT_EQ(read(R"({"x":1,"y":{},"a":1,"z":[],"b":2,"w":""})", a_and_b),
            want(R"({"a":1,"b":2})"));
  EXPECT_EQ(read(R"({"x":1,"y":2})", a_and_b), json::object());
  EXPECT_EQ(read("{}", a_and_b), json::object());
  EXPECT_EQ(read(" { \"x\" : 1 , \"a\" :\t2 } \r\n", a_and_b), want(R"({"a":2})"));
}

// A member without names of its own is read whole; lists have the names of their elements, lists in
// lists do not.
TEST(JsonView, NamesGoDownIntoObjectsAndLists) {
  const KnownFields tree = fields({{"a", "b"}, {"whole"}});
  const auto want = [](const char* text) { return json::parse(text); };
  EXPECT_EQ(read(R"({"a":{"b":1,"c":2},"whole":{"c":[3]},"b":4})", tree),
            want(R"({"a":{"b":1},"whole":{"c":[3]}})"));
  EXPECT_EQ(read(R"({"a":[{"c":1,"b":2},{"c":3},5,"x",{}]})", tree),
            want(R"({"a":[{"b":2},{},5,"x",{}]})"));
  EXPECT_EQ(read(R"({"a":[[{"c":1}]]})", tree), want(R"({"a":[[{"c":1}]]})"));
  EXPECT_EQ(read(R"({"a":null,"whole":-1.5e3})", tree), want(R"({"a":null,"whole":-1.5e3})"));
}

TEST(JsonView, StringsMayHaveAnyCharacters) {
  const KnownFields a = fields({{"a"}});
  const auto want = [](const char* text) { return json::parse(text); };
  EXPECT_EQ(read(R"({"x":"}],\"a\":1,\\","a":"{\"x\":1}\\"})", a),
            want(R"({"a":"{\"x\":1}\\"})"));
  const char* any = R"(["\u00fc\ud83d\ude00\n\/ü"])";
  EXPECT_EQ(read(any, {}), want(any));
  // It may be the name of a field that is written differently.
  EXPECT_EQ(read(R"({"\u0061":1,"x":2})", a), want(R"({"a":1})"));
}

// As the library has it: the last one counts, as if the others were not there.
TEST(JsonView, OfANameThatComesTwiceTheLastCounts) {
  EXPECT_EQ(read(R"({"a":{"b":1},"a":{"c":2},"\u0061":3})", {}), json::parse(R"({"a":3})"));
  const char* text = R"({"metadata":{"name":1,"labels":{"a":1,"a":"x"},"name":"p"},)"
                     R"("status":{"phase":"Running"},"status":null})";
  const auto read = JsonText::read(text, known_fields<Pod>());
  const auto pod = decode<Pod>(read.value().root());
  ASSERT_TRUE(pod.ok()) << pod.error().message;
  EXPECT_EQ(*pod, (Pod{.metadata = {.name = "p", .labels = {{"a", "x"}}}}));
}

TEST(JsonView, TextsThatAreNotJsonAreRefused) {
  const KnownFields a = fields({{"a", "b"}});
  for (const char* text : {"", "{", R"({"x")", R"({"x":)", R"({"x":1)", R"({"x":1,)", R"({"x":"1})",
                           R"({"x":"1\)", R"({"x":[{]})", R"({x:1})", R"({"x" 1})", R"({"a":[1})",
                           R"({"a":[{"b":1}})", R"({"x":1 "a":2})", "[1,2", "{} {}", "[1,]",
                           R"({"a":1,})", "[,1]", "{,}", "[1 2]", "]", "1]"}) {
    EXPECT_TRUE(read(text, a).is_discarded()) << text;
    EXPECT_TRUE(read(text, {}).is_discarded()) << text;
  }
  for (const char* text : {"[01]", "[1.]", "[-]", "[+1]", "[tru]", "[nulL]", "[\"\x01\"]",
                           "[\"\xff\"]", R"(["\u12"])", R"(["\ud800"])", R"(["\x"])", "[1e999]",
                           "{\"\xc0\":1}"}) {
    ASSERT_FALSE(json::accept(text)) << text;
    EXPECT_TRUE(read(text, {}).is_discarded()) << text;
  }
}

// The depth is its author's choice.
TEST(JsonView, DepthHasNoLimit) {
  constexpr std::size_t kDepth = 1'000'000;
  const std::string text = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_TRUE(JsonText::read(text, {}));
  EXPECT_FALSE(JsonText::read(text + "]", {}));
}

// If JSON is kept as it is, only its end is looked for; it is parsed on demand.
TEST(JsonView, RawJsonIsKeptAsTheLibraryWritesIt) {
  const char* text = R"({"spec":{"affinity":{ "b" : [1.50, {"x":"\u0061"}], "a":{} },)"
                     R"("schedulingGates":7}})";
  const auto whole = JsonText::read(text, known_fields<Pod>());
  const auto pod = decode<Pod>(whole.value().root());
  ASSERT_TRUE(pod.ok()) << pod.error().message;
  EXPECT_EQ(pod->spec.affinity.text(), R"({"a":{},"b":[1.5,{"x":"a"}]})");
  EXPECT_EQ(pod->spec.scheduling_gates.text(), "7");
  const auto broken = JsonText::read(R"({"spec":{"affinity":{"a":tru}}})", known_fields<Pod>());
  EXPECT_EQ(decode<Pod>(broken.value().root()).error().message,
            "Pod without a name: spec.affinity: not valid JSON");
}

// Trees full of what could mislead the search. The model does to the tree what is done to the text.
json tree_of_traps(base::Prng& prng, int depth) {
  if (depth == 0) {
    switch (prng.below(6)) {
      case 0:
        return R"(a "quoted" \ {[:,]} b)";
      case 1:
        return -1.5e-3;
      case 2:
        return prng.next();
      case 3:
        return nullptr;
      case 4:
        return "\xc3\xbc\n";
      default:
        return true;
    }
  }
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

TEST(JsonView, RandomTreesAreReadAsTheModelSays) {
  const KnownFields known = fields({{"a", "b"}, {"b"}, {"c", "a", "d"}, {"c", "c"}});
  base::Prng prng{20'261'126};
  for (int i = 0; i < 2'000; ++i) {
    SCOPED_TRACE(i);
    json tree = tree_of_traps(prng, 5);
    const std::string text = tree.dump(prng.below(2) == 0 ? -1 : 1);
    keep(tree, known);
    ASSERT_EQ(read(text, known), tree) << text;
  }
}

// Whatever is done to a text, it is read as the library reads it or is refused as there.
TEST(JsonView, BrokenTextsAreReadAsTheLibraryReadsThem) {
  constexpr std::string_view kBytes = "{}[]:,\"\\0123456789-+.eEtrufalsn \n\x01\x7f\xc3\xbc\xff";
  base::Prng prng{20'261'127};
  int accepted = 0;
  for (int i = 0; i < 30'000; ++i) {
    std::string text = tree_of_traps(prng, 3).dump();
    for (std::uint64_t left = prng.below(3) + 1; left > 0; --left) {
      const auto at = static_cast<std::size_t>(prng.below(text.size()));
      const char byte = kBytes[static_cast<std::size_t>(prng.below(kBytes.size()))];
      switch (prng.below(3)) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        default:
          text.resize(std::max<std::size_t>(at, 1));
      }
    }
    const json want = json::parse(text, nullptr, false);
    ASSERT_EQ(read(text, {}).is_discarded(), want.is_discarded()) << text;
    if (want.is_discarded()) continue;
    ASSERT_EQ(read(text, {}), want) << text;
    ++accepted;
  }
  EXPECT_GT(accepted, 1'000);
}

TEST(KnownFields, OnesThatAreRemovedGo) {
  KnownFields known = fields({{"a", "b"}, {"a", "c"}, {"b"}});
  known.remove({"a", "b"});
  EXPECT_EQ(read(R"({"a":{"b":1,"c":2},"b":3})", known), json::parse(R"({"a":{"c":2},"b":3})"));
}

// A type's names come from its own list of fields.
TEST(KnownFields, OfAPodAreThoseThatItReads) {
  const char* text = R"({"apiVersion":"v1","kind":"Pod","metadata":{"managedFields":[{"a":1}],)"
                     R"("labels":{"any":"1"},"name":"p"},"spec":{"containers":[{"name":"m",)"
                     R"("volumeMounts":[{"name":"v"}],"env":[{"name":"E","valueFrom":{"fieldRef":)"
                     R"({"apiVersion":"v1","fieldPath":"x"}}}]}],)"
                     R"("dnsPolicy":"ClusterFirst","volumes":[{"name":"v"}]},"status":{"phase":)"
                     R"("Running","podIPs":[{"ip":"1"}],"podIP":"1"}})";
  const char* kept = R"({"apiVersion":"v1","kind":"Pod","metadata":{)"
                     R"("labels":{"any":"1"},"name":"p"},"spec":{"containers":[{"name":"m",)"
                     R"("env":[{"name":"E","valueFrom":{"fieldRef":)"
                     R"({"fieldPath":"x"}}}]}]},"status":{"phase":)"
                     R"("Running","podIP":"1"}})";
  EXPECT_EQ(read(text, known_fields<Pod>()), json::parse(kept));
  EXPECT_EQ(*decode<Pod>(json::parse(text)), *decode<Pod>(json::parse(kept)));
}

}  // namespace
}  // namespace kube
