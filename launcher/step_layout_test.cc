// Tests of the nodes of a step. Layouts are those of Slurm 22.05 on nodes of the same sizes.
#include "launcher/step_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace launcher {
namespace {

using testing::ElementsAre;

std::vector<NodeRoom> rooms(const std::vector<std::uint32_t>& cpus) {
  std::vector<NodeRoom> all;
  for (const std::uint32_t count : cpus) all.push_back({.cpus = count});
  return all;
}

// Returns "0 0 1": the node of each rank; "wait", "launchers", or why it never can be.
std::string placed(const StepRequest& request, const std::vector<NodeRoom>& nodes) {
  const StepDecision decision = place_step(request, nodes);
  if (const auto* no = std::get_if<StepIsImpossible>(&decision)) return no->message;
  if (const auto* later = std::get_if<StepMustWait>(&decision)) {
    return later->is_for_launchers ? "launchers" : "wait";
  }
  const auto& layout = std::get<StepPlacement>(decision).layout;
  std::string text;
  for (const std::uint32_t place : layout.places) {
    text += (text.empty() ? "" : " ") + std::to_string(layout.nodes[place]);
  }
  return text;
}

TEST(StepLayout, DealsTasksAsSlurmDoes) {
  const auto nodes = rooms({4, 2, 1});
  StepRequest request{.tasks = 7, .nodes = 3};
  EXPECT_EQ(placed(request, nodes), "0 0 0 0 1 1 2");
  request.distribution = Distribution::kCyclic;
  EXPECT_EQ(placed(request, nodes), "0 1 2 0 1 0 0");
  request.distribution = Distribution::kPlane;
  for (const auto& [plane, want] :
       {std::pair{1U, "0 1 2 0 1 2 0"}, {2U, "0 0 1 1 2 0 0"}, {3U, "0 0 0 1 1 2 0"}}) {
    request.plane = plane;
    EXPECT_EQ(placed(request, nodes), want) << plane;
  }
  EXPECT_EQ(placed({.tasks = 4,
                    .nodes = 2,
                    .required = {0, 2},
                    .distribution = Distribution::kArbitrary,
                    .arranged = {2, 0, 0, 2}},
                   nodes),
            "2 0 0 2");
  EXPECT_EQ(placed({.tasks = 5, .nodes = 3}, nodes), "0 0 1 1 2");
  EXPECT_EQ(placed({.tasks = 8, .nodes = 3}, rooms({4, 4, 4})), "0 0 0 1 1 1 2 2");
  EXPECT_EQ(placed({.tasks = 7, .nodes = 3, .tasks_per_node = 2}, nodes), "0 0 0 1 1 1 2");
  EXPECT_EQ(placed({.tasks = 3, .nodes = 3}, nodes), "0 1 2");
}

TEST(StepLayout, AStepHasItsNodesForItselfUnlessItIsExact) {
  auto nodes = rooms({2, 2});
  nodes[0].used = 1;
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1}, nodes), "1");
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .is_exact = true}, nodes), "1")
      << "nodes without steps come first";
  EXPECT_EQ(placed({.tasks = 2, .nodes = 1, .is_exact = true}, nodes), "1 1");
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2}, nodes), "wait");
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .overlaps = true}, nodes), "0 1");
  nodes[1].used = 1;
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .is_exact = true}, nodes), "0");
  nodes[1].used = 0;
  const auto decision = place_step({.tasks = 3, .nodes = 2, .is_exact = true}, nodes);
  EXPECT_THAT(std::get<StepPlacement>(decision).cpus, ElementsAre(1, 2));
}

TEST(StepLayout, NamedAndRelativeNodes) {
  const auto nodes = rooms({2, 2, 2});
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .required = {1}}, nodes), "1");
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .required = {1}}, nodes), "0 1")
      << "in the job's order";
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .relative = 1}, nodes), "1 2");
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .relative = 2}, nodes),
            "Requested node configuration is not available");
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .required = {3}}, nodes),
            "Requested node configuration is not available");
}

TEST(StepLayout, MoreTasksThanCpus) {
  const auto nodes = rooms({2, 2});
  const std::string refused = "More processors requested than permitted";
  EXPECT_EQ(placed({.tasks = 6, .nodes = 2}, nodes), refused);
  EXPECT_EQ(placed({.tasks = 2, .nodes = 1, .cpus_per_task = 2}, nodes), refused);
  EXPECT_EQ(placed({.tasks = 6, .nodes = 2, .overcommits = true}, nodes), "0 0 0 1 1 1");
  EXPECT_EQ(placed({.tasks = 4, .nodes = 1}, rooms({1, 4})), "1 1 1 1");
  EXPECT_EQ(
      placed({.tasks = 5, .nodes = 2, .cpus_per_task = 2, .overcommits = true}, rooms({3, 1})),
      "0 0 0 0 1")
      << "tasks that share CPUs take one each";
  const StepRequest exact{.tasks = 6, .nodes = 2, .is_exact = true, .overcommits = true};
  EXPECT_EQ(placed(exact, nodes), refused);
  EXPECT_EQ(placed({.tasks = 6, .nodes = 2, .overlaps = true}, nodes), refused);
}

// The cases are those that Slurm was asked about.
TEST(StepLayout, MoreTasksThanCpusOnNodesOfDifferentSizes) {
  const auto order = [](const std::vector<std::uint32_t>& cpus, std::uint32_t tasks,
                        Distribution how, std::uint32_t plane = 1) {
    const StepRequest request{.tasks = tasks,
                              .nodes = static_cast<std::uint32_t>(cpus.size()),
                              .distribution = how,
                              .plane = plane,
                              .overcommits = true};
    return placed(request, rooms(cpus));
  };
  EXPECT_EQ(order({4, 1}, 6, Distribution::kCyclic), "0 1 0 1 0 0");
  EXPECT_EQ(order({4, 1}, 8, Distribution::kCyclic), "0 1 0 1 0 1 0 0");
  EXPECT_EQ(order({4, 4, 1}, 15, Distribution::kCyclic), "0 1 2 0 1 2 0 1 2 0 1 0 1 0 1");
  EXPECT_EQ(order({4, 4, 1}, 15, Distribution::kBlock), "0 0 0 0 0 0 1 1 1 1 1 1 2 2 2");
  EXPECT_EQ(order({4, 1}, 8, Distribution::kPlane, 2), "0 0 1 1 0 0 0 0");
  EXPECT_EQ(order({4, 1}, 11, Distribution::kPlane, 2), "0 0 1 1 0 0 1 0 0 0 0");
  EXPECT_EQ(order({4, 4, 1}, 6, Distribution::kPlane, 3), "0 0 0 1 1 2");
  EXPECT_EQ(order({4, 4, 1}, 11, Distribution::kPlane, 3), "0 0 0 1 1 1 2 0 0 0 1");
  EXPECT_EQ(order({4, 1, 1}, 11, Distribution::kPlane, 2), "0 0 1 1 2 2 0 0 1 0 0");
}

// The cases are those that Slurm was asked about.
TEST(StepLayout, PackFillsNodes) {
  const auto packed = [](std::uint32_t tasks, std::uint32_t nodes, Packing how,
                         Distribution distribution = Distribution::kBlock) {
    const StepRequest request{
        .tasks = tasks, .nodes = nodes, .distribution = distribution, .packing = how};
    return placed(request, rooms({4, 4, 4}));
  };
  EXPECT_EQ(packed(4, 3, Packing::kFewest), "0 0 0 0");
  EXPECT_EQ(packed(6, 3, Packing::kFewest), "0 0 0 0 1 1");
  EXPECT_EQ(packed(5, 2, Packing::kPack), "0 0 0 0 1");
  EXPECT_EQ(packed(4, 3, Packing::kPack), "0 0 1 2");
  EXPECT_EQ(packed(5, 2, Packing::kNoPack), "0 0 0 1 1");
  EXPECT_EQ(packed(6, 3, Packing::kFewest, Distribution::kCyclic), "0 1 0 1 0 1");
  EXPECT_EQ(packed(5, 2, Packing::kPack, Distribution::kCyclic), "0 1 0 1 0");
  EXPECT_EQ(packed(13, 3, Packing::kFewest), "More processors requested than permitted");
  // Fewer nodes only where all are alike.
  const StepRequest two{.tasks = 2, .nodes = 2, .packing = Packing::kFewest};
  EXPECT_EQ(placed(two, rooms({4, 1})), "0 1");
  EXPECT_EQ(placed(two, rooms({4, 4, 4})), "0 0");
  const StepRequest crowd{
      .tasks = 9, .nodes = 3, .packing = Packing::kFewest, .overcommits = true};
  EXPECT_EQ(placed(crowd, rooms({4, 4, 4})), "0 0 0 0 1 1 1 1 2");
  EXPECT_EQ(placed(crowd, rooms({4, 1, 1})), "0 0 0 0 0 1 1 2 2");
}

// The cases are those that Slurm was asked about.
TEST(StepLayout, CpusAreCountedOverAllNodes) {
  const auto with_two = [](std::uint32_t tasks, std::uint32_t nodes) {
    return StepRequest{.tasks = tasks, .nodes = nodes, .cpus_per_task = 2, .is_exact = true};
  };
  EXPECT_EQ(placed(with_two(2, 2), rooms({3, 1})), "0 1");
  EXPECT_EQ(placed(with_two(1, 1), rooms({3, 1})), "0");
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .cpus_per_task = 3}, rooms({4, 2, 1})), "0 1");
  const std::string refused = "More processors requested than permitted";
  EXPECT_EQ(placed(with_two(1, 1), rooms({1, 1, 1})), refused);
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2, .cpus_per_task = 3}, rooms({4, 1})), refused);
}

TEST(StepLayout, WaitsForLaunchersWithoutSayingThatNodesAreBusy) {
  auto nodes = rooms({2, 2});
  nodes[1].is_here = false;
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2}, nodes), "launchers");
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1}, nodes), "0");
  nodes[0].used = 2;
  EXPECT_EQ(placed({.tasks = 2, .nodes = 2}, nodes), "wait");
  auto three = rooms({2, 2, 2});
  three[1].is_here = false;
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .relative = 1}, three), "2") << "it was lost";
  three[1].is_coming = true;
  EXPECT_EQ(placed({.tasks = 1, .nodes = 1, .relative = 1}, three), "launchers");
}

}  // namespace
}  // namespace launcher
