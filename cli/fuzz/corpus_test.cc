// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include "base/testing/fuzz_corpus.h"
#include "cli/fuzz/targets.h"

namespace cli {
namespace {

using base::testing::run_corpus;

TEST(FuzzCorpus, Hostlist) {
  run_corpus("cli/fuzz/corpus/hostlist_fuzz", fuzz_hostlist);
}
TEST(FuzzCorpus, TimeString) {
  run_corpus("cli/fuzz/corpus/time_string_fuzz", fuzz_time_string);
}
TEST(FuzzCorpus, SlurmConf) {
  run_corpus("cli/fuzz/corpus/slurm_conf_fuzz", fuzz_slurm_conf);
}
TEST(FuzzCorpus, Sbatch) {
  run_corpus("cli/fuzz/corpus/sbatch_fuzz", fuzz_sbatch);
}
TEST(FuzzCorpus, Scenario) {
  run_corpus("cli/fuzz/corpus/scenario_fuzz", fuzz_scenario);
}
TEST(FuzzCorpus, Swf) {
  run_corpus("cli/fuzz/corpus/swf_fuzz", fuzz_swf);
}
TEST(FuzzCorpus, PageBody) {
  run_corpus("cli/fuzz/corpus/page_body_fuzz", fuzz_page_body);
}
TEST(FuzzCorpus, Import) {
  run_corpus("cli/fuzz/corpus/import_fuzz", fuzz_import);
}

}  // namespace
}  // namespace cli
