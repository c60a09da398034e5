// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include "base/testing/fuzz_corpus.h"
#include "operator/fuzz/targets.h"

namespace control {
namespace {

using base::testing::run_corpus;

TEST(FuzzCorpus, Objects) {
  run_corpus("operator/fuzz/corpus/objects_fuzz", fuzz_objects);
}

}  // namespace
}  // namespace control
