// RuleTest: what tests of single rules share: configurations of one line, and a driver with told or
// own timing. The tests are for rules that no recording shows; each is named after its rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {

class RuleTest : public ::testing::Test {
 protected:
  // --- a test that makes its own drivers ---

  // This quirk and no other; none if it is not wanted.
  static Quirks only(bool Quirks::*quirk, bool wanted = true) {
    Quirks quirks;
    quirks.*quirk = wanted;
    return quirks;
  }

  // select/linear without gang, one job per node; the partitions are the test's.
  static Configuration whole_nodes(std::vector<PartitionConfig> partitions) {
    Configuration c = gang_linear(std::move(partitions));
    c.cluster.gang = false;
    return c;
  }

  static PartitionConfig closed(const std::string& name, const std::vector<NodeSpec>& nodes,
                                std::uint16_t tier = 1) {
    return partition(name, nodes, OverSubscribe::kNo, 1, tier);
  }

  // CR_Core, or CR_CPU with task/none; partitions low and high of tiers 1 and 2, FORCE:`share`.
  static Configuration two_tiers(const std::vector<NodeSpec>& nodes, PreemptMode mode, int share) {
    Configuration c = gang_linear({partition("low", nodes, OverSubscribe::kForce, share, 1),
                                   partition("high", nodes, OverSubscribe::kForce, share, 2)});
    c.cluster.select = SelectType::kConsTres;
    c.cluster.preempt_type = PreemptType::kPartitionPriority;
    c.cluster.preempt_mode = mode;
    return c;
  }

  static JobRequest with_tasks(JobRequest request, int tasks) {
    request.tasks = tasks;
    return request;
  }

  // With own timing: whatever is due at this instant, a pass among it, is done before the call
  // returns.
  static void submit(Driver& driver, double t, const JobRequest& request) {
    driver.step(at(t), Submit{request});
    driver.run_until(at(t));
  }

  // With told timing.
  static void submit_and_pass(Driver& driver, double t, const JobRequest& request) {
    driver.step(at(t), Submit{request});
    driver.step(at(t), Pass{});
  }

  static JobState state(const Driver& driver, std::int64_t id) { return driver.view(id).state; }

  // Returns the endings that were decided since the last call; other decisions are dropped.
  static std::vector<End> ends(Driver& driver) {
    std::vector<End> found;
    for (const Decision& decision : driver.take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
    }
    return found;
  }

  // Returns the job that a pass takes: 1 (QOS `first`, tier 2, priority 50) or 2 (QOS `second`,
  // tier 1, `priority`); a job that has started stays.
  static std::int64_t taken_first(Configuration c, const std::string& first,
                                  const std::string& second, std::uint32_t priority) {
    const auto one = nodes("n", 1, 1);
    c.partitions = {closed("high", one, 2), closed("low", one, 1)};
    c.cluster.gang = false;
    c.cluster.select = SelectType::kLinear;
    c.cluster.preempt_type = PreemptType::kQos;
    c.cluster.preempt_mode = PreemptMode::kCancel;
    c.cluster.preempt_exempt_time = seconds(1000);
    Driver driver{c, one, make_replay()};
    JobRequest request = job(1, 1, "high");
    request.qos = first;
    request.priority = Priority{50};
    driver.step(at(0), Submit{request});
    request = job(2, 1, "low");
    request.qos = second;
    request.priority = Priority{priority};
    driver.step(at(0), Submit{request});
    driver.step(at(1), Pass{});
    return state(driver, 1) == JobState::kRunning ? 1 : 2;
  }

  // QOS by name, each with the one that it may preempt ("" = none).
  static Configuration with_qos(std::vector<std::pair<std::string, std::string>> preempting) {
    Configuration c = gang_linear({});
    for (auto& [name, victim] : preempting) {
      QosConfig qos;
      qos.name = name;
      if (!victim.empty()) qos.preempt = {victim};
      c.qos.push_back(qos);
    }
    return c;
  }

  // --- a test that adds partitions to one configuration and begins with told timing ---
  RuleTest() {
    c_ = gang_linear({});
    c_.cluster.gang = false;
  }
  void add(const std::string& name, const std::vector<NodeSpec>& nodes, std::uint16_t tier = 1) {
    c_.partitions.push_back(testing::partition(name, nodes, OverSubscribe::kNo, 1, tier));
    c_.partitions.back().is_default = c_.partitions.size() == 1;
  }
  // Partitions low, mid and high of tiers 1, 2 and 3, whose jobs end those of lower tiers.
  void preempt_by_tier(PreemptMode mode, const std::vector<NodeSpec>& nodes) {
    c_.cluster.preempt_type = PreemptType::kPartitionPriority;
    c_.cluster.preempt_mode = mode;
    std::uint16_t tier = 1;
    for (const char* name : {"low", "mid", "high"}) {
      add(name, nodes, tier++);
    }
  }
  Driver& begin(std::vector<NodeSpec> nodes) {
    driver_ = std::make_unique<Driver>(c_, std::move(nodes), make_replay());
    driver_->ends_at_once = false;
    return *driver_;
  }
  // Begins with one partition of `nodes_count` nodes of 4 CPUs.
  void begin_with(int nodes_count) {
    const auto all = nodes("n", 1, nodes_count);
    add("p", all);
    begin(all);
  }
  // Nothing passes until the test says so.
  void submit(double t, const JobRequest& request) { driver_->step(at(t), Submit{request}); }
  // The event, and the pass that a scheduler with timing of its own would make because of it.
  void tell(double t, Event event) {
    driver_->step(at(t), std::move(event));
    driver_->step(at(t), Pass{});
  }
  JobState state(std::int64_t id) const { return driver_->view(id).state; }
  std::vector<End> ends() {
    std::vector<End> found;
    for (const Decision& decision : driver_->take_log()) {
      if (const auto* end = std::get_if<End>(&decision)) found.push_back(*end);
    }
    return found;
  }
  // Returns the job with a time limit in minutes, as Slurm's users give it.
  static JobRequest limited(std::int64_t id, int nodes_count, int minutes,
                            const std::string& partition = {}) {
    JobRequest request = job(id, nodes_count, partition);
    request.time_limit = std::chrono::minutes{minutes};
    return request;
  }
  static JobRequest on(JobRequest request, std::vector<std::string> names) {
    request.required_nodes = std::move(names);
    return request;
  }

  Configuration c_;
  std::unique_ptr<Driver> driver_;
};

}  // namespace sched::testing
