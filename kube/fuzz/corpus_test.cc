// The fuzzers' corpora as ordinary tests: each file, each of its prefixes at line ends, and some
// mutations with one byte changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/prng.h"
#include "kube/fuzz/targets.h"

namespace kube {
namespace {

void run_corpus(const std::string& name, const std::function<void(std::string_view)>& target) {
  const std::filesystem::path corpus =
      std::filesystem::path{KUBEGANG_SOURCE_DIR} / "kube/fuzz/corpus" / name;
  constexpr std::uint64_t kSeed = 7;
  base::Prng prng{kSeed};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{corpus}) {
    SCOPED_TRACE(entry.path().string());
    std::stringstream stream;
    stream << std::ifstream{entry.path()}.rdbuf();
    const std::string text = stream.str();
    ++files;
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

TEST(FuzzCorpus, Kubeconfig) {
  run_corpus("kubeconfig_fuzz", fuzz_kubeconfig);
}
TEST(FuzzCorpus, Credential) {
  run_corpus("credential_fuzz", fuzz_credential);
}
TEST(FuzzCorpus, Values) {
  run_corpus("values_fuzz", fuzz_values);
}
TEST(FuzzCorpus, Wire) {
  run_corpus("wire_fuzz", fuzz_wire);
}

}  // namespace
}  // namespace kube
