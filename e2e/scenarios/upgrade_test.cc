// Operator and agents of two versions side by side (make upgrade-test): each is replaced alone, to
// the newer version and back, while gangs take turns and an array runs its tasks. KUBEGANG_OLDER is
// a folder with the programs of the older version.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "api/array_status.h"
#include "e2e/scenarios/harness.h"
#include "linux/testing/shell.h"

namespace scenarios {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kGangs{"first", "second"};
// Their jobs and nodes are apart, so ends of tasks change no turns.
const std::vector<std::string> kGangNodes{"n12", "n13"};
const std::string kArray = "array";

// Returns the part of a status that a successor of either version must leave as it is. Which of the
// jobs that take turns is listed first, and so is `Running` between turns, changes with those that
// come and go beside them.
json lasting(const json& job) {
  json out;
  for (const char* field : {"state", "reason", "jobID", "starts", "restarts", "allocation",
                            "submitTime", "startTime", "endTime", "exitCode", "held"}) {
    if (job["status"].contains(field)) out[field] = job["status"][field];
  }
  if (out.value("reason", "") == "Timeslice") {
    out.erase("reason");
    out["state"] = "Running";
  }
  return out;
}

class Upgrade : public Scenario {
 protected:
  // Links, which use() sets to the programs of one version.
  void begin() {
    const char* const older = std::getenv("KUBEGANG_OLDER");
    if (older == nullptr) GTEST_SKIP() << "KUBEGANG_OLDER names no folder: make upgrade-test";
    versions_ = {{"older", fs::canonical(older)},
                 {"newer", fs::canonical(KUBEGANG_BINARY_DIR "/bin")}};
    const auto help =
        os::testing::run_shell((versions_["older"] / "kubectl-gang").string() + " submit --help");
    ASSERT_EQ(help.exit_code, 0) << help.text;
    knows_arrays_ = help.text.find("--array") != std::string::npos;
    if (!knows_arrays_) std::cout << "the older version has no arrays\n";
    std::string pattern = testing::TempDir() + "upgrade-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    programs_ = pattern;
    for (const char* program : {"kubegang-devcluster", "kubegang-probe"}) use(program, "newer");
    for (const char* program : {"kubegang-launcher", "kubegang-operator", "kubegang-agent"}) {
      use(program, "older");
    }
    start({.nodes_count = 3, .with_partition = false, .programs = programs_});
    if (IsSkipped() || HasFatalFailure()) return;
    const json shared{{"policy", "Force"}, {"maxShare", 4}};
    make_partition(
        "batch",
        {{"nodes", {{"hostlist", "n[12-13]"}}}, {"default", true}, {"overSubscribe", shared}});
    make_partition("tasks", {{"nodes", {{"hostlist", "n14"}}}, {"overSubscribe", shared}});
    wait_agents();
  }
  void TearDown() override {
    Scenario::TearDown();
    if (!programs_.empty()) fs::remove_all(programs_);
  }

  void use(const std::string& program, const std::string& version) {
    const fs::path link = fs::path{programs_} / program;
    fs::remove(link);
    fs::create_symlink(versions_[version] / program, link);
  }
  // By the kernel: the program that the process was started from.
  void expect_version(const std::string& component, const std::string& version) {
    const pid_t pid = cluster_->components().pid(component);
    EXPECT_EQ(fs::read_symlink("/proc/" + std::to_string(pid) + "/exe").parent_path(),
              versions_[version])
        << component;
  }
  // In order, as Kubernetes replaces pods.
  void replace(const std::string& component, const std::string& version) {
    ASSERT_TRUE(cluster_->components().signal(component, SIGTERM).ok());
    ASSERT_TRUE(cluster_->components().wait(component, seconds{20}).has_value()) << component;
    ASSERT_TRUE(cluster_->components().start_again(component).ok());
    expect_version(component, version);
  }

  void replace_operator(const std::string& version) {
    const std::map<std::string, json> before = statuses();
    const int ended = tasks_ended();
    const std::int64_t term = *job("first").status.term;
    const Instant from = now();
    use("kubegang-operator", version);
    ASSERT_NO_FATAL_FAILURE(replace(std::string{devcluster::kOperator}, version));
    // A job that is new shows that it leads, and that the agents obey its timetables.
    ASSERT_NO_FATAL_FAILURE(third_job_comes_and_goes(from));
    EXPECT_GT(*job("third").status.term, term);
    remove(job_path("third"));
    for (const auto& [name, status] : statuses()) {
      EXPECT_EQ(status, before.at(name)) << name << " after the operator is " << version;
    }
    EXPECT_GE(tasks_ended(), ended);
  }

  void replace_agents(const std::string& version) {
    use("kubegang-agent", version);
    for (const std::string& name : all_nodes()) {
      ASSERT_NO_FATAL_FAILURE(replace(devcluster::agent_name(name), version));
    }
    ASSERT_NO_FATAL_FAILURE(wait_agents());
    ASSERT_NO_FATAL_FAILURE(wait_for_turns(kGangs, kGangNodes));
    ASSERT_NO_FATAL_FAILURE(third_job_comes_and_goes(now()));
    remove(job_path("third"));
  }

  // `from`: since when no two gangs may have run at once. Afterwards the two take turns strictly.
  void third_job_comes_and_goes(Instant from) {
    ASSERT_NO_FATAL_FAILURE(submit_ready({.name = "third", .nodes_count = 2}));
    ASSERT_NO_FATAL_FAILURE(wait_for_turns({"first", "second", "third"}, kGangNodes));
    cancel("third");
    ASSERT_NO_FATAL_FAILURE(wait_state("third", "Cancelled"));
    ASSERT_NO_FATAL_FAILURE(
        wait_until("the third job's pods are gone", [&] { return pods("third").empty(); }));
    ASSERT_NO_FATAL_FAILURE(wait_for_turns(kGangs, kGangNodes));
    EXPECT_EQ(overlap_since(from, kGangs), Duration{});
    const Instant rotating = now();
    pass(seconds{1});
    expect_strict_turns(rotating, now(), kGangs);
    for (const std::string& name : kGangs) expect_undisturbed(name);
    EXPECT_EQ(pod_uids(), pod_uids_);
  }

  std::map<std::string, json> statuses() {
    std::map<std::string, json> out;
    for (const char* name : {"first", "second", "done", "held", "after"}) {
      out[name] = lasting(get(job_path(name)));
    }
    return out;
  }
  std::vector<std::string> pod_uids() {
    std::vector<std::string> out;
    for (const std::string& name : kGangs) {
      for (const json& pod : pods(name)) out.push_back(pod["metadata"]["uid"]);
    }
    std::ranges::sort(out);
    return out;
  }
  int tasks_ended() {
    if (!knows_arrays_) return 0;
    const kube::Job array = job(kArray);
    EXPECT_TRUE(array.status.array);
    return array.status.array ? kube::TaskOutcomes{*array.status.array}.ended() : 0;
  }

  std::string programs_;
  bool knows_arrays_{};  // the older version; it would run an array as one job
  std::map<std::string, fs::path> versions_;
  std::vector<std::string> pod_uids_;  // of the gangs, which are to live through all
};

// Older both, newer operator, newer both, older operator, older both: each mix, and each change
// upwards and back. Statuses and timetables of one version are read by the other in each step.
TEST_F(Upgrade, EachPartIsReplacedAloneAndBackWhileGangsTakeTurns) {
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  expect_version(std::string{devcluster::kOperator}, "older");
  expect_version(devcluster::agent_name(node(0)), "older");
  submit({.name = "done", .nodes_count = 1, .command = {"true"}, .partition = "tasks"});
  ASSERT_NO_FATAL_FAILURE(wait_state("done", "Completed"));
  for (const std::string& name : kGangs) submit_ready({.name = name, .nodes_count = 2});
  submit({.name = "held", .nodes_count = 1, .patch = {{"spec", {{"control", {{"hold", true}}}}}}});
  if (knows_arrays_) {
    submit({.name = kArray,
            .nodes_count = 1,
            .command = {"sleep", "4"},
            .partition = "tasks",
            .patch = {{"spec", {{"array", {{"tasks", "0-14"}, {"parallelism", 1}}}}}}});
    ASSERT_NO_FATAL_FAILURE(wait_state(kArray, "Running"));
  }
  submit(
      {.name = "after",
       .nodes_count = 1,
       .command = {"true"},
       .partition = "tasks",
       .patch = {{"spec",
                  {{"dependency",
                    {{"terms",
                      {{{"type", "AfterOK"}, {"jobName", knows_arrays_ ? kArray : "held"}}}}}}}}}});
  ASSERT_NO_FATAL_FAILURE(wait_reason("after", "Dependency"));
  ASSERT_NO_FATAL_FAILURE(wait_for_turns(kGangs, kGangNodes));
  pod_uids_ = pod_uids();

  ASSERT_NO_FATAL_FAILURE(replace_operator("newer"));
  ASSERT_NO_FATAL_FAILURE(replace_agents("newer"));
  ASSERT_NO_FATAL_FAILURE(replace_operator("older"));
  ASSERT_NO_FATAL_FAILURE(replace_agents("older"));
  ASSERT_NO_FATAL_FAILURE(replace_agents("newer"));
  ASSERT_NO_FATAL_FAILURE(replace_operator("newer"));

  if (!knows_arrays_) return;
  // Each task has started once, whichever operator led then.
  ASSERT_NO_FATAL_FAILURE(wait_state(kArray, "Completed", seconds{180}));
  EXPECT_EQ(job(kArray).status.array->counts.succeeded, 15) << status_text(kArray);
  EXPECT_EQ(job(kArray).status.restarts.value_or(0), 0);
  ASSERT_NO_FATAL_FAILURE(wait_state("after", "Completed"));
}

}  // namespace
}  // namespace scenarios
