#include "slurm/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slurm {
namespace {

using testing::HasSubstr;
using Nodes = NodeDistribution;

TEST(Distribution, IsWhatSlurmTakes) {
  EXPECT_EQ(*parse_distribution("block"), (DistributionOption{Nodes::kBlock}));
  EXPECT_EQ(*parse_distribution("cyclic:block"), (DistributionOption{Nodes::kCyclic}));
  EXPECT_EQ(*parse_distribution("*:fcyclic:*"), (DistributionOption{Nodes::kDefault}));
  EXPECT_EQ(*parse_distribution("cyclic:block,nopack"),
            (DistributionOption{Nodes::kCyclic, 0, NodePacking::kNoPack}));
  EXPECT_EQ(*parse_distribution("nopack"),
            (DistributionOption{Nodes::kBlock, 0, NodePacking::kNoPack}));
  EXPECT_EQ(*parse_distribution("pack"),
            (DistributionOption{Nodes::kBlock, 0, NodePacking::kPack}));
  EXPECT_EQ(*parse_distribution("*:*,pack"),
            (DistributionOption{Nodes::kDefault, 0, NodePacking::kPack}));
  EXPECT_EQ(*parse_distribution("plane=2"), (DistributionOption{Nodes::kPlane, 2}));
}

// SOURCE: recorded; what is not there yet says so.
TEST(Distribution, RefusesTheRest) {
  for (const char* wrong : {"", "nonsense", "block:nonsense", "block,", "pack,block", "block,more",
                            "pack,pack", "plane=0", "plane=2,pack", "plane=", "plane"}) {
    EXPECT_THAT(parse_distribution(wrong).error().message, HasSubstr("nvalid")) << wrong;
  }
  EXPECT_THAT(parse_distribution("arbitrary").error().message,
              HasSubstr("--distribution=arbitrary: is not there yet"));
}

}  // namespace
}  // namespace slurm
