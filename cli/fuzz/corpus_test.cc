// The fuzzers' corpora as ordinary tests: each file, each of its prefixes at line ends, and some
// mutations with one byte changed.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/prng.h"
#include "cli/files.h"
#include "cli/fuzz/targets.h"

namespace cli {
namespace {

void run_corpus(const std::string& name, const std::function<void(std::string_view)>& target) {
  const std::filesystem::path corpus =
      std::filesystem::path{KUBEGANG_SOURCE_DIR} / "cli/fuzz/corpus" / name;
  constexpr std::uint64_t kSeed = 7;
  base::Prng prng{kSeed};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator{corpus}) {
    SCOPED_TRACE(entry.path().string());
    const base::Result<std::string> text = read_file(entry.path().string(), 1U << 20U);
    ASSERT_TRUE(text.ok()) << text.error().message;
    ++files;
    target(*text);
    for (std::size_t end = text->find('\n'); end != std::string::npos;
         end = text->find('\n', end + 1)) {
      target(std::string_view{*text}.substr(0, end));
    }
    for (int round = 0; round < 40 && !text->empty(); ++round) {
      std::string mutated = *text;
      mutated[prng.below(mutated.size())] = static_cast<char>(prng.below(256));
      target(mutated);
    }
  }
  EXPECT_GT(files, 0);
}

TEST(FuzzCorpus, Hostlist) {
  run_corpus("hostlist_fuzz", fuzz_hostlist);
}
TEST(FuzzCorpus, TimeString) {
  run_corpus("time_string_fuzz", fuzz_time_string);
}
TEST(FuzzCorpus, SlurmConf) {
  run_corpus("slurm_conf_fuzz", fuzz_slurm_conf);
}
TEST(FuzzCorpus, Sbatch) {
  run_corpus("sbatch_fuzz", fuzz_sbatch);
}
TEST(FuzzCorpus, Scenario) {
  run_corpus("scenario_fuzz", fuzz_scenario);
}
TEST(FuzzCorpus, Swf) {
  run_corpus("swf_fuzz", fuzz_swf);
}
TEST(FuzzCorpus, Import) {
  run_corpus("import_fuzz", fuzz_import);
}

}  // namespace
}  // namespace cli
