#include "cli/import/importer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cli/hostlist_field.h"
#include "cli/import/remarks.h"
#include "cli/import/spec_of.h"
#include "cli/import/taken_keys.h"
#include "cli/yaml_text.h"
#include "operator/translate/config_acceptance.h"
#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/conf_lines.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"

namespace cli {
namespace {

using slurm::KeyValue;
using slurm::same_word;

// The remark about a key that Slurm's reader takes and the API has no field for.
constexpr std::string_view kNoField = "kubegang has no such parameter";

// Something that was read, and where: remarks about it come much later, when all files have been
// read, and must still name its line.
template <typename T>
struct Placed {
  FilePlace place;
  T value;
};

// Returns a check that keys mean the same after they went through the API: what `read` makes of
// them equals what `back`, the operator's translation, makes of the object that they become. So the
// importer has no list of keys that the API lacks, and a new field of the API is enough to import
// its key.
// For example DefMemPerCPU=1000 becomes memory.defaultPerCPU: 1000Mi, which the operator translates
// to 1000 MiB again: it is taken. A weight of Billing has no field; it comes back as 0, and the key
// is told and left out.
template <typename Read, typename Back>
CanTake comes_back(const Read& read, const Back& back) {
  return [read, back](std::span<const KeyValue> keys) -> base::Status {
    const auto value = read(keys);
    if (!value) return value.error();
    if (back(*value) == *value) return {};
    return base::invalid_argument(std::string{kNoField});
  };
}

// Kubernetes' names: lower case letters, digits and '-'. Two names may become one ("a_b" and
// "a.b"); drop_illegal() finds that. "" if no character is left.
std::string kube_name(std::string_view name) {
  std::string result = slurm::lower_case(name);
  for (char& c : result) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (!plain) c = '-';
  }
  const std::size_t first = result.find_first_not_of('-');
  if (first == std::string::npos) return {};
  return result.substr(first, result.find_last_not_of('-') - first + 1);
}

// Renames the entries of a list of names, if there is a list.
template <typename Rename>
void rename_all(std::optional<std::vector<std::string>>& names, const Rename& rename) {
  if (!names) return;
  for (std::string& name : *names) name = rename(name);
}

// How the import works, and why it needs no list of what Slurm has and kubegang lacks.
//
// 1. Each file is read by its kind; lines become keys, each with its place.
// 2. Keys that do not come back are left out with a remark: a key is tried by reading all keys so
//    far with Slurm's reader, translating the result into a spec of the API, translating that with
//    the operator's own code, and comparing. If the two differ, the API cannot say what the key
//    says.
// 3. The keys that are left become objects; names become Kubernetes' names.
// 4. Objects that the operator would refuse, alone or beside the others, are left out with a
//    remark. This is decided by the operator's code too.
//
// So all that is printed can be applied and means what the files say, and everything else has been
// told.
class Importer {
 public:
  explicit Importer(const std::vector<ImportFile>& files) {
    for (file_ = 0; file_ < files.size(); ++file_) {
      names_.push_back(files[file_].name);
      read(files[file_].text);
    }
  }
  Imported finish();

 private:
  FilePlace at(std::size_t line) const { return {file_, line}; }
  std::string named(FilePlace place, const std::string& name);

  // --- files ---
  void read(std::string_view text);
  void read_conf(std::string_view text);
  void read_dump(std::string_view text);
  void read_qos_table(std::string_view text);
  void tell_errors(const std::vector<slurm::LineError>& errors);

  // --- slurm.conf ---
  void read_node_line(const slurm::ConfLine& line);
  void read_partition_line(const slurm::ConfLine& line);
  void read_cluster_lines();

  // --- sacctmgr ---
  void read_qos(std::size_t line, const std::string& name, const std::vector<KeyValue>& keys);
  void read_account(const slurm::DumpLine& line, const std::string& parent);
  void read_user(const slurm::DumpLine& line, const std::string& account);
  std::vector<PlacedKey> placed(std::size_t line, const std::vector<KeyValue>& keys) const;
  // Returns the result of `read` for the name and the keys that can be taken; nullopt, and a
  // remark, if the name alone cannot be.
  template <typename Read, typename Back>
  auto taken(FilePlace place, const std::vector<KeyValue>& name, std::span<const PlacedKey> keys,
             const Read& read, const Back& back)
      -> std::optional<std::decay_t<decltype(read(name).value())>>;

  // --- objects ---
  void make_accounts();
  void make_missing_qos();
  template <typename T, typename Check>
  void drop_illegal(std::vector<Placed<T>>& objects, const Check& check);
  void drop_refused();

  std::size_t file_ = 0;
  std::vector<std::string> names_;
  Remarks remarks_;

  // What the files have given, before it becomes objects: accounts and users wait for each other,
  // and the cluster's keys for the last file.
  // The first file that has a line of a slurm.conf.
  std::optional<FilePlace> conf_place_;
  std::vector<PlacedKey> cluster_keys_;
  std::vector<std::string> node_names_;
  std::vector<PlacedKey> partition_defaults_;
  std::vector<slurm::ConfLine> partition_lines_;
  std::vector<Placed<sched::AccountConfig>> account_configs_;
  struct User {
    sched::UserConfig config;
    bool is_default = false;
  };
  std::vector<Placed<User>> users_;

  // The objects, in the order of the files, with the line that each came from.
  std::optional<Placed<kube::SchedulerConfig>> config_;
  std::vector<Placed<kube::Partition>> partitions_;
  std::vector<Placed<kube::Qos>> qos_;
  std::vector<Placed<kube::Account>> accounts_;
};

// The name as Kubernetes can have it; a change is told.
std::string Importer::named(FilePlace place, const std::string& name) {
  std::string result = kube_name(name);
  if (result != name) {
    remarks_.add(place,
                 slurm::in_quotes(name) + ": is named " + slurm::in_quotes(result) +
                     " here, because Kubernetes takes lower case letters, digits and - only");
  }
  return result;
}

// Lines that could not be taken apart into keys. The rest of the file is still imported.
void Importer::tell_errors(const std::vector<slurm::LineError>& errors) {
  for (const slurm::LineError& error : errors) remarks_.add(at(error.number), error.message);
}

// The keys of one line, each with the place that a remark about it must name.
std::vector<PlacedKey> Importer::placed(std::size_t line, const std::vector<KeyValue>& keys) const {
  std::vector<PlacedKey> all;
  for (const KeyValue& key : keys) all.push_back({at(line), key});
  return all;
}

// `name` is the least that the object needs. The keys are then tried one by one in the order of the
// file, because the meaning of a key may depend on one before it.
template <typename Read, typename Back>
auto Importer::taken(FilePlace place, const std::vector<KeyValue>& name,
                     std::span<const PlacedKey> keys, const Read& read, const Back& back)
    -> std::optional<std::decay_t<decltype(read(name).value())>> {
  const CanTake can_take = comes_back(read, back);
  if (const base::Status status = can_take(name); !status) {
    remarks_.add(place, "is left out: " + status.error().message);
    return std::nullopt;
  }
  return read(take_keys(name, keys, can_take, remarks_)).value();
}

// Returns true if Slurm knows a key of the line, so that the file is a slurm.conf. Any text with
// "word=word" in it has keys.
bool is_of_slurm_conf(const slurm::ConfLine& line) {
  const auto is_known = [](const KeyValue& key) {
    if (slurm::is_foreign_key(key.key)) return true;
    const std::array alone = {key};
    const auto read = slurm::read_cluster_keys(alone);
    return read.ok() || !slurm::is_unknown_key(read.error());
  };
  const std::string& first = line.keys.front().key;
  return same_word(first, "NodeName") || same_word(first, "PartitionName") ||
         std::any_of(line.keys.begin(), line.keys.end(), is_known);
}

// Reads a file by the kind that its first line with content shows: titles between | (`sacctmgr show
// qos -P`), "Kind - 'name'" (`sacctmgr dump`), or slurm.conf. The names of files say nothing: users
// pipe the output of sacctmgr into files of any name.
void Importer::read(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const std::string_view line = slurm::trim(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    if (line.substr(0, line.find('|')) == "Name") return read_qos_table(text);
    const std::string_view word = line.substr(0, line.find(" - "));
    for (const std::string_view kind : {"Cluster", "Parent", "Account", "User"}) {
      if (word == kind) return read_dump(text);
    }
    return read_conf(text);
  }
}

// --- slurm.conf ---

// 1. Nodes, which partitions may name as ALL, wherever their lines stand.
// 2. Partitions, each after the DEFAULT lines before it.
// 3. Everything else is about the cluster.
void Importer::read_conf(std::string_view text) {
  const slurm::ConfLines read = slurm::read_conf_lines(text);
  tell_errors(read.errors);
  if (!conf_place_ && std::any_of(read.lines.begin(), read.lines.end(), is_of_slurm_conf)) {
    conf_place_ = at(1);
  }
  const auto is_of = [](const slurm::ConfLine& line, std::string_view key) {
    return same_word(line.keys.front().key, key);
  };
  for (const slurm::ConfLine& line : read.lines) {
    if (is_of(line, "NodeName")) read_node_line(line);
  }
  for (const slurm::ConfLine& line : read.lines) {
    if (is_of(line, "NodeName")) continue;
    if (is_of(line, "PartitionName")) {
      read_partition_line(line);
      continue;
    }
    for (const PlacedKey& key : placed(line.number, line.keys)) cluster_keys_.push_back(key);
  }
}

// Nodes are Kubernetes' own objects; only their names matter, for partitions of ALL and for the
// comment. So the sizes of nodes are not read: in Kubernetes the kubelet reports them. A hostlist
// that cannot be read is told once and leaves its nodes out.
void Importer::read_node_line(const slurm::ConfLine& line) {
  const std::string& hostlist = line.keys.front().value;
  if (hostlist == "DEFAULT") return;
  const base::Result<std::vector<std::string>> names = slurm::expand_hostlist(hostlist);
  if (names) {
    node_names_.insert(node_names_.end(), names->begin(), names->end());
  } else {
    remarks_.add(at(line.number), "NodeName: " + names.error().message);
  }
}

// 1. the keys of the DEFAULT lines before it, then its own, which win
// 2. another DEFAULT line only adds to the defaults
// 3. keys that can be taken, names of QOS as they are called here, the object
//
// A partition without nodes is left out: the operator would accept no job for it. So is one whose
// nodes the API server would refuse.
void Importer::read_partition_line(const slurm::ConfLine& line) {
  const FilePlace place = at(line.number);
  std::vector<PlacedKey> keys = partition_defaults_;
  for (PlacedKey& key : placed(line.number, {line.keys.begin() + 1, line.keys.end()})) {
    keys.push_back(std::move(key));
  }
  if (line.keys.front().value == "DEFAULT") {
    partition_defaults_ = std::move(keys);
    return;
  }
  const auto read = [this](std::span<const KeyValue> of) {
    base::Result<sched::PartitionConfig> partition = slurm::read_partition_keys(of, node_names_);
    if (partition) {  // a set, as the operator has it
      partition->nodes = slurm::expand_hostlist(slurm::compress_hostlist(partition->nodes)).value();
    }
    return partition;
  };
  const auto back = [](const sched::PartitionConfig& partition) {
    return control::translate_partition(partition.name, spec_of(partition), {});
  };
  std::optional<sched::PartitionConfig> read_partition =
      taken(place, {line.keys.front()}, keys, read, back);
  if (!read_partition) return;
  sched::PartitionConfig& partition = *read_partition;
  if (partition.nodes.empty()) {
    remarks_.add(place, "PartitionName=" + partition.name + ": is left out: it has no nodes");
    return;
  }
  if (const auto problem = hostlist_problem(slurm::compress_hostlist(partition.nodes))) {
    remarks_.add(place, "PartitionName=" + partition.name + ": is left out: Nodes: " + *problem);
    return;
  }
  if (!partition.qos.empty()) partition.qos = named(place, partition.qos);
  for (auto* list : {&partition.allow_qos, &partition.deny_qos}) {
    rename_all(*list, [&](const std::string& name) { return named(place, name); });
  }
  kube::Partition object;
  object.metadata.name = named(place, partition.name);
  object.spec = spec_of(partition);
  partitions_.push_back({place, std::move(object)});
}

// SelectType first: it decides which SelectTypeParameters there are. A slurm.conf without any key
// about scheduling becomes a SchedulerConfig that spells out Slurm's defaults where they differ
// from ours: gangs are off, for example. So a text that is not a slurm.conf must not become one.
void Importer::read_cluster_lines() {
  std::stable_partition(cluster_keys_.begin(), cluster_keys_.end(), [](const PlacedKey& placed) {
    return same_word(placed.key.key, "SelectType");
  });
  const auto back = [](const sched::ClusterParameters& cluster) {
    return control::translate_config(spec_of(cluster));
  };
  // The keys are told even if there is no object: each remark says what is wrong with its line.
  const std::vector<KeyValue> taken =
      take_keys({}, cluster_keys_, comes_back(slurm::read_cluster_keys, back), remarks_);
  if (!conf_place_) return;
  kube::SchedulerConfig object;
  object.metadata.name = std::string{kube::kSchedulerConfigName};
  object.spec = spec_of(slurm::read_cluster_keys(taken).value());
  // All remarks about the object as a whole name the first line of the first slurm.conf.
  config_ = {*conf_place_, std::move(object)};
}

// --- sacctmgr ---

// `sacctmgr --parsable2 show qos`: a line of titles, then a line for each QOS with its values
// between |.
void Importer::read_qos_table(std::string_view text) {
  const slurm::ConfLines read = slurm::read_parsable_lines(text);
  for (const slurm::ConfLine& line : read.lines) {
    std::vector<KeyValue> keys;
    std::string name;
    for (const KeyValue& key : line.keys) {
      if (key.key == "Name") name = key.value;
      // The name is not a key of a QOS; PreemptMode=cluster says that it has no mode of its own.
      const bool says_nothing =
          key.key == "Name" || (key.key == "PreemptMode" && same_word(key.value, "cluster"));
      if (says_nothing) continue;
      keys.push_back(key);
      const auto time = slurm::parse_time("", key.value);
      // `sacctmgr show` prints a time, and the key takes seconds.
      if (key.key == "GraceTime" && key.value.find(':') != std::string::npos && time && *time) {
        keys.back().value =
            std::to_string(std::chrono::floor<std::chrono::seconds>(**time).count());
      }
    }
    if (!name.empty()) read_qos(line.number, name, keys);
  }
}

// The keys of a QOS come from a table or a dump. Preempt refers to other QOS, perhaps to some that
// are read later, so the names in it are only renamed here and checked at the end.
void Importer::read_qos(std::size_t line, const std::string& name,
                        const std::vector<KeyValue>& keys) {
  const auto back = [](const sched::QosConfig& qos) {
    return control::translate_qos(qos.name, spec_of(qos));
  };
  std::optional<sched::QosConfig> qos =
      taken(at(line), {{"Name", name}}, placed(line, keys), slurm::read_qos_keys, back);
  if (!qos) return;
  for (std::string& victim : qos->preempt) victim = named(at(line), victim);
  kube::Qos object;
  object.metadata.name = named(at(line), name);
  object.spec = spec_of(*qos);
  qos_.push_back({at(line), std::move(object)});
}

// Lines come in the order of the tree: "Parent" says whose children follow.
void Importer::read_dump(std::string_view text) {
  const slurm::DumpLines read = slurm::read_dump_lines(text);
  tell_errors(read.errors);
  const std::string root{kube::kRootAccount};
  std::string parent = root;
  for (const slurm::DumpLine& line : read.lines) {
    if (line.kind == "Parent") {
      parent = line.name;
    } else if (line.kind == "Cluster") {  // what it says is about the account root
      slurm::DumpLine of_root = line;
      of_root.name = root;
      // The root account has no siblings, so its share has no effect; 1 is what sacctmgr dumps for
      // it.
      std::erase_if(of_root.keys, [](const KeyValue& key) {
        return same_word(key.key, "Fairshare") && key.value == "1";
      });
      read_account(of_root, {});
    } else if (line.kind == "Account") {
      read_account(line, parent);
    } else if (line.kind == "User") {
      read_user(line, parent);
    } else if (line.kind == "QOS") {
      read_qos(line.number, line.name, line.keys);
    } else {
      remarks_.add(at(line.number), line.kind + " " + slurm::in_quotes(line.name) +
                                        ": Cluster, Parent, Account, User and QOS are known");
    }
  }
}

// An account of the dump below `parent`. Parents come first in a dump. The root account always
// exists; it becomes an object only if it has limits.
void Importer::read_account(const slurm::DumpLine& line, const std::string& parent) {
  const auto back = [](const sched::AccountConfig& account) {
    return control::translate_account(account.name, spec_of(account));
  };
  std::optional<sched::AccountConfig> account =
      taken(at(line.number), {{"Name", line.name}}, placed(line.number, line.keys),
            slurm::read_account_keys, back);
  if (!account) return;
  account->name = named(at(line.number), account->name);
  if (parent != kube::kRootAccount) account->parent = kube_name(parent);
  if (account->name == kube::kRootAccount && account->limits == sched::Limits{}) return;
  account_configs_.push_back({at(line.number), std::move(*account)});
}

// A user becomes a namespace. Slurm's root is an administrator and needs none. DefaultAccount is a
// property of the user and stands in each of the user's lines; here it marks the one entry of the
// account that it names.
void Importer::read_user(const slurm::DumpLine& line, const std::string& account) {
  if (line.name == kube::kRootAccount) return;
  Placed<User> user{at(line.number), {}};
  std::vector<PlacedKey> keys;
  for (PlacedKey& key : placed(line.number, line.keys)) {
    if (same_word(key.key.key, "DefaultAccount")) {
      user.value.is_default = key.key.value == account;
    } else {
      keys.push_back(std::move(key));
    }
  }
  const auto back = [](const sched::UserConfig& config) {
    return control::translate_namespace(config.account, namespace_of(config));
  };
  std::optional<sched::UserConfig> config =
      taken(at(line.number), {{"Name", line.name}, {"Account", account}}, keys,
            slurm::read_user_keys, back);
  if (!config) return;
  user.value.config = std::move(*config);
  user.value.config.name = named(at(line.number), line.name);
  user.value.config.account = kube_name(account);
  users_.push_back(std::move(user));
}

// --- objects ---

// Users are entries of their account's object, so all accounts must be known first. A user in an
// account without a line has no object to be put into, and is told.
void Importer::make_accounts() {
  std::map<std::string, std::size_t> index_of;
  for (const Placed<sched::AccountConfig>& config : account_configs_) {
    kube::Account object;
    object.metadata.name = config.value.name;
    object.spec = spec_of(config.value);
    index_of.emplace(config.value.name, accounts_.size());
    accounts_.push_back({config.place, std::move(object)});
  }
  for (const Placed<User>& user : users_) {
    const sched::UserConfig& config = user.value.config;
    const auto found = index_of.find(config.account);
    if (found == index_of.end()) {
      remarks_.add(user.place, "User " + slurm::in_quotes(config.name) + ": account " +
                                   slurm::in_quotes(config.account) +
                                   " has no line; the user is left out");
      continue;
    }
    kube::AccountNamespace entry = namespace_of(config);
    if (user.value.is_default) entry.is_default = true;
    accounts_[found->second].value.spec.namespaces.push_back(std::move(entry));
  }
}

// A partition with a QOS that is not there would be refused. Leaving out the partition instead
// would lose its nodes and limits for a name alone. Without a file of QOS the limits of that QOS
// are not known, so the remark says that it has none.
void Importer::make_missing_qos() {
  for (const Placed<kube::Partition>& partition : partitions_) {
    const auto& name = partition.value.spec.qos;
    const bool is_there = !name || std::any_of(qos_.begin(), qos_.end(), [&](const auto& qos) {
      return qos.value.metadata.name == *name;
    });
    if (is_there) continue;
    remarks_.add(partition.place,
                 "QOS=" + *name + ": no file has this QOS; it is made without limits");
    kube::Qos object;
    object.metadata.name = *name;
    qos_.push_back({partition.place, std::move(object)});
  }
}

// Returns the problems as one line.
std::string joined(const std::vector<std::string>& problems) {
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : "; ") + problem;
  return all;
}

// Leaves out the objects that `check` finds wrong by themselves, and those whose name was taken by
// an earlier one. The first of a name stays, as `kubectl apply` would let the last one overwrite it
// in silence.
template <typename T, typename Check>
void Importer::drop_illegal(std::vector<Placed<T>>& objects, const Check& check) {
  std::set<std::string> seen;
  std::erase_if(objects, [&](const Placed<T>& object) {
    std::vector<std::string> problems = check(object.value);
    const std::string& name = object.value.metadata.name;
    if (!seen.insert(name).second) problems.push_back("the name is taken by an earlier one");
    if (problems.empty()) return false;
    remarks_.add(object.place, std::string{T::kResource.kind} + " " + slurm::in_quotes(name) +
                                   ": is left out: " + joined(problems));
    return true;
  });
}

// Returns an object as acceptance sees it: written now, nothing of it accepted before.
template <typename Spec, typename T>
control::SpecCandidate<Spec> candidate(const T& object, base::Duration after) {
  return {.name = object.metadata.name,
          // Ascending as in the file: the operator decides ties by age.
          .created = base::Instant{} + after,
          .newest = &object.spec,
          .accepted = nullptr,
          .problems = {}};
}

// Leaves out the objects that the operator would refuse beside the others, for example the second
// default partition. Nodes exist for this check alone: acceptance wants to know which names of a
// hostlist there are.
void Importer::drop_refused() {
  std::vector<kube::Node> nodes(node_names_.size());
  std::vector<const kube::Node*> pointers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].metadata.name = node_names_[i];
    pointers.push_back(&nodes[i]);
  }
  control::AcceptanceInput input;
  input.nodes = pointers;
  const auto add_all = [](auto& candidates, const auto& objects) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      using Spec = std::remove_cvref_t<decltype(objects[i].value.spec)>;
      candidates.push_back(
          candidate<Spec>(objects[i].value, std::chrono::seconds{static_cast<int>(i)}));
    }
  };
  if (config_) input.config = candidate<kube::SchedulerConfigSpec>(config_->value, {});
  add_all(input.partitions, partitions_);
  add_all(input.qos, qos_);
  add_all(input.accounts, accounts_);
  const control::Acceptance accepted = control::accept(input);
  const auto tell = [this](FilePlace place, const std::string& what,
                           const control::SpecVerdict& verdict) {
    if (!verdict.newest_in_force) {
      remarks_.add(place, what + ": is left out: " + joined(verdict.problems));
    } else if (!verdict.warnings.empty()) {
      remarks_.add(place, what + ": " + joined(verdict.warnings));
    }
    return !verdict.newest_in_force;
  };
  const auto drop = [&](auto& objects, const std::vector<control::SpecVerdict>& verdicts) {
    std::size_t i = 0;
    std::erase_if(objects, [&](const auto& object) {
      using T = std::remove_cvref_t<decltype(object.value)>;
      return tell(
          object.place,
          std::string{T::kResource.kind} + " " + slurm::in_quotes(object.value.metadata.name),
          verdicts.at(i++));
    });
  };
  if (config_ && tell(config_->place, "SchedulerConfig", accepted.config)) config_.reset();
  drop(partitions_, accepted.partitions);
  drop(qos_, accepted.qos);
  drop(accounts_, accepted.accounts);
}

// One object as a document of YAML. An empty status would only make the reader wonder, and a
// missing spec would be refused by the API server.
template <typename T>
std::string document(const T& object) {
  nlohmann::json json = kube::encode(object);
  json.erase("status");
  if (!json.contains("spec")) json["spec"] = nlohmann::json::object();
  return "---\n" + yaml_text(json);
}

// 1. the cluster's keys, of all files together
// 2. accounts with their users, QOS that partitions name and no file has
// 3. objects that are illegal alone, then those that are illegal beside the others, are dropped
// 4. YAML in the order in which objects refer to each other, so that one `kubectl apply -f` does
Imported Importer::finish() {
  read_cluster_lines();
  make_accounts();
  make_missing_qos();
  if (config_) {
    const std::vector<std::string> problems = control::check_config(config_->value);
    if (!problems.empty()) {
      remarks_.add(config_->place, "SchedulerConfig: is left out: " + joined(problems));
      config_.reset();
    }
  }
  drop_illegal(qos_, control::check_qos);
  drop_illegal(accounts_, control::check_account);
  drop_illegal(partitions_, control::check_partition);
  drop_refused();

  Imported imported;
  if (!node_names_.empty()) {
    imported.yaml = "# Nodes, by Slurm's names: " + slurm::compress_hostlist(node_names_) +
                    "\n# Kubernetes' nodes need these names; or change nodes of the Partitions.\n";
  }
  if (config_) imported.yaml += document(config_->value);
  for (const auto& qos : qos_) imported.yaml += document(qos.value);
  for (const auto& account : accounts_) imported.yaml += document(account.value);
  for (const auto& partition : partitions_) imported.yaml += document(partition.value);
  imported.remarks = remarks_.texts(names_);
  return imported;
}

}  // namespace

Imported import_slurm(const std::vector<ImportFile>& files) {
  return Importer{files}.finish();
}

}  // namespace cli
