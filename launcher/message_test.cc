#include "launcher/message.h"

#include <gtest/gtest.h>

#include <random>

namespace launcher {
namespace {

Message example() {
  return {.kind = Kind::kCreate,
          .rank = 7,
          .number = 9,
          .text = std::string{"a\0b", 3},
          .step = StepRequest{.secret = "s",
                              .tasks = 2,
                              .nodes = 2,
                              .cpus_per_task = 4,
                              .tasks_per_node = 1,
                              .relative = 3,
                              .required = {1, 5},
                              .excluded = {2},
                              .distribution = Distribution::kPlane,
                              .plane = 6,
                              .distribution_within = ":block",
                              .packing = Packing::kNoPack,
                              .overcommits = true,
                              .is_immediate = true,
                              .mpi = Mpi::kPmi2,
                              .is_unbuffered = true,
                              .window = {.rows = 24, .columns = 80},
                              .directory = "/tmp",
                              .programs = {{"echo", ""}, {"true"}},
                              .environment = {"A=1", "B="},
                              .name = "first"}};
}

// The launcher relies on this: each rank has a node, which the step is on.
TEST(Message, AnArrangementFitsItsStep) {
  const auto is_read = [](std::vector<std::uint32_t> arranged, Distribution distribution) {
    Message message = example();
    message.step->distribution = distribution;
    message.step->arranged = std::move(arranged);
    MessageReader reader;
    reader.add(encode(message));
    return reader.next().has_value();
  };
  EXPECT_TRUE(is_read({5, 1}, Distribution::kArbitrary));
  EXPECT_FALSE(is_read({5}, Distribution::kArbitrary));
  EXPECT_FALSE(is_read({5, 2}, Distribution::kArbitrary));
  EXPECT_FALSE(is_read({5, 1}, Distribution::kBlock));
}

// A launcher counts running tasks by it.
TEST(Message, EachTaskEndsOnceInAMessage) {
  const auto is_read = [](std::vector<TaskEnd> ends) {
    MessageReader reader;
    reader.add(encode({.kind = Kind::kExited, .ends = std::move(ends)}));
    return reader.next().has_value();
  };
  EXPECT_TRUE(is_read({{.rank = 0}, {.rank = 3}}));
  EXPECT_FALSE(is_read({}));
  EXPECT_FALSE(is_read({{.rank = 3}, {.rank = 3}}));
  EXPECT_FALSE(is_read({{.rank = 3}, {.rank = 0}}));
  EXPECT_FALSE(is_read({{.rank = kTasksMax}}));
}

TEST(Message, ComesBackWhateverThePiecesAre) {
  const std::vector<Message> all{
      example(),
      {.kind = Kind::kOutput, .rank = 1, .number = 2, .text = "x\n"},
      {.kind = Kind::kRun,
       .tasks = TaskSet{.ranks = {1, 4},
                        .mpi = Mpi::kPmix,
                        .pmix = {.name = "slurm.pmix.1.0",
                                 .nodes = {"n1", "n2"},
                                 .places = {0, 1, 0, 0, 1},
                                 .place = 1},
                        .is_unbuffered = true,
                        .window = {.rows = 5, .columns = 9},
                        .directory = "/",
                        .programs = {{"a"}, {"b", "c"}},
                        .environment = {"A=1"}}},
      {.kind = Kind::kCreated,
       .number = 3,
       .layout = StepLayout{.nodes = {0, 2}, .places = {0, 1, 1}}},
      {.kind = Kind::kPmix,
       .pmix = PmixMessage{.kind = PmixKind::kFence,
                           .id = 7,
                           .rank = 2,
                           .status = -61,
                           .ranks = {0, 3},
                           .words = {"A=1", ""},
                           .data = {"a\0b", 3}}},
      {.kind = Kind::kExited, .ends = {{.rank = 1, .wait_status = 256, .used = "u"}, {.rank = 4}}},
      {.kind = Kind::kDone}};
  std::string stream;
  for (const Message& message : all) stream += encode(message);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, stream.size()}) {
    MessageReader reader;
    std::vector<Message> got;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.add(std::string_view{stream}.substr(at, piece));
      while (const auto message = reader.next()) got.push_back(*message);
    }
    EXPECT_EQ(got, all) << piece;
    EXPECT_FALSE(reader.is_broken());
    EXPECT_EQ(reader.pending_bytes(), 0U);
  }
}

// Whatever bytes come: no crash, and after the first that make no sense nothing more is believed.
TEST(Message, BrokenBytesEndTheStream) {
  std::mt19937 random{1};
  const std::string good = encode(example());
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    const int changes = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < changes; ++i) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    MessageReader reader;
    reader.add(bytes);
    while (const auto message = reader.next()) {
      if (!message->step) continue;
      EXPECT_GE(message->step->tasks, 1U);
      EXPECT_LE(message->step->tasks, kTasksMax);
      const std::size_t programs = message->step->programs.size();
      EXPECT_TRUE(programs == 1 || programs == message->step->tasks);
    }
  }
}

TEST(Message, AStepWithoutAProgramIsNone) {
  Message message = example();
  message.step->programs = {{}, {"true"}};
  MessageReader reader;
  reader.add(encode(message));
  EXPECT_EQ(reader.next(), std::nullopt);
  EXPECT_TRUE(reader.is_broken());
}

}  // namespace
}  // namespace launcher
