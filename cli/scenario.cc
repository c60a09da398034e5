#include "cli/scenario.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "cli/scenario_inputs.h"
#include "cli/utf8.h"
#include "cli/yaml_file.h"
#include "scheduler/model/legality.h"
#include "slurm/conf.h"
#include "slurm/conf_actions.h"

namespace cli {
namespace {

using base::Status;
using simulate::Scenario;

// Returns an issue as a sentence, with the object that it is about in front: "QOS "gold": Preempt:
// there is no QOS silver: …". An issue of the cluster has no object.
std::string sentence_of(const sched::ConfigIssue& issue) {
  std::string where;
  if (issue.object == sched::IssueObject::kPartition) where = "partition ";
  if (issue.object == sched::IssueObject::kQos) where = "QOS ";
  if (issue.object == sched::IssueObject::kAccount) where = "account ";
  if (!where.empty()) where += slurm::in_quotes(issue.name) + ": ";
  return where + issue.field + ": " + issue.message;
}

// Returns true if the file is a recording, or written like one: it tells passes, slices and ends
// (Scenario::timing_is_told()). Faults of an input are found when it is read.
bool tells_timing(const YAML::Node& inputs) {
  if (!inputs.IsSequence()) return false;
  constexpr std::array<std::string_view, 5> kTold = {"pass", "slice", "end", "timeLimit",
                                                     "refused"};
  return std::any_of(inputs.begin(), inputs.end(), [&](const auto& input) {
    if (!input.IsMap()) return false;
    return std::any_of(input.begin(), input.end(), [&](const auto& key) {
      return key.first.IsScalar() &&
             std::find(kTold.begin(), kTold.end(), key.first.Scalar()) != kTold.end();
    });
  });
}

// Reads one file, section by section, into a scenario. Each section is read by the same code that
// reads slurm.conf or sacctmgr's options, so a scenario accepts what Slurm accepts. This class adds
// three things:
//
// 1. Places. A message begins with "file:line: ", although the readers of Slurm's keys know no
//    lines.
// 2. Order. The file may have its sections in any order, but they are read in the order in which
//    they refer to each other: nodes, configuration, QOS, accounts, users, partitions, inputs.
// 3. Checks between sections: names that are referred to exist, names that must differ do.
//
// After an error nothing of the scenario is used, so the members may then be incomplete.
// Why sections are not read into structures of their own first: YAML would have to be described a
// second time for each of Slurm's objects, and the two would drift apart. As it is, a key that
// slurm/ learns is a key of scenarios without a line here, but for nodes, whose keys have short
// names.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_{file} {}

  base::Result<Scenario> read(const YAML::Node& root);

 private:
  Status read_head(const std::map<std::string, const Entry*>& by_key);
  Status read_nodes(const YAML::Node& list);
  Status read_node(const YAML::Node& map);
  Status read_conf(const YAML::Node& map);
  Status read_partitions(const YAML::Node& list);
  Status read_qos(const YAML::Node& list);
  Status read_accounting(const YAML::Node& value);
  Status read_accounts(const YAML::Node& list);
  Status read_users(const YAML::Node& list);
  Status read_user(const YAML::Node& map);
  void begin_accounting();
  Status read_inputs(const YAML::Node& list);
  Status check_partitions(const Place& where) const;
  Status check_configuration(const YAML::Node& partitions);
  std::vector<std::string> node_names() const;

  YamlFile file_;
  Scenario scenario_;
  std::optional<base::Duration> clock_;
  bool is_recording_ = false;
  bool has_quirks_ = false;
  PartitionKeys partition_keys_;
  // Users who may submit; nullopt: the file has no list, and any user may.
  std::optional<std::set<std::string>> users_;
  std::optional<Place> conf_place_;
  std::map<std::string, Place> qos_places_;
  std::map<std::string, Place> partition_places_;
};

// 1. take the top of the file apart and refuse unknown keys, before any section is read
// 2. the sections that every scenario needs
// 3. name, end, clock, and the defaults of an absent conf
// 4. the sections in the order in which they refer to each other
base::Result<Scenario> Reader::read(const YAML::Node& root) {
  const base::Result<Entries> all = file_.entries(root, "a scenario");
  if (!all) return all.error();
  // All keys that may stand at the top; description is for people only.
  constexpr std::array<std::string_view, 14> kKeys = {
      "name",       "description", "as",       "nodes", "conf",     "clock", "partitions",
      "accounting", "users",       "accounts", "qos",   "topology", "end",   "inputs"};
  // Finds entries by name, because the file may have its sections in any order.
  std::map<std::string, const Entry*> by_key;
  for (const Entry& entry : *all) {
    if (std::find(kKeys.begin(), kKeys.end(), entry.key) == kKeys.end()) {
      return at(entry.place, slurm::unknown_word("key", entry.key, kKeys));
    }
    by_key[entry.key] = &entry;
  }
  for (const char* needed : {"nodes", "partitions", "inputs"}) {
    if (by_key.count(needed) == 0) {
      return at(file_.place(root), std::string{needed} + ": is missing");
    }
  }
  const Status head = read_head(by_key);
  if (!head) return head.error();
  // Later sections refer to earlier ones.
  // Each is read once, in this order, if the file has it.
  using Section = Status (Reader::*)(const YAML::Node&);
  constexpr std::array<std::pair<const char*, Section>, 8> kSections = {
      {{"nodes", &Reader::read_nodes},
       {"conf", &Reader::read_conf},
       {"qos", &Reader::read_qos},
       {"accounting", &Reader::read_accounting},
       {"accounts", &Reader::read_accounts},
       {"users", &Reader::read_users},
       {"partitions", &Reader::read_partitions},
       {"inputs", &Reader::read_inputs}}};
  for (const auto& [key, section] : kSections) {
    const auto found = by_key.find(key);
    if (found == by_key.end()) continue;
    const Status status = (this->*section)(found->second->value);
    if (!status) return status.error();
  }
  return std::move(scenario_);
}

// Reads whose decisions are wanted; name, end and clock; what is not there yet; the defaults of an
// absent conf. An absent conf is read like an empty one, so that the defaults of recordings are in
// one place.
Status Reader::read_head(const std::map<std::string, const Entry*>& by_key) {
  if (const auto topology = by_key.find("topology"); topology != by_key.end()) {
    return at(topology->second->place, slurm::not_supported("topology"));
  }
  is_recording_ = tells_timing(by_key.at("inputs")->value);
  has_quirks_ = is_recording_;
  if (const auto entry = by_key.find("as"); entry != by_key.end()) {
    const base::Result<std::string> whose = word(*entry->second);
    if (!whose) return whose.error();
    if (*whose != "slurm-22.05") {
      return at(entry->second->place, "as " + slurm::in_quotes(*whose) +
                                          ": must be slurm-22.05, or left out: then the scenario "
                                          "is decided as the operator decides");
    }
    has_quirks_ = true;
  }
  if (const auto entry = by_key.find("name"); entry != by_key.end()) {
    const base::Result<std::string> name = word(*entry->second);
    if (!name) return name.error();
    scenario_.name = *name;
  }
  if (const auto entry = by_key.find("end"); entry != by_key.end()) {
    const base::Result<base::Duration> end = seconds(*entry->second);
    if (!end) return end.error();
    scenario_.end = base::Instant{*end};
  }
  if (const auto entry = by_key.find("clock"); entry != by_key.end()) {
    const base::Result<base::Duration> clock = seconds(*entry->second);
    if (!clock) return clock.error();
    if (*clock >= std::chrono::minutes{1}) {
      return at(entry->second->place, "clock: must be the second of a minute, less than 60");
    }
    clock_ = *clock;
  }
  return by_key.count("conf") == 0 ? read_conf(YAML::Node{YAML::NodeType::Map}) : Status{};
}

// Reads at least one: without nodes no job could ever start, so the file is not finished.
Status Reader::read_nodes(const YAML::Node& list) {
  if (!list.IsSequence() || list.size() == 0) {
    return at(file_.place(list), "nodes: must be a list of at least one node");
  }
  for (const YAML::Node& map : list) {
    const Status status = read_node(map);
    if (!status) return status;
  }
  // Sorted, so that a name that appears twice stands beside itself.
  std::vector<std::string> names = node_names();
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return at(file_.place(list), "nodes: " + slurm::in_quotes(*twice) + " appears twice");
  return {};
}

// Reads one entry of `nodes`, which describes all nodes of its hostlist. The keys are put into the
// words of a NodeName line and go to the reader of slurm.conf; its messages name slurm.conf's keys,
// which are put back into the file's words at the end.
// For example {name: 'n[1-4]', cores: 2, features: [a, b]} is read as
//
//   NodeName=n[1-4] CoresPerSocket=2 Features=a,b
//
// and gives four nodes; "CoresPerSocket 0: must be …" becomes "cores 0: must be …".
Status Reader::read_node(const YAML::Node& map) {
  // The scenario's short names of the keys of a NodeName line, which take the same values.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kKeys = {
      {{"name", "NodeName"},
       {"sockets", "Sockets"},
       {"cores", "CoresPerSocket"},
       {"threads", "ThreadsPerCore"},
       {"memory", "RealMemory"},
       {"cpus", "CPUs"},
       {"features", "Features"},
       {"weight", "Weight"},
       {"gres", "Gres"},
       {"tmpdisk", "TmpDisk"}}};
  const base::Result<Entries> all = file_.entries(map, "a node");
  if (!all) return all.error();
  std::vector<slurm::KeyValue> keys;
  for (const Entry& entry : *all) {
    // A list ("features: [a, b]") becomes Slurm's list with commas; everything else must be one
    // word.
    const auto known = std::find_if(kKeys.begin(), kKeys.end(),
                                    [&](const auto& key) { return key.first == entry.key; });
    if (known == kKeys.end()) {
      std::vector<std::string_view> names;
      for (const auto& key : kKeys) names.push_back(key.first);
      return at(entry.place, slurm::unknown_word("key of a node", entry.key, names));
    }
    std::string value;
    if (entry.value.IsSequence()) {
      for (const YAML::Node& item : entry.value) {
        if (!item.IsScalar()) return at(entry.place, entry.key + ": must be a list of words");
        value += (value.empty() ? "" : ",") + item.Scalar();
      }
    } else {
      const base::Result<std::string> text = word(entry);
      if (!text) return text.error();
      value = *text;
    }
    keys.push_back({std::string{known->second}, value});
  }
  const base::Result<std::vector<sched::NodeSpec>> nodes = slurm::read_node_keys(keys);
  if (!nodes) {
    std::string message = nodes.error().message;
    for (const auto& [name, in_conf] : kKeys) {  // as the file spells it
      if (message.starts_with(std::string{in_conf} + " ")) {
        message = std::string{name} + message.substr(in_conf.size());
        break;
      }
    }
    return at(file_.place(map), message);
  }
  if (scenario_.nodes.size() + nodes->size() > kScenarioNodesMax) {
    return at(file_.place(map), "more than " + std::to_string(kScenarioNodesMax) + " nodes");
  }
  scenario_.nodes.insert(scenario_.nodes.end(), nodes->begin(), nodes->end());
  return {};
}

// Reads the cluster's keys, spelled as in slurm.conf. Those of the file come after the defaults and
// win. Looking for the key at fault reads each key once more, but only in a file that is refused.
Status Reader::read_conf(const YAML::Node& map) {
  // The recordings were made with these values if a scenario says nothing.
  const std::vector<slurm::KeyValue> defaults = {{"SchedulerType", "sched/builtin"},
                                                 {"TaskPlugin", "task/none"},
                                                 {"PriorityType", "priority/basic"}};
  const base::Result<std::vector<slurm::KeyValue>> keys = file_.key_values(map, "conf", defaults);
  if (!keys) return keys.error();
  base::Result<sched::ClusterParameters> cluster = slurm::read_cluster_keys(*keys);
  if (!cluster) {
    // Slurm's reader gets all keys at once and knows no lines. A key that gives the same error
    // alone is at fault; if none does, a combination is, and the line of the section must do.
    for (const auto& item : map) {
      const std::vector<slurm::KeyValue> alone = {{item.first.Scalar(), item.second.Scalar()}};
      const base::Result<sched::ClusterParameters> tried = slurm::read_cluster_keys(alone);
      if (!tried && tried.error() == cluster.error()) {
        return at(file_.place(item.first), tried.error());
      }
    }
    return at(file_.place(map), cluster.error());
  }
  scenario_.configuration.cluster = std::move(cluster).value();
  scenario_.configuration.cluster.quirks =
      has_quirks_ ? sched::Quirks::slurm_22_05() : sched::Quirks{};
  scenario_.configuration.cluster.is_recording = is_recording_;
  // clock is at the top of the file, not in conf: Slurm has no such key.
  scenario_.configuration.cluster.recorded_clock = clock_;
  if (map.size() > 0) conf_place_ = file_.place(map);
  return {};
}

// Reads the partitions, each in the keys of a PartitionName line. The keys are kept as they were
// written: `scontrol update` later in the file changes some of them, and the rest stays (see
// ScenarioInputs). The configuration is complete after the last of them, so legality is checked
// here.
Status Reader::read_partitions(const YAML::Node& list) {
  if (!list.IsSequence() || list.size() == 0) {
    return at(file_.place(list), "partitions: must be a list of at least one partition");
  }
  for (const YAML::Node& map : list) {
    base::Result<std::vector<slurm::KeyValue>> keys = file_.key_values(map, "a partition", {});
    if (!keys) return keys.error();
    // The file says `name` for every object; Slurm's word for it is the key that begins the line.
    for (slurm::KeyValue& key : *keys) {
      if (key.key == "name") key.key = "PartitionName";
    }
    base::Result<sched::PartitionConfig> partition =
        slurm::read_partition_keys(*keys, node_names());
    if (!partition) return at(file_.place(map), partition.error());
    scenario_.configuration.partitions.push_back(std::move(partition).value());
    partition_keys_.push_back(std::move(keys).value());
    partition_places_.emplace(scenario_.configuration.partitions.back().name, file_.place(map));
    const Status status = check_partitions(file_.place(map));
    if (!status) return status;
  }
  return check_configuration(list);
}

// Asks the scheduler what it would refuse or warn of, once the configuration is complete. Returns
// the first error, at the line of the object that it is about, and keeps all warnings. An issue of
// an account has no place of its own and gets the line of the partitions.
// Checking here and not in the simulation gives a message with a line; the scheduler itself trusts
// what it gets.
Status Reader::check_configuration(const YAML::Node& partitions) {
  for (const sched::ConfigIssue& issue : sched::check(scenario_.configuration)) {
    if (issue.severity == sched::IssueSeverity::kWarning) {
      scenario_.warnings.push_back(sentence_of(issue));
      continue;
    }
    Place where = file_.place(partitions);
    switch (issue.object) {
      case sched::IssueObject::kCluster:
        where = conf_place_.value_or(where);
        break;
      case sched::IssueObject::kPartition:
        where = partition_places_.at(issue.name);
        break;
      case sched::IssueObject::kQos:
        where = qos_places_.at(issue.name);
        break;
      case sched::IssueObject::kAccount:
        break;
    }
    return at(where, sentence_of(issue));
  }
  return {};
}

// Checks the partition that was read last against those before it and the nodes.
// Compares names pair by pair, since a cluster has dozens of partitions and not thousands.
Status Reader::check_partitions(const Place& where) const {
  const std::vector<sched::PartitionConfig>& all = scenario_.configuration.partitions;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].name == all.back().name) {
      return at(where, "partition " + slurm::in_quotes(all[i].name) + " appears twice");
    }
  }
  const std::vector<std::string> names = node_names();
  const std::set<std::string> known{names.begin(), names.end()};
  for (const std::string& node : all.back().nodes) {
    if (known.count(node) == 0) {
      return at(where, "partition " + all.back().name + ": Nodes: there is no node " +
                           slurm::in_quotes(node));
    }
  }
  return {};
}

// Reads each in sacctmgr's keys. Names must differ, because jobs and partitions refer to them.
Status Reader::read_qos(const YAML::Node& list) {
  if (!list.IsSequence()) return at(file_.place(list), "qos: must be a list");
  for (const YAML::Node& map : list) {
    const base::Result<std::vector<slurm::KeyValue>> keys = file_.key_values(map, "a QOS", {});
    if (!keys) return keys.error();
    base::Result<sched::QosConfig> qos = slurm::read_qos_keys(*keys);
    if (!qos) return at(file_.place(map), qos.error());
    for (const sched::QosConfig& other : scenario_.configuration.qos) {
      if (other.name == qos->name) {
        return at(file_.place(map), "QOS " + slurm::in_quotes(qos->name) + " appears twice");
      }
    }
    qos_places_.emplace(qos->name, file_.place(map));
    scenario_.configuration.qos.push_back(std::move(qos).value());
  }
  return {};
}

// Switches accounting on, unless it is on already. The cluster of the recordings had, beside what a
// scenario names, an account acct for jobs of root, and root as a user of the root account too; a
// scenario without them would have other shares than the recording.
// Each section that needs accounts calls this, since any of them may be the only one in the file.
void Reader::begin_accounting() {
  sched::Configuration& configuration = scenario_.configuration;
  if (!configuration.accounts.empty()) return;
  configuration.accounts.push_back({.name = "acct"});
  configuration.users.push_back({.name = "root", .account = "acct"});
  configuration.users.push_back({.name = "root", .account = sched::kRootAccount});
}

// `accounting: true` alone: accounts count, although the file names none.
Status Reader::read_accounting(const YAML::Node& value) {
  if (value.IsScalar() && value.Scalar() == "true") {
    begin_accounting();
    return {};
  }
  return at(file_.place(value), "accounting: must be true, or left out");
}

// Parents before their children, as sacctmgr adds them; so there cannot be a loop.
Status Reader::read_accounts(const YAML::Node& list) {
  if (!list.IsSequence()) return at(file_.place(list), "accounts: must be a list");
  begin_accounting();
  std::vector<sched::AccountConfig>& accounts = scenario_.configuration.accounts;
  for (const YAML::Node& map : list) {
    const base::Result<std::vector<slurm::KeyValue>> keys = file_.key_values(map, "an account", {});
    if (!keys) return keys.error();
    base::Result<sched::AccountConfig> account = slurm::read_account_keys(*keys);
    if (!account) return at(file_.place(map), account.error());
    const auto named = [&](const std::string& name) {
      return std::any_of(accounts.begin(), accounts.end(),
                         [&](const sched::AccountConfig& each) { return each.name == name; });
    };
    if (named(account->name)) {
      return at(file_.place(map), "account " + slurm::in_quotes(account->name) + " appears twice");
    }
    if (!account->parent.empty() && account->parent != sched::kRootAccount &&
        !named(account->parent)) {
      return at(file_.place(map), "account " + slurm::in_quotes(account->name) +
                                      ": there is no account " + slurm::in_quotes(account->parent) +
                                      " above it");
    }
    accounts.push_back(std::move(account).value());
  }
  return {};
}

// Reads a user with an account of the file, or with acct if none is named.
Status Reader::read_user(const YAML::Node& map) {
  const base::Result<std::vector<slurm::KeyValue>> keys = file_.key_values(map, "a user", {});
  if (!keys) return keys.error();
  base::Result<sched::UserConfig> user = slurm::read_user_keys(*keys);
  if (!user) return at(file_.place(map), user.error());
  begin_accounting();
  if (user->account.empty()) user->account = "acct";
  const auto& accounts = scenario_.configuration.accounts;
  const bool known = user->account == sched::kRootAccount ||
                     std::any_of(accounts.begin(), accounts.end(), [&](const auto& account) {
                       return account.name == user->account;
                     });
  if (!known) {
    return at(file_.place(map), "user " + slurm::in_quotes(user->name) + ": there is no account " +
                                    slurm::in_quotes(user->account));
  }
  users_->insert(user->name);
  scenario_.configuration.users.push_back(std::move(user).value());
  return {};
}

// Only these users, and root, may submit. A name alone is a user without an account unless the file
// has accounts. The same user may be listed once for each account.
Status Reader::read_users(const YAML::Node& list) {
  if (!list.IsSequence()) return at(file_.place(list), "users: must be a list");
  // Recordings were made by root, so root may submit without being listed.
  users_ = std::set<std::string>{"root"};
  std::vector<std::string> names;
  for (const YAML::Node& user : list) {
    if (user.IsMap()) {
      if (const Status status = read_user(user); !status) return status;
    } else if (user.IsScalar()) {
      names.push_back(user.Scalar());
    } else {
      return at(file_.place(user), "users: must be names, or maps of a name and its account");
    }
  }
  // Last, because the account of any user in the list makes the file one with accounts.
  for (std::string& name : names) {
    users_->insert(name);
    if (!scenario_.configuration.accounts.empty()) {
      scenario_.configuration.users.push_back({.name = std::move(name), .account = "acct"});
    }
  }
  return {};
}

// Last, since inputs refer to everything above.
Status Reader::read_inputs(const YAML::Node& list) {
  return ScenarioInputs{file_, scenario_, partition_keys_, users_}.read(list);
}

// Returns the names in the order of the file, with all hostlists expanded.
std::vector<std::string> Reader::node_names() const {
  std::vector<std::string> names;
  names.reserve(scenario_.nodes.size());
  for (const sched::NodeSpec& node : scenario_.nodes) names.push_back(node.name);
  return names;
}

}  // namespace

// Checks as Reader::check_configuration() does a configuration that inputs have changed: it has no
// places in the file, and warnings were printed when the file's own configuration was read.
base::Status check_legal(const sched::Configuration& configuration) {
  for (const sched::ConfigIssue& issue : sched::check(configuration)) {
    if (issue.severity == sched::IssueSeverity::kError) {
      return base::invalid_argument(sentence_of(issue));
    }
  }
  return {};
}

// The size is bounded before the parser runs, since a YAML tree takes many times the memory of its
// text. yaml-cpp reports errors by exceptions, which end here.
base::Result<simulate::Scenario> read_scenario(std::string_view text, const std::string& file) {
  if (text.size() > kScenarioBytesMax) {
    return base::invalid_argument(file + ": larger than " + std::to_string(kScenarioBytesMax) +
                                  " bytes");
  }
  // yaml-cpp passes any bytes on, and the labels of jobs become keys of JSON.
  if (const auto line = line_that_is_not_utf8(text)) {
    return base::invalid_argument(file + ":" + std::to_string(*line) + ": must be UTF-8");
  }
  try {
    return Reader{file}.read(YAML::Load(std::string{text}));
  } catch (const YAML::Exception& error) {
    return base::invalid_argument(file + ":" + std::to_string(error.mark.line + 1) + ": " +
                                  error.msg);
  }
}

}  // namespace cli
