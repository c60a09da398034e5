#include "slurm/hostlist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/natural_order.h"
#include "base/prng.h"
#include "scheduler/model/cluster.h"

namespace slurm {
namespace {

using Names = std::vector<std::string>;

// A range is padded as its first number is, groups count like digits, and repetitions stay. The
// order of the names is the order of the text, because the ranks of tasks may depend on it.
TEST(Hostlist, ExpandsRangesPaddingGroupsAndSuffixes) {
  const std::vector<std::pair<std::string, Names>> cases = {
      {"", {}},
      {"n1", {"n1"}},
      {"n[12-14,20]", {"n12", "n13", "n14", "n20"}},
      {"n[08-10]", {"n08", "n09", "n10"}},
      {"n[8-10]", {"n8", "n9", "n10"}},
      {"n[1,01]", {"n1", "n01"}},
      {"r[1-2]n[1-2]", {"r1n1", "r1n2", "r2n1", "r2n2"}},
      {"n[1-2]-ib", {"n1-ib", "n2-ib"}},
      {"[1-2]", {"1", "2"}},
      {"login,n[1-2].example.org", {"login", "n1.example.org", "n2.example.org"}},
      {"n2,n1,n2", {"n2", "n1", "n2"}},
  };
  for (const auto& [text, want] : cases) {
    const base::Result<Names> got = expand_hostlist(text);
    ASSERT_TRUE(got.ok()) << text << ": " << got.error().message;
    EXPECT_EQ(*got, want) << text;
  }
}

// Characters count from 1. The bounds hold before any name is made: 1000 × 1000 names are refused
// at once. The long number has more digits than 64 bits hold; it must be refused while it is read,
// not after an overflow.
TEST(Hostlist, SaysWhereTheTextIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"n[1-2", "hostlist \"n[1-2\": no ']' for the '[' at character 2"},
      {"n1,,n2", "hostlist \"n1,,n2\": an empty name at character 4"},
      {"n1,", "hostlist \"n1,\": an empty name at character 4"},
      {"n[]", "hostlist \"n[]\": a number is missing at character 3"},
      {"n[3-1]", "hostlist \"n[3-1]\": the range 3-1 runs backwards"},
      {"n[a]", "hostlist \"n[a]\": a number is missing at character 3"},
      {"n 1",
       "hostlist \"n 1\": ' ' at character 2; a name is letters, digits, '-', '.' and [numbers]"},
      {"n[1;2]",
       "hostlist \"n[1;2]\": ';' at character 4; inside brackets are numbers and ranges: [1-3,7]"},
      {"n[1-99999999]", "hostlist \"n[1-99999999]\": more than 65536 names"},
      {"n[0-999]m[0-999]", "hostlist \"n[0-999]m[0-999]\": more than 65536 names"},
      {"n[1-1111111111111111111111]",
       "hostlist \"n[1-1111111111111111111111]\": a number of more than 18 digits"},
  };
  for (const auto& [text, want] : cases) {
    const base::Result<Names> got = expand_hostlist(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_EQ(got.error().message, want);
    EXPECT_EQ(got.error().code, base::Code::kInvalidArgument);
  }
}

// A DNS name has 253 characters at most. That holds for every name, not for the first alone: the
// second number is longer by one. The third case grows in front of the name instead of behind it.
TEST(Hostlist, NoNameIsLongerThanAHostsNameMayBe) {
  const std::string head(252, 'n');
  EXPECT_TRUE(expand_hostlist(head + "[1-9]").ok());
  EXPECT_FALSE(expand_hostlist(head + "[1-10]").ok());
  EXPECT_FALSE(expand_hostlist("n[1-10]" + head).ok());
}

// n1 and n01 are different names. The last number of r1n1 is bracketed. Numbers that are only equal
// as numbers must not be joined: the list would name other nodes.
TEST(Hostlist, CompressesRunsInNaturalOrder) {
  const std::vector<std::pair<Names, std::string>> cases = {
      {{}, ""},
      {{"n1"}, "n1"},
      {{"n10", "n9", "n8", "n20", "n9"}, "n[8-10,20]"},
      {{"n08", "n09", "n10"}, "n[08-10]"},
      {{"n1", "n01"}, "n[01,1]"},
      {{"login", "n1", "n2"}, "login,n[1-2]"},
      {{"r1n1", "r1n2", "r2n1"}, "r1n[1-2],r2n1"},
      {{"n1-ib", "n2-ib"}, "n[1-2]-ib"},
      {{"ip-10-0-1-9.ec2.internal", "ip-10-0-1-10.ec2.internal", "ip-10-0-2-10.ec2.internal"},
       "ip-10-0-1-[9-10].ec2.internal,ip-10-0-2-10.ec2.internal"},
  };
  for (const auto& [names, want] : cases) EXPECT_EQ(compress_hostlist(names), want);
}

// Goal: the writer and the reader are inverse. Method: random sets of names of mixed shapes. The
// shapes are chosen to be mean: two letters only, so that prefixes repeat; numbers with and without
// leading zeros; names without any number; up to three numbers in a name.
TEST(Hostlist, ExpandOfCompressGivesTheSortedNamesBack) {
  constexpr std::uint64_t kSeed = 20;
  base::Prng prng{kSeed};
  for (int round = 0; round < 2'000; ++round) {
    std::set<std::string, decltype(&base::natural_less)> set{&base::natural_less};
    const std::uint64_t count = prng.below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
      std::string name;
      const std::uint64_t parts = 1 + prng.below(3);
      for (std::uint64_t part = 0; part < parts; ++part) {
        name += std::string(1, static_cast<char>('a' + prng.below(2)));
        std::string digits = std::to_string(prng.below(13));
        if (prng.below(3) == 0) digits.insert(0, prng.below(3), '0');
        if (prng.below(4) != 0) name += digits;
      }
      set.insert(name);
    }
    const Names names{set.begin(), set.end()};
    const std::string text = compress_hostlist(names);
    const base::Result<Names> back = expand_hostlist(text);
    ASSERT_TRUE(back.ok()) << "seed " << kSeed << " round " << round << ": " << text;
    ASSERT_EQ(*back, names) << "seed " << kSeed << " round " << round << ": " << text;
  }
}

}  // namespace
}  // namespace slurm
