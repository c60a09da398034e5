// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include "base/testing/fuzz_corpus.h"
#include "dashboard/fuzz/targets.h"

namespace dashboard {
namespace {

TEST(FuzzCorpus, Request) {
  base::testing::run_corpus("dashboard/fuzz/corpus/request_fuzz", fuzz_request);
}

}  // namespace
}  // namespace dashboard
