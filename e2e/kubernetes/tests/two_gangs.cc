#include "e2e/kubernetes/tests/two_gangs.h"

namespace kubernetes {

const std::vector<std::string> TwoGangs::kBoth{"first", "second"};

// The gangs are made once for the suite: their start takes longer than most of its tests.
void TwoGangs::SetUp() {
  if (state_directory().empty()) GTEST_SKIP() << kStateVariable << " names no cluster";
  if (is_made_) {
    // The test before has seen them take turns at its end.
    ns_ = shared_ns_;
    stamps_in_ = state_directory() + "/stamps/" + ns_;
  } else {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    is_made_ = true;
    shared_ns_ = name_like(info->test_suite_name());
    ASSERT_NO_FATAL_FAILURE(begin(shared_ns_));
    for (const std::string& name : kBoth) ASSERT_NO_FATAL_FAILURE(submit({.name = name}));
    for (const std::string& name : kBoth) ASSERT_NO_FATAL_FAILURE(wait_ready(name));
    ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  }
  from_ = now();
}

// After a success nothing is taken down: the gangs are the next test's, too.
void TwoGangs::TearDown() {
  if (ns_.empty() || !HasFailure()) return;
  show_failure();
  restore_nodes();
  end(ns_);  // the next test begins afresh
  is_made_ = false;
}

void TwoGangs::TearDownTestSuite() {
  if (is_made_) end(shared_ns_);
  is_made_ = false;
}

// Expects, as users of either gang may: no overlap since the test began, no restart, no lost pod.
void TwoGangs::expect_nobody_noticed() {
  ASSERT_NO_FATAL_FAILURE(expect_turns_since(from_, kBoth));
  for (const std::string& name : kBoth) expect_undisturbed(name);
}

// For tests that stop the rotation on purpose: what came before does not count.
void TwoGangs::expect_turns_again() {
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kBoth));
  from_ = now();
  expect_nobody_noticed();
}

// The pod of whichever gang has no turn at this moment. It may be thawed by the time the caller
// uses it.
json TwoGangs::frozen_pod_on(const std::string& node) {
  json found;
  wait_until("a pod on " + node + " is frozen", [&] {
    for (const std::string& name : kBoth) {
      const json pod = pod_on(name, node);
      if (pod.is_object() && is_frozen(pod)) found = pod;
    }
    return found.is_object();
  });
  return found;
}

// Shows that the present leader can do everything that a start and an end need.
void TwoGangs::run_third_gang() {
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third"}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));
  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
}

}  // namespace kubernetes
