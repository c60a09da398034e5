// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include "base/testing/fuzz_corpus.h"
#include "node-agent/fuzz/targets.h"

namespace agent {
namespace {

using base::testing::run_corpus;

TEST(FuzzCorpus, Timetable) {
  run_corpus("node-agent/fuzz/corpus/timetable_fuzz", fuzz_timetable);
}
TEST(FuzzCorpus, PodPath) {
  run_corpus("node-agent/fuzz/corpus/pod_path_fuzz", fuzz_pod_path);
}
TEST(FuzzCorpus, Journal) {
  run_corpus("node-agent/fuzz/corpus/journal_fuzz", fuzz_journal);
}

}  // namespace
}  // namespace agent
