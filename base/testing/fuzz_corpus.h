// Runs a fuzzer's corpus as an ordinary test: each file, each of its prefixes at line ends, and
// some mutations with one byte changed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>

#include "base/prng.h"

namespace base::testing {

// `folder` is relative to the source tree: "kube/fuzz/corpus/wire_fuzz". Fails if there is no file
// in it. The seed is fixed, so a failure comes again.
inline void run_corpus(const std::string& folder,
                       const std::function<void(std::string_view)>& target) {
  constexpr std::uint64_t kSeed = 7;
  Prng prng{kSeed};
  int files = 0;
  const std::filesystem::path corpus = std::filesystem::path{KUBEGANG_SOURCE_DIR} / folder;
  for (const auto& entry : std::filesystem::directory_iterator{corpus}) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream file{entry.path()};
    ASSERT_TRUE(file.is_open());
    std::stringstream stream;
    stream << file.rdbuf();
    const std::string text = stream.str();
    ++files;
    // The file itself, then what a reader sees of it if it is cut off, then single bytes changed.
    target(text);
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', end + 1)) {
      target(std::string_view{text}.substr(0, end));
    }
    for (int round = 0; round < 40 && !text.empty(); ++round) {
      std::string mutated = text;
      mutated[prng.below(mutated.size())] = static_cast<char>(prng.below(256));
      target(mutated);
    }
  }
  EXPECT_GT(files, 0);
}

}  // namespace base::testing
