// make soak: real processes and real freezes for an hour (SOAK_MINUTES), while operators, agents
// and the API server are killed, and users submit, suspend, requeue, cancel and delete jobs. Does
// what the campaign (simulation/) does in virtual time, on a kernel. Clocks are left alone.
//
// The devcluster's API server is a part of this process. From outside its death looks like that of
// a process (Devcluster::kill_api_server); what this test and the kubelets ask goes on.
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

#include "api/wellknown.h"
#include "base/prng.h"
#include "e2e/scenarios/harness.h"

namespace scenarios {
namespace {

namespace fs = std::filesystem;

// Enough to fill three nodes several times over, so that jobs wait, take turns and are preempted.
constexpr std::size_t kJobsMax = 6;  // that have not ended
// The longest freeze of a pod whose job is said to run: a rotation is 1.2 s; an agent is away for
// up to 4 s, the API server for 5, and then a leader must be found.
constexpr Duration kFrozenMax = seconds{30};
// For the last jobs, of up to 5 s of work each, after everything is whole again.
constexpr seconds kAllEndWithin{300};
constexpr const char* kStandBy = "operator-2";

// Returns a number from the environment, else the default.
std::int64_t number_in(const char* variable, std::int64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoll(text);
}

// One thread does everything, in small steps: acts of users, faults, acts that are due from earlier
// ones, and a look at all jobs. So the test itself changes nothing while it looks.
class Soak : public Scenario {
 protected:
  // A job as this test has asked for it: an end that it has not asked for must be Completed.
  struct Submitted {
    int nodes = 1;
    bool cancelled = false, deleted = false, ended = false;
  };

  void begin() {
    start({.nodes_count = 3, .config = R"({"requeue": {"delay": "1s"}})"});
    if (IsSkipped()) return;
    make_partition("high", {{"nodes", {{"hostlist", "n[12-14]"}}},
                            {"priorityTier", 2},
                            {"overSubscribe", {{"policy", "Force"}, {"maxShare", 1}}}});
    // Two operators, so that a killed leader has a successor at once.
    start_operator(kStandBy);
  }

  // Each draw stands in a statement or a call of its own, so that a seed draws the same everywhere.
  std::uint64_t below(std::uint64_t limit) { return prng_.below(limit); }
  milliseconds some(std::uint64_t most_ms) { return milliseconds{1 + below(most_ms)}; }
  void did(const std::string& what) { ++done_[what]; }
  void looked(const std::string& at) { ++looked_[at]; }
  // To be done by the loop at its time; nothing waits.
  void later(milliseconds after, std::function<void()> act) {
    later_.emplace(now() + after, std::move(act));
  }

  // --- users ---
  // A job that counts its own steps, which take 1 to 5 s while it is not frozen, and leaves a file
  // on each of its nodes at the end. The file's name has the number of the restart, so that work of
  // an earlier start is not taken for that of the last one.
  void submit_one() {
    const std::string name = "job-" + std::to_string(++jobs_count_);
    const int nodes = 1 + static_cast<int>(below(3));
    const std::string steps = std::to_string(20 + below(80));  // of 50 ms, while it is not frozen
    submit({.name = name,
            .nodes_count = nodes,
            .command = {"sh", "-c",
                        "i=0; while [ $i -lt " + steps +
                            " ]; do i=$((i+1)); sleep 0.05; done; "
                            "echo done >> " +
                            folder_of_programs() + "/did-" + name +
                            ".${SLURM_RESTART_COUNT:-0}.$SLURM_NODEID"},
            .partition = below(5) == 0 ? "high" : ""});
    jobs_[name] = {.nodes = nodes};
    did("job submitted");
  }
  void control(const std::string& name, const json& what) {
    (void)call(kube::Method::kPatch, job_path(name), {{"spec", {{"control", what}}}});
  }
  // A user's act on any job that is alive. Answers are ignored: the job may have ended meanwhile.
  void meddle() {
    std::vector<std::string> alive;
    for (const auto& [name, one] : jobs_) {
      if (!one.deleted && !one.ended && !one.cancelled) alive.push_back(name);
    }
    if (alive.empty()) return;
    const std::string name = alive[below(alive.size())];
    switch (below(4)) {
      case 0:
        // Resumed up to 5 s later, even if the operator never saw the first wish.
        control(name, {{"suspend", true}});
        later(some(5000), [this, name] { control(name, {{"suspend", false}}); });
        return did("job suspended and resumed");
      case 1:
        control(name, {{"requeueRequest", ++requests_}});
        return did("job requeued");
      case 2:
        control(name, {{"cancel", true}});
        jobs_[name].cancelled = true;
        return did("job cancelled");
      default:
        (void)call(kube::Method::kDelete, job_path(name));
        jobs_[name].deleted = true;
        return did("job deleted");
    }
  }

  // --- faults ---
  void kill_component(const std::string& name, milliseconds away) {
    if (!cluster_->components().runs(name)) return;
    cluster_->components().kill(name);
    // How long the fault lasts; restart_ended() starts it again then.
    down_until_[name] = now() + away;
    did(name.starts_with("operator") ? "operator killed" : "agent killed");
  }
  // Kills the worker; the supervisor goes on.
  void kill_worker(const std::string& agent) {
    const std::vector<pid_t> all = cluster_->components().processes(agent);
    const pid_t main = cluster_->components().pid(agent);
    const auto worker =
        std::find_if(all.begin(), all.end(), [&](pid_t pid) { return pid != main; });
    if (worker == all.end() || ::kill(*worker, SIGKILL) != 0) return;
    did("agent's worker killed");
  }
  void kill_api_server() {
    if (api_is_away_) return;
    api_is_away_ = true;
    cluster_->kill_api_server();
    later(some(5000), [this] { start_api_server_again(); });
    did("API server killed");
  }
  void start_api_server_again() {
    if (!std::exchange(api_is_away_, false)) return;
    const base::Status started = cluster_->start_api_server_again();
    ASSERT_TRUE(started.ok()) << started.error().message;
  }
  // Operators twice as often as each of the other kinds.
  void do_harm() {
    const std::string agent = devcluster::agent_name(node(static_cast<int>(below(3))));
    switch (below(5)) {
      case 0:
        return kill_component(agent, some(4000));
      case 1:
        return kill_worker(agent);
      case 2:
        return kill_api_server();
      default:
        return kill_component(below(2) == 0 ? std::string{devcluster::kOperator} : kStandBy,
                              some(3000));
    }
  }
  // As a DaemonSet and a Deployment would. A leader that could not renew ends by itself.
  void restart_ended() {
    for (const std::string& name : cluster_->components().names()) {
      if (cluster_->components().runs(name)) continue;
      const auto until = down_until_.try_emplace(name, now() + seconds{1}).first->second;
      if (now() < until) continue;
      EXPECT_TRUE(cluster_->components().start_again(name).ok()) << name;
      down_until_.erase(name);
    }
  }

  // --- what is looked at ---
  // Every job that was not deleted is there, and ends once and rightly.
  // A fault may hide a job for a moment, but get() tries until the API server answers.
  void look() {
    for (auto& [name, one] : jobs_) {
      if (one.deleted || one.ended) continue;
      const kube::Job found = job(name);
      looked("job is there");
      ASSERT_FALSE(found.metadata.name.empty()) << name << " is lost";
      look_at_pods(name, found);
      if (!found.status.state || !kube::is_final(*found.status.state)) continue;
      one.ended = true;
      look_at_verdict(name, one, *found.status.state);
    }
  }
  // No job has running pods of two starts; and no pod of a job that is said to run stays frozen for
  // longer than faults can explain.
  void look_at_pods(const std::string& name, const kube::Job& found) {
    // A requeue may start the job again only when the pods before are gone.
    std::set<std::string> starts;  // that have a running pod
    const bool runs = found.status.state == kube::JobState::kRunning &&
                      !found.spec.control.suspend && !found.status.ending;
    for (const json& pod : pods(name)) {
      if (pod["status"].value("phase", "") != "Running") continue;
      starts.insert(pod["metadata"]["labels"].value(std::string{kube::kLabelStart}, ""));
      const std::string uid = pod["metadata"]["uid"];
      looked("pod may be frozen");
      if (!runs || !is_frozen(pod)) {
        frozen_since_.erase(uid);
        continue;
      }
      const Duration since = now() - frozen_since_.try_emplace(uid, now()).first->second;
      EXPECT_LT(since, kFrozenMax) << pod["metadata"]["name"] << " stays frozen\n"
                                   << status_text(name);
    }
    looked("one start at a time");
    EXPECT_LE(starts.size(), 1U) << name << " runs twice";
  }
  // A job that completed has done its work on each of its nodes, and a job that was not canceled
  // completes.
  void look_at_verdict(const std::string& name, const Submitted& one, kube::JobState state) {
    looked("verdict");
    if (state == kube::JobState::kCancelled && one.cancelled) return;
    EXPECT_EQ(state, kube::JobState::kCompleted) << name << "\n" << status_text(name);
    std::set<std::string> nodes;
    for (const auto& entry : fs::directory_iterator{folder_here()}) {
      const std::string file = entry.path().filename();
      if (file.starts_with("did-" + name + ".")) nodes.insert(file.substr(file.rfind('.')));
    }
    EXPECT_EQ(nodes.size(), static_cast<std::size_t>(one.nodes)) << name << " is Completed";
  }

  // --- the run ---
  // Acts of users come every 0.75 s on average, faults every 4 s.
  void run_until_end() {
    Instant user_at = now(), harm_at = now() + seconds{5};
    const Instant end = now() + std::chrono::minutes{number_in("SOAK_MINUTES", 60)};
    // The first failure ends the run, while the logs still show how it came about.
    while (now() < end && !HasFailure()) {
      run_later();
      restart_ended();
      if (now() >= user_at) {
        user_at = now() + some(1500);
        below(3) == 0 ? meddle() : submit_if_room();
      }
      if (now() >= harm_at) {
        harm_at = now() + some(8000);
        do_harm();
      }
      ASSERT_NO_FATAL_FAILURE(look());
      pass(milliseconds{100});
    }
  }
  void submit_if_room() {
    const auto open = std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
      return !entry.second.ended && !entry.second.deleted;
    });
    if (static_cast<std::size_t>(open) < kJobsMax) submit_one();
  }
  void run_later() {
    while (!later_.empty() && later_.begin()->first <= now()) {
      const auto act = std::move(later_.begin()->second);
      later_.erase(later_.begin());
      act();
    }
  }
  // Nothing fails from now on, users release what they hold: all jobs end. A job that is lost by a
  // fault would never end, so this is the proof that none was.
  void heal() {
    start_api_server_again();
    down_until_.clear();
    for (const auto& [name, one] : jobs_) {
      if (!one.deleted && !one.ended) control(name, {{"suspend", false}});
    }
    later_.clear();
    const auto all_ended = [&] {
      restart_ended();
      look();
      return HasFatalFailure() || std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
               return entry.second.ended || entry.second.deleted;
             });
    };
    EXPECT_TRUE(comes_true(all_ended, kAllEndWithin)) << "jobs have not ended";
  }
  // Finished pods keep their objects, not their processes.
  // A frozen cgroup without processes would freeze whatever is put into it next.
  void expect_nothing_left() {
    for (const std::string& name : all_nodes()) {
      const std::string below = node_cgroup(name);
      EXPECT_TRUE(comes_true([&] { return os::processes_below(below).empty(); }, seconds{30}))
          << "processes are left on " << name;
      for (const auto& entry : fs::recursive_directory_iterator{below}) {
        if (!entry.is_directory()) continue;
        looked("cgroup at the end");
        EXPECT_FALSE(os::is_frozen(entry.path())) << entry.path();
      }
    }
  }
  void tell() const {
    for (const auto* counts : {&done_, &looked_}) {
      std::printf("%s\n", counts == &done_ ? "done" : "looked at");
      for (const auto& [what, count] : *counts) {
        std::printf("  %-40s %lld\n", what.c_str(), static_cast<long long>(count));
      }
    }
  }

  // A run with the same seed does the same acts, though not at the same instants.
  const std::uint64_t seed_ = static_cast<std::uint64_t>(
      number_in("SOAK_SEED", std::chrono::system_clock::now().time_since_epoch() / seconds{1}));
  base::Prng prng_{seed_};
  std::map<std::string, Submitted> jobs_;
  std::int64_t jobs_count_ = 0, requests_ = 0;
  std::multimap<Instant, std::function<void()>> later_;
  std::map<std::string, Instant> down_until_;    // by component
  std::map<std::string, Instant> frozen_since_;  // by the pod's UID, while its job runs
  std::map<std::string, std::int64_t> done_, looked_;
  bool api_is_away_ = false;
};

TEST_F(Soak, NothingIsLostAndNothingStaysFrozen) {
  std::printf("seed %llu (SOAK_SEED; the machine's own timing is not in it)\n",
              static_cast<unsigned long long>(seed_));
  ASSERT_NO_FATAL_FAILURE(begin());
  if (IsSkipped()) return;
  run_until_end();
  heal();
  expect_nothing_left();
  tell();
  // A soak in which a kind of fault never came would prove nothing about it.
  for (const char* what : {"job submitted", "operator killed", "agent killed",
                           "agent's worker killed", "API server killed"}) {
    EXPECT_GT(done_[what], 0) << what;
  }
  for (const char* at : {"verdict", "pod may be frozen", "one start at a time"}) {
    EXPECT_GT(looked_[at], 0) << at;
  }
}

}  // namespace
}  // namespace scenarios
