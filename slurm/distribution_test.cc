#include "slurm/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurm {
namespace {

using testing::HasSubstr;
using Nodes = NodeDistribution;

TEST(Distribution, IsWhatSlurmTakes) {
  EXPECT_EQ(*parse_distribution("block"), (DistributionOption{Nodes::kBlock}));
  EXPECT_EQ(*parse_distribution("Cyclic:BLOCK"),
            (DistributionOption{.nodes = Nodes::kCyclic, .within = ":block"}));
  EXPECT_EQ(*parse_distribution("cyclic:block,NoPack"),
            (DistributionOption{Nodes::kCyclic, 0, NodePacking::kNoPack, ":block"}));
  EXPECT_EQ(*parse_distribution("nopack"),
            (DistributionOption{Nodes::kDefault, 0, NodePacking::kNoPack}));
  EXPECT_EQ(*parse_distribution("pack"),
            (DistributionOption{Nodes::kDefault, 0, NodePacking::kPack}));
  EXPECT_EQ(*parse_distribution("arbitrary"), (DistributionOption{Nodes::kArbitrary}));
  EXPECT_EQ(*parse_distribution("plane=2"), (DistributionOption{Nodes::kPlane, 2}));
}

// SOURCE: recorded: a star is block, cyclic, and what stands before it; empty parts do not count.
TEST(Distribution, IsShownWithItsParts) {
  const std::pair<const char*, const char*> texts[] = {{"*", "block"},
                                                       {"*:*:*", "block:cyclic:cyclic"},
                                                       {"block:fcyclic:*", "block:fcyclic:fcyclic"},
                                                       {"*:fcyclic", "block:fcyclic"},
                                                       {":block", "block"},
                                                       {"block:", "block"},
                                                       {"pack", "pack"},
                                                       {"*:*,pack", "block:cyclic,pack"},
                                                       {"plane=2", "plane"},
                                                       {"arbitrary", "arbitrary"}};
  for (const auto& [value, text] : texts) {
    EXPECT_EQ(distribution_text(*parse_distribution(value)), text) << value;
  }
}

// SOURCE: recorded.
TEST(Distribution, RefusesTheRest) {
  for (const char* wrong :
       {"", "nonsense", "block:nonsense", "block,", "pack,block", "block,more", "pack,pack",
        "::", "fcyclic", "arbitrary:block", "a:b:c:d", "cyclic:cyclic:cyclic:cyclic", "plane=0",
        "plane=2,pack", "plane=", "plane"}) {
    EXPECT_THAT(parse_distribution(wrong).error().message, HasSubstr("nvalid")) << wrong;
  }
}

}  // namespace
}  // namespace slurm
