// The inputs of a scenario file: what happens, one entry each.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/yaml_file.h"
#include "scheduler/simulate/scenario.h"
#include "slurm/text.h"

namespace cli {

// The keys that belong to a partition, as written, so that they can be updated.
using PartitionKeys = std::vector<std::vector<slurm::KeyValue>>;

// Why the scheduler would not accept the configuration (1.6), or ok.
base::Status check_legal(const sched::Configuration& configuration);

class ScenarioInputs {
 public:
  // `scenario` has its nodes and configuration; jobs and inputs are added to it. `users`: those
  // that may submit; nullopt = all.
  ScenarioInputs(const YamlFile& file, simulate::Scenario& scenario, PartitionKeys partition_keys,
                 std::optional<std::set<std::string>> users);

  base::Status read(const YAML::Node& list);

 private:
  struct RawInput {
    std::map<std::string, Entry> fields;
    Place place;
    std::string kind;
    bool refused = false;
    base::Instant at{};
  };
  base::Result<RawInput> read_raw(const YAML::Node& map) const;
  base::Result<std::string> kind_of(const Entries& entries, const Place& place) const;
  base::Result<simulate::Happening> happening(const RawInput& input);
  base::Result<simulate::Happening> submit(const RawInput& input);
  void add_tasks(sched::JobId id);
  base::Status read_job(const RawInput& input, simulate::Job& job);
  base::Status check_names(const RawInput& input, simulate::Job& job) const;
  base::Result<simulate::Happening> pass(const RawInput& input) const;
  base::Result<simulate::Happening> end(const RawInput& input) const;
  base::Result<simulate::Happening> node_state(const RawInput& input) const;
  base::Result<simulate::Happening> scontrol(const RawInput& input);
  simulate::Happening reconfigure();
  base::Result<simulate::Happening> scontrol_partition(const std::vector<slurm::KeyValue>& keys);
  base::Result<simulate::Happening> scontrol_job(const std::vector<slurm::KeyValue>& keys);
  base::Status update_job(const slurm::KeyValue& key, sched::JobRequest& request) const;
  base::Result<simulate::Happening> command(const RawInput& input) const;

  base::Result<sched::JobId> job(const Entry& entry) const;
  base::Result<std::string> with_job_ids(std::string text) const;
  base::Result<int> number(const RawInput& input, const std::string& key, int otherwise,
                           slurm::IntegerRange range) const;

  const YamlFile& file_;
  simulate::Scenario& scenario_;
  std::optional<std::set<std::string>> users_;
  std::vector<std::string> node_names_;
  std::set<std::string> known_nodes_;
  std::map<std::string, sched::JobId> jobs_by_label_;
  // The first inputs that make a scenario without an end; they do not matter with told timing.
  std::optional<base::Error> endless_;       // the first job that runs forever
  std::optional<base::Error> unknown_mode_;  // the first job whose program is unknown
  const PartitionKeys keys_at_first_;
  // The keys as of the input that is being read.
  PartitionKeys partition_keys_;
  sched::Configuration configuration_;
  std::vector<sched::JobRequest> requests_;
};

}  // namespace cli
