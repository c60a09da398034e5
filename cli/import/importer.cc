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
#include "cli/import/node_lines.h"
#include "cli/import/partition_access.h"
#include "cli/import/remarks.h"
#include "cli/import/spec_of.h"
#include "cli/import/taken_keys.h"
#include "cli/kube_name.h"
#include "cli/yaml_text.h"
#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/conf_lines.h"
#include "slurm/hostlist.h"
#include "slurm/quantities.h"
#include "translation/config_acceptance.h"

namespace cli {
namespace {

using slurm::KeyValue;
using slurm::same_word;

// The remark about a key that Slurm's reader takes and the API has no field for.
constexpr std::string_view kNoField = "has no counterpart; Slurm's default holds";

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
// is reported and left out.
template <typename Read, typename Back>
CanTake comes_back(const Read& read, const Back& back) {
  return [read, back](std::span<const KeyValue> keys) -> base::Status {
    const auto value = read(keys);
    if (!value) return value.error();
    if (back(*value) == *value) return {};
    return base::invalid_argument(std::string{kNoField});
  };
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
// reported.
class Importer {
 public:
  Importer(const std::vector<ImportFile>& files, const ReadInclude& read_include)
      : files_{files}, read_include_{read_include} {
    for (const ImportFile& file : files_) read_file(file);
  }
  Imported finish();

 private:
  FilePlace at(std::size_t line) const { return {file_, line}; }
  std::string named(FilePlace place, const std::string& name);
  std::string changed_name(FilePlace place, const std::string& name, std::string result,
                           const std::string& allowed);
  template <typename T>
  void name_object(FilePlace place, const std::string& name, T& object);

  // --- files ---
  void read_file(const ImportFile& file);
  void read(std::string_view text);
  void read_conf(std::string_view text);
  void include(std::size_t line, const std::string& name);
  void read_dump(std::string_view text);
  void read_qos_table(std::string_view text);
  void tell_errors(const std::vector<slurm::LineError>& errors);

  // --- slurm.conf ---
  struct PlacedLine {
    FilePlace place;
    std::vector<KeyValue> keys;
  };
  void read_node_lines();
  void read_partition_lines();
  void read_partition_line(const PlacedLine& line);
  void settle_default_partition();
  void read_cluster_lines();
  void set_mpi_default(const PlacedKey& key);

  // --- sacctmgr ---
  void read_qos(std::size_t line, const std::string& name, const std::vector<KeyValue>& keys);
  void read_account(const slurm::DumpLine& line, const std::string& parent);
  void read_user(const slurm::DumpLine& line, const std::string& account);
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

  void summarize(Imported& imported) const;

  const std::vector<ImportFile>& files_;
  const ReadInclude& read_include_;
  // Each file is read once, whether it was named, included or both.
  std::size_t file_ = 0;
  std::size_t include_depth_ = 0;
  std::vector<std::string> names_;
  Remarks remarks_;

  // The contents of the files, before they become objects: accounts and users wait for each other,
  // and the cluster's keys for the last file.
  // The first line of the first slurm.conf.
  std::optional<FilePlace> conf_place_;
  std::vector<PlacedLine> conf_lines_, gres_lines_;
  NodeLines nodes_;
  std::vector<PlacedKey> partition_defaults_;
  std::size_t partition_lines_count_ = 0;
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

// Returns the name as Kubernetes can have it, and reports a change.
std::string Importer::named(FilePlace place, const std::string& name) {
  return changed_name(place, name, kube_name(name), "lower case letters, digits, - and .");
}

// Reports that a name is another one here.
std::string Importer::changed_name(FilePlace place, const std::string& name, std::string result,
                                   const std::string& allowed) {
  if (result != name) {
    remarks_.add(RemarkKind::kNote, place,
                 slurm::in_quotes(name) + ": is named " + slurm::in_quotes(result) +
                     " here, because Kubernetes takes " + allowed + " only");
  }
  return result;
}

// Gives an object its name, and the one that it has in Slurm if that is another.
template <typename T>
void Importer::name_object(FilePlace place, const std::string& name, T& object) {
  object.metadata.name = named(place, name);
  if (object.metadata.name != name) {
    object.metadata.annotations.emplace(kAnnotationSlurmName, name);
  }
}

// Lines that could not be taken apart into keys. The rest of the file is still imported.
void Importer::tell_errors(const std::vector<slurm::LineError>& errors) {
  for (const slurm::LineError& error : errors) {
    remarks_.add(RemarkKind::kLost, at(error.number), error.message);
  }
}

// Returns the keys of one line, each with the place that a remark about it must name.
std::vector<PlacedKey> placed(FilePlace place, std::span<const KeyValue> keys) {
  std::vector<PlacedKey> all;
  for (const KeyValue& key : keys) all.push_back({place, key});
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
    remarks_.add(RemarkKind::kLost, place, "is left out: " + status.error().message);
    return std::nullopt;
  }
  return read(take_keys(name, keys, can_take, remarks_)).value();
}

// Lines of these are not keys of the cluster.
bool begins_other_object(std::string_view key) {
  for (const std::string_view first : {"NodeName", "DownNodes", "NodeSet", "PartitionName"}) {
    if (same_word(key, first)) return true;
  }
  return false;
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
  return begins_other_object(line.keys.front().key) ||
         same_word(line.keys.front().key, slurm::kIncludeKey) ||
         std::any_of(line.keys.begin(), line.keys.end(), is_known);
}

// Returns true if the line is one of gres.conf: what it names has a Name, which no line of
// slurm.conf has.
bool is_of_gres_conf(const slurm::ConfLine& line) {
  const std::string& first = line.keys.front().key;
  if (same_word(first, "AutoDetect")) return true;
  const bool is_named = std::ranges::any_of(
      line.keys, [](const KeyValue& key) { return same_word(key.key, "Name"); });
  return is_named && (same_word(first, "Name") || same_word(first, "NodeName"));
}

// Reads a file by the kind that its first line with content shows: titles between | (`sacctmgr show
// qos -P`), "Kind - 'name'" (`sacctmgr dump`), gres.conf or slurm.conf. The names of files say
// nothing: users pipe the output of sacctmgr into files of any name.
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

// Reports a text without any key that Slurm knows in one line. So it does with the lines that are
// not Slurm's if they are the most: any text may have a key by accident, such as "include". An
// included file is always read: it may hold nothing but comments.
void Importer::read_conf(std::string_view text) {
  slurm::ConfLines read = slurm::read_conf_lines(text);
  if (!read.lines.empty() && is_of_gres_conf(read.lines.front())) {
    tell_errors(read.errors);
    for (const slurm::ConfLine& line : read.lines) {
      gres_lines_.push_back({at(line.number), line.keys});
    }
    return;
  }
  if (include_depth_ == 0) {
    constexpr std::size_t kStrangeLinesMax = 5;
    const auto strange =
        std::stable_partition(read.lines.begin(), read.lines.end(), is_of_slurm_conf);
    const auto known_count = static_cast<std::size_t>(strange - read.lines.begin());
    const std::size_t strange_count = read.lines.size() - known_count + read.errors.size();
    if (known_count == 0) {
      remarks_.add(RemarkKind::kLost, at(1),
                   "is neither a slurm.conf, a gres.conf nor output of sacctmgr");
      return;
    }
    if (strange_count > kStrangeLinesMax && strange_count > known_count) {
      remarks_.add(RemarkKind::kOtherFile, at(1),
                   "does not look like a slurm.conf: " + std::to_string(strange_count) + " of " +
                       std::to_string(strange_count + known_count) +
                       " lines have no parameter of Slurm and are left out");
      read.lines.erase(strange, read.lines.end());
      read.errors.clear();
    } else {
      std::ranges::sort(read.lines, {}, &slurm::ConfLine::number);
    }
  }
  if (!conf_place_) conf_place_ = at(1);
  tell_errors(read.errors);
  for (const slurm::ConfLine& line : read.lines) {
    if (same_word(line.keys.front().key, slurm::kIncludeKey)) {
      include(line.number, line.keys.front().value);
    } else {
      conf_lines_.push_back({at(line.number), line.keys});
    }
  }
}

// Returns the directory of a path with its "/"; "" if it has none.
std::string directory_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

// The lines of the included file take the place of the line. Its path is relative to the file that
// includes it. If it is not there, as on a machine that is not the head node, a file of that name
// among those of the command line is taken.
void Importer::include(std::size_t line, const std::string& name) {
  constexpr std::size_t kDepthMax = 16;
  const auto lost = [&](const std::string& why) {
    remarks_.add(RemarkKind::kLost, at(line), "include " + name + ": " + why);
  };
  if (include_depth_ == kDepthMax) return lost("files include each other too deeply");
  ImportFile file{name.starts_with('/') ? name : directory_of(names_[file_]) + name, {}};
  const auto base_of = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const auto given = std::find_if(files_.begin(), files_.end(), [&](const ImportFile& each) {
    return base_of(each.name) == base_of(name);
  });
  if (given != files_.end()) {
    file = *given;
  } else {
    base::Result<std::string> text = read_include_(file.name);
    if (!text) return lost(text.error().message + "; name the file on the command line, too");
    file.text = std::move(*text);
  }
  const std::size_t including = file_;
  ++include_depth_;
  read_file(file);
  --include_depth_;
  file_ = including;
}

// The rest of the line is the file's, so a file that was read before gives nothing.
void Importer::read_file(const ImportFile& file) {
  if (std::find(names_.begin(), names_.end(), file.name) != names_.end()) return;
  file_ = names_.size();
  names_.push_back(file.name);
  include_depth_ > 0 ? read_conf(file.text) : read(file.text);
}

// Slurm settles nodes, then sets of nodes, then partitions, wherever their lines stand.
void Importer::read_node_lines() {
  const auto each = [this](std::string_view key, const auto& add) {
    for (const PlacedLine& line : conf_lines_) {
      if (same_word(line.keys.front().key, key)) (nodes_.*add)(line.place, line.keys, remarks_);
    }
  };
  each("NodeName", &NodeLines::add_nodes);
  each("DownNodes", &NodeLines::add_down);
  each("NodeSet", &NodeLines::add_set);
  for (const PlacedLine& line : gres_lines_) {
    nodes_.add_gres_line(line.place, line.keys, remarks_);
  }
}

void Importer::read_partition_lines() {
  for (const PlacedLine& line : conf_lines_) {
    if (same_word(line.keys.front().key, "PartitionName")) read_partition_line(line);
  }
  settle_default_partition();
}

// Replaces Nodes, of which the last one counts, by the names that it stands for.
base::Status resolve_nodes(const NodeLines& nodes, std::vector<PlacedKey>& keys) {
  std::string list = "ALL";
  std::erase_if(keys, [&](const PlacedKey& placed) {
    if (!same_word(placed.key.key, "Nodes")) return false;
    list = placed.key.value;
    return true;
  });
  const base::Result<std::vector<std::string>> names = nodes.resolve(list);
  if (!names) return names.error();
  keys.push_back({{}, {"Nodes", slurm::compress_hostlist(*names)}});
  return {};
}

// 1. the keys of the DEFAULT lines before it, then its own, which win
// 2. another DEFAULT line only adds to the defaults
// 3. who may use it, and its nodes
// 4. keys that can be taken, names of QOS as they are called here, the object
//
// A partition without nodes is left out: the operator would accept no job for it. So is one whose
// nodes the API server would refuse.
void Importer::read_partition_line(const PlacedLine& line) {
  const FilePlace place = line.place;
  std::vector<PlacedKey> keys = partition_defaults_;
  for (PlacedKey& key : placed(place, std::span{line.keys}.subspan(1))) {
    keys.push_back(std::move(key));
  }
  const std::string& name = line.keys.front().value;
  if (same_word(name, "DEFAULT")) {
    partition_defaults_ = std::move(keys);
    return;
  }
  ++partition_lines_count_;
  const auto leave_out = [&](const std::string& why) {
    remarks_.add(RemarkKind::kLost, place, "PartitionName=" + name + ": is left out: " + why);
  };
  PartitionAccess access = take_access(keys, remarks_);
  const base::Status nodes = resolve_nodes(nodes_, keys);
  if (!nodes) return leave_out("Nodes: " + nodes.error().message);
  const auto read = [](std::span<const KeyValue> of) { return slurm::read_partition_keys(of, {}); };
  const auto back = [](const sched::PartitionConfig& partition) {
    return control::translate_partition(partition.name, spec_of(partition), {});
  };
  std::optional<sched::PartitionConfig> read_partition =
      taken(place, {line.keys.front()}, keys, read, back);
  if (!read_partition) return;
  sched::PartitionConfig& partition = *read_partition;
  if (partition.nodes.empty()) return leave_out("it has no nodes");
  if (const auto problem = hostlist_problem(slurm::compress_hostlist(partition.nodes))) {
    return leave_out("Nodes: " + *problem);
  }
  if (access.namespaces) partition.allow_users = std::move(access.namespaces);
  if (access.is_closed && partition.state != sched::PartitionState::kInactive) {
    partition.state = sched::PartitionState::kDown;
  }
  if (partition.max_time && partition.default_time > partition.max_time) {
    partition.default_time.reset();
    remarks_.add(RemarkKind::kNote, place,
                 "DefaultTime: is above MaxTime and is dropped, as Slurm does");
  }
  if (!partition.qos.empty()) partition.qos = named(place, partition.qos);
  for (auto* list : {&partition.allow_qos, &partition.deny_qos}) {
    rename_all(*list, [&](const std::string& qos) { return named(place, qos); });
  }
  kube::Partition object;
  name_object(place, partition.name, object);
  object.spec = spec_of(partition);
  partitions_.push_back({place, std::move(object)});
}

// The last default partition wins, as in Slurm; the operator would refuse the second.
void Importer::settle_default_partition() {
  const Placed<kube::Partition>* winner = nullptr;
  for (const Placed<kube::Partition>& each : partitions_) {
    if (each.value.spec.is_default) winner = &each;
  }
  for (Placed<kube::Partition>& each : partitions_) {
    if (!each.value.spec.is_default || &each == winner) continue;
    each.value.spec.is_default.reset();
    remarks_.add(RemarkKind::kNote, each.place,
                 "Default=YES: a later line makes " +
                     slurm::in_quotes(winner->value.metadata.name) + " the default, as in Slurm");
  }
}

// MpiDefault is a variable of the pods here. "openmpi" is "none" of old, which says nothing.
void Importer::set_mpi_default(const PlacedKey& key) {
  constexpr std::array<std::string_view, 3> kKinds = {"pmi2", "pmix", "pmix_v4"};
  const std::string& kind = key.key.value;
  if (same_word(kind, "none") || same_word(kind, "openmpi")) return;
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end()) {
    return remarks_.add(RemarkKind::kSetting, key.place,
                        "MpiDefault=" + kind + ": must be none, pmi2 or pmix");
  }
  const nlohmann::json variable = {{"name", "SLURM_MPI_TYPE"}, {"value", kind}};
  for (Placed<kube::Partition>& each : partitions_) {
    each.value.spec.pod_defaults =
        kube::PodDefaults{.env = kube::RawJson{nlohmann::json::array({variable})}};
  }
}

// SelectType first: it decides which SelectTypeParameters there are. A slurm.conf without any key
// about scheduling becomes a SchedulerConfig that spells out Slurm's defaults where they differ
// from kubegang's: gangs are off, for example. So a text that is not a slurm.conf must not become
// one.
void Importer::read_cluster_lines() {
  std::vector<PlacedKey> keys;
  for (const PlacedLine& line : conf_lines_) {
    const std::string& first = line.keys.front().key;
    if (begins_other_object(first)) continue;
    for (PlacedKey& key : placed(line.place, line.keys)) keys.push_back(std::move(key));
  }
  std::stable_partition(keys.begin(), keys.end(), [](const PlacedKey& each) {
    return same_word(each.key.key, "SelectType");
  });
  const auto is_mpi = [](const PlacedKey& each) { return same_word(each.key.key, "MpiDefault"); };
  const auto mpi = std::find_if(keys.rbegin(), keys.rend(), is_mpi);  // the last one counts
  if (mpi != keys.rend()) set_mpi_default(*mpi);
  std::erase_if(keys, is_mpi);
  const auto back = [](const sched::ClusterParameters& cluster) {
    return control::translate_config(spec_of(cluster));
  };
  // Keys are reported even if there is no object: each remark says what is wrong with its line.
  const std::vector<KeyValue> taken =
      take_keys({}, keys, comes_back(slurm::read_cluster_keys, back), remarks_);
  if (!conf_place_) return;
  kube::SchedulerConfig object;
  object.metadata.name = std::string{kube::kSchedulerConfigName};
  object.spec = spec_of(slurm::read_cluster_keys(taken).value());
  if (auto devices = nodes_.devices(); !devices.empty()) {
    object.spec.devices = kube::DevicesConfig{.resources = std::move(devices)};
  }
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
      taken(at(line), {{"Name", name}}, placed(at(line), keys), slurm::read_qos_keys, back);
  if (!qos) return;
  for (std::string& victim : qos->preempt) victim = named(at(line), victim);
  kube::Qos object;
  name_object(at(line), name, object);
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
      remarks_.add(RemarkKind::kLost, at(line.number),
                   line.kind + " " + slurm::in_quotes(line.name) +
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
      taken(at(line.number), {{"Name", line.name}}, placed(at(line.number), line.keys),
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
  for (PlacedKey& key : placed(at(line.number), line.keys)) {
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
  user.value.config.name = changed_name(at(line.number), line.name, kube_namespace(line.name),
                                        "lower case letters, digits and -");
  user.value.config.account = kube_name(account);
  users_.push_back(std::move(user));
}

// --- objects ---

// Users are entries of their account's object, so all accounts must be known first. A user in an
// account without a line has no object to be put into, and is reported.
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
      remarks_.add(RemarkKind::kLost, user.place,
                   "User " + slurm::in_quotes(config.name) + ": account " +
                       slurm::in_quotes(config.account) + " has no line; the user is left out");
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
    remarks_.add(RemarkKind::kLost, partition.place,
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
    remarks_.add(RemarkKind::kLost, object.place,
                 std::string{T::kResource.kind} + " " + slurm::in_quotes(name) +
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
  std::vector<kube::Node> nodes(nodes_.names().size());
  std::vector<const kube::Node*> pointers;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].metadata.name = nodes_.names()[i];
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
      remarks_.add(RemarkKind::kLost, place, what + ": is left out: " + joined(verdict.problems));
    } else if (!verdict.warnings.empty()) {
      remarks_.add(RemarkKind::kNote, place, about(what, joined(verdict.warnings)));
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

// Returns one object as a document of YAML. An empty status would only make the reader wonder, and
// a missing spec would be refused by the API server.
template <typename T>
std::string document(const T& object) {
  nlohmann::json json = kube::encode(object);
  json.erase("status");
  if (!json.contains("spec")) json["spec"] = nlohmann::json::object();
  return "---\n" + yaml_text(json);
}

// The last remark: how many of the files' objects there are, which is what users look for first.
void Importer::summarize(Imported& imported) const {
  imported.object_lost =
      remarks_.count(RemarkKind::kOtherFile) + remarks_.count(RemarkKind::kLost) > 0;
  imported.setting_lost =
      remarks_.count(RemarkKind::kAccess) + remarks_.count(RemarkKind::kSetting) > 0;
  imported.remarks = remarks_.texts(names_);
  if (!conf_place_) return;
  std::string summary = names_[conf_place_->file] + ": " + std::to_string(partitions_.size()) +
                        " of " + std::to_string(partition_lines_count_) +
                        (partition_lines_count_ == 1 ? " partition is" : " partitions are") +
                        " imported";
  const auto count = [&](RemarkKind kind, const char* one, const char* many) {
    const std::size_t number = remarks_.count(kind);
    if (number > 0) summary += "; " + std::to_string(number) + " " + (number == 1 ? one : many);
  };
  count(RemarkKind::kLost, "left out", "left out");
  count(RemarkKind::kAccess, "about access", "about access");
  count(RemarkKind::kSetting, "parameter without effect", "parameters without effect");
  imported.remarks.push_back(std::move(summary));
}

// 1. nodes, partitions and the cluster's keys, of all files together
// 2. accounts with their users, QOS that partitions name and no file has
// 3. objects that are illegal alone, then those that are illegal beside the others, are dropped
// 4. YAML in the order in which objects refer to each other, so that one `kubectl apply -f` does
Imported Importer::finish() {
  read_node_lines();
  read_partition_lines();
  read_cluster_lines();
  make_accounts();
  make_missing_qos();
  if (config_) {
    const std::vector<std::string> problems = control::check_config(config_->value);
    if (!problems.empty()) {
      remarks_.add(RemarkKind::kLost, config_->place,
                   "SchedulerConfig: is left out: " + joined(problems));
      config_.reset();
    }
  }
  drop_illegal(qos_, control::check_qos);
  drop_illegal(accounts_, control::check_account);
  drop_illegal(partitions_, control::check_partition);
  drop_refused();

  Imported imported;
  if (!nodes_.names().empty()) {
    imported.yaml = "# Nodes, by Slurm's names: " + slurm::compress_hostlist(nodes_.names()) +
                    "\n# Kubernetes' nodes need these names; or change nodes of the Partitions.\n";
  }
  for (const std::string& command : nodes_.commands()) imported.yaml += "# " + command + "\n";
  if (config_) imported.yaml += document(config_->value);
  for (const auto& qos : qos_) imported.yaml += document(qos.value);
  for (const auto& account : accounts_) imported.yaml += document(account.value);
  for (const auto& partition : partitions_) imported.yaml += document(partition.value);
  summarize(imported);
  return imported;
}

}  // namespace

Imported import_slurm(const std::vector<ImportFile>& files, const ReadInclude& read_include) {
  return Importer{files, read_include}.finish();
}

}  // namespace cli
