// The corpora of the fuzzers here as ordinary tests.
#include <gtest/gtest.h>

#include "base/testing/fuzz_corpus.h"
#include "kube/fuzz/targets.h"

namespace kube {
namespace {

using base::testing::run_corpus;

TEST(FuzzCorpus, Kubeconfig) {
  run_corpus("kube/fuzz/corpus/kubeconfig_fuzz", fuzz_kubeconfig);
}
TEST(FuzzCorpus, Credential) {
  run_corpus("kube/fuzz/corpus/credential_fuzz", fuzz_credential);
}
TEST(FuzzCorpus, Values) {
  run_corpus("kube/fuzz/corpus/values_fuzz", fuzz_values);
}
TEST(FuzzCorpus, Wire) {
  run_corpus("kube/fuzz/corpus/wire_fuzz", fuzz_wire);
}

}  // namespace
}  // namespace kube
