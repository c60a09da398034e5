#include "translation/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace control {
namespace {

// A new leader knows from the status alone which cores and how much memory a running job has. Any
// difference would give the same core to two jobs. Nodes with equal shares are written as one
// hostlist, since gangs have thousands of nodes: n12 and n13 have 2 cores each, n14 has 3.
TEST(Allocation, ComesBackExactly) {
  sched::Allocation allocation;
  for (const int node : {0, 1, 2}) {
    auto& share = allocation.nodes.emplace_back();
    share.node = sched::NodeIndex{node};
    share.cores = sched::CoreSet::first(node == 2 ? 3 : 2);
    share.cpus = node == 2 ? 3 : 2;
    share.tasks = node == 2 ? 1 : 2;
    share.memory = sched::MemoryMiB{512};
  }
  const std::vector<std::string> names{"n12", "n13", "n14"};
  const kube::Allocation encoded = encode_allocation(
      allocation, [&](sched::NodeIndex n) -> const std::string& { return names[n.index()]; });
  EXPECT_EQ(encoded.hostlist, "n[12-14]");
  EXPECT_EQ(encoded.cpus, 7);
  EXPECT_EQ(encoded.nodes, 3);
  ASSERT_EQ(encoded.shares.size(), 2U);
  EXPECT_EQ(encoded.shares[0].hostlist, "n[12-13]");
  EXPECT_EQ(encoded.shares[0].cores, "0-1");
  const auto decoded = decode_allocation(encoded, [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    return std::optional{
        KnownNode{sched::NodeIndex{static_cast<std::int32_t>(found - names.begin())}, 8, 8}};
  });
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->allocation, allocation);
}

}  // namespace
}  // namespace control
