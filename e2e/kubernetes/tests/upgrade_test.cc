// `helm upgrade` and `helm rollback` between two versions of the chart, while two gangs of all
// nodes take turns. The tests run by themselves.
#include <cstdlib>
#include <filesystem>
#include <map>

#include "e2e/kubernetes/tests/two_gangs.h"

namespace kubernetes {
namespace {

namespace fs = std::filesystem;

// A checkout of an older version, whose images have the tag "older" in the nodes (make
// upgrade-test).
constexpr const char* kOlderTree = "KUBEGANG_OLDER_TREE";
constexpr const char* kThisTree = KUBEGANG_SOURCE_DIR;

class Upgrade : public Alone<TwoGangs> {
 protected:
  // The chart of that tree, with the values that the tests of that tree have. Sets the number of
  // the new revision.
  static void upgrade(const std::string& tree, int& revision, const std::string& chart = "",
                      const std::string& tag = "") {
    const Output now = helm("get values kubegang -n kubegang-system -o json");
    const json values = json::parse(now.text, nullptr, false);
    ASSERT_TRUE(values.is_object()) << now.text;
    const Output done =
        helm("upgrade kubegang " + (chart.empty() ? tree + "/charts/kubegang" : chart) +
             " -n kubegang-system --reset-values --values " + tree +
             "/e2e/kubernetes/values.yaml --set image.tag=" + tag + " --set agent.cgroupRoot=" +
             values["agent"]["cgroupRoot"].get<std::string>() + " --wait --timeout 180s");
    ASSERT_EQ(done.exit_code, 0) << done.text;
    revision = revision_now();
  }
  static int revision_now() {
    const Output list = helm("list -n kubegang-system --all -o json");
    const json releases = json::parse(list.text, nullptr, false);
    EXPECT_TRUE(releases.is_array() && releases.size() == 1) << list.text;
    return releases.is_array() ? std::stoi(releases[0]["revision"].get<std::string>()) : 0;
  }
  static Output rollback(int to) {
    return helm("rollback kubegang " + std::to_string(to) +
                " -n kubegang-system --wait --timeout 180s");
  }
  std::map<std::string, json> statuses(const std::vector<std::string>& names) {
    std::map<std::string, json> out;
    for (const std::string& name : names) {
      const json status = get(job_path(name))["status"];
      for (const char* field : {"state", "reason", "jobID", "starts", "restarts", "allocation",
                                "submitTime", "startTime", "endTime"}) {
        if (status.contains(field)) out[name][field] = status[field];
      }
      // The gangs beside those that take turns decide which of them is called Running.
      if (out[name].value("reason", "") == "Timeslice") {
        out[name].erase("reason");
        out[name]["state"] = "Running";
      }
    }
    return out;
  }
};

// The older chart's CRD of Jobs has no field `contiguous`.
TEST_F(Upgrade, ARollbackThatWouldLoseFieldsIsRefusedAndNamesTheJobs) {
  const fs::path older = fs::path{testing::TempDir()} / "kubegang-older-chart";
  fs::remove_all(older);
  fs::copy(fs::path{kThisTree} / "charts/kubegang", older, fs::copy_options::recursive);
  ASSERT_EQ(run_shell("sed -i '/^                  contiguous:$/,+2d' " + older.string() +
                      "/files/crds/kubegang.io_jobs.yaml")
                .exit_code,
            0);
  int to = 0, newest = 0;
  ASSERT_NO_FATAL_FAILURE(upgrade(kThisTree, to, older));
  ASSERT_NO_FATAL_FAILURE(upgrade(kThisTree, newest));
  const json patch{{"spec", {{"placement", {{"contiguous", true}}}}}};
  ASSERT_NO_FATAL_FAILURE(submit({.name = "third", .patch = patch}));
  ASSERT_NO_FATAL_FAILURE(wait_ready("third"));

  const Output refused = rollback(to);
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_NE(refused.text.find("kubegang-check-crds failed"), std::string::npos) << refused.text;
  const std::string told =
      run_shell(kubectl("logs -n kubegang-system job/kubegang-check-crds")).text;
  EXPECT_NE(told.find("Job " + ns_ + "/third: spec.placement.contiguous\n"), std::string::npos)
      << told;
  EXPECT_EQ(get(job_path("third"))["spec"]["placement"]["contiguous"], true);

  ASSERT_NO_FATAL_FAILURE(remove(job_path("third")));
  ASSERT_NO_FATAL_FAILURE(
      wait_until("the third gang's pods are gone", [&] { return pods("third").empty(); }));
  const Output done = rollback(to);
  EXPECT_EQ(done.exit_code, 0) << done.text;
  ASSERT_NO_FATAL_FAILURE(upgrade(kThisTree, newest));
  expect_turns_again();
  fs::remove_all(older);
}

// To the older version, from it to this one, and back again by a rollback. Each replaces operators,
// agents and CRDs while both gangs run; none of their pods is restarted.
TEST_F(Upgrade, GangsTakeTurnsAcrossUpgradeAndRollbackOfAnOlderVersion) {
  const char* const older = std::getenv(kOlderTree);
  if (older == nullptr) GTEST_SKIP() << kOlderTree << " names no folder: make upgrade-test";
  const auto run_jobs = [&](const std::string& version) {
    expect_turns_again();
    ASSERT_NO_FATAL_FAILURE(submit({.name = "done-by-" + version, .command = {"true"}}));
    ASSERT_NO_FATAL_FAILURE(wait_state("done-by-" + version, "Completed"));
    run_third_gang();
  };
  int of_older = 0, newest = 0;
  ASSERT_NO_FATAL_FAILURE(upgrade(older, of_older, "", "older"));
  ASSERT_NO_FATAL_FAILURE(run_jobs("older"));
  const auto before = statuses({"first", "second", "done-by-older"});

  ASSERT_NO_FATAL_FAILURE(upgrade(kThisTree, newest));
  ASSERT_NO_FATAL_FAILURE(run_jobs("newer"));
  EXPECT_EQ(statuses({"first", "second", "done-by-older"}), before);
  const auto by_newer = statuses({"first", "second", "done-by-newer"});

  const Output back = rollback(of_older);
  ASSERT_EQ(back.exit_code, 0) << back.text;
  ASSERT_NO_FATAL_FAILURE(run_jobs("older-again"));
  EXPECT_EQ(statuses({"first", "second", "done-by-newer"}), by_newer);

  ASSERT_NO_FATAL_FAILURE(upgrade(kThisTree, newest));
  expect_turns_again();
}

}  // namespace
}  // namespace kubernetes
