// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include <random>

#include "base/testing/fuzz_corpus.h"
#include "launcher/fuzz/targets.h"
#include "launcher/message.h"

namespace launcher {
namespace {

TEST(FuzzCorpus, Message) {
  base::testing::run_corpus("launcher/fuzz/corpus/launcher_message_fuzz", fuzz_message);
}

// Requests that are nearly right, which bytes without a meaning seldom are.
TEST(FuzzCorpus, RequestsOfAllKinds) {
  std::mt19937 random{1};
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (int round = 0; round < 20'000; ++round) {
    StepRequest step{.tasks = 1 + below(9),
                     .cpus_per_task = 1 + below(3),
                     .tasks_per_node = below(4),
                     .relative = below(4),
                     .distribution = static_cast<Distribution>(below(kDistributionsCount)),
                     .plane = 1 + below(4),
                     .is_exact = below(2) == 0,
                     .overlaps = below(4) == 0,
                     .overcommits = below(4) == 0,
                     .programs = {{"a"}},
                     .environment = {"A=1"}};
    step.nodes = 1 + below(std::min(step.tasks, 4U));
    for (std::uint32_t i = below(3); i > 0; --i) step.required.push_back(below(4));
    if (step.distribution == Distribution::kArbitrary) {
      step.required.push_back(below(4));
      for (std::uint32_t rank = 0; rank < step.tasks; ++rank) {
        const auto size = static_cast<std::uint32_t>(step.required.size());
        step.arranged.push_back(step.required[below(size)]);
      }
    }
    fuzz_message(encode({.kind = Kind::kCreate, .step = step}));
  }
}

TEST(FuzzCorpus, Ledger) {
  std::mt19937 random{1};
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 256);
    fuzz_ledger(bytes);
  }
}

// The same for what kubegang-pmix says.
TEST(FuzzCorpus, MessagesOfPmix) {
  std::mt19937 random{1};
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random() % limit);
  };
  for (int round = 0; round < 5'000; ++round) {
    std::string stream;
    for (std::uint32_t count = 1 + below(12); count > 0; --count) {
      PmixMessage pmix{.kind = static_cast<PmixKind>(1 + below(kPmixKindsEnd - 1)),
                       .id = below(4),
                       .rank = below(5),
                       .data = std::string(below(3), 'x')};
      for (std::uint32_t rank = below(3); rank < 4 && below(2) == 0; ++rank) {
        pmix.ranks.push_back(rank);
      }
      stream += encode(
          {.kind = Kind::kPmix, .rank = below(3), .number = below(20), .pmix = std::move(pmix)});
    }
    fuzz_message(stream);
  }
}

}  // namespace
}  // namespace launcher
