#include "translation/config_acceptance.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <tuple>

#include "base/check.h"
#include "scheduler/model/legality.h"
#include "slurm/hostlist.h"

namespace control {
namespace {

// A condition's message cannot hold thousands of names.
constexpr std::size_t kMissingBytesMax = 1'000;
constexpr std::size_t kMissingNamesShown = 20;

// Returns "n[12-14]", or the first names of a list that is long however it is written. It ends with
// "..." if names are missing.
std::string short_hostlist(const std::vector<std::string>& names) {
  std::string text = slurm::compress_hostlist(names);
  // A few names are shown however long they are.
  if (text.size() <= kMissingBytesMax || names.size() <= kMissingNamesShown) return text;
  return slurm::compress_hostlist(std::span{names}.first(kMissingNamesShown)) + ",...";
}

// The spec of an object that is tried.
enum class Choice { kNewest, kAccepted, kNone };

// An object on its way through the rounds: which of its specs is tried now, and everything that was
// said against the others.
template <typename Spec>
struct Weighing {
  const SpecCandidate<Spec>* candidate = nullptr;
  Choice choice = Choice::kNone;
  SpecVerdict verdict;

  explicit Weighing(const SpecCandidate<Spec>& of) : candidate{&of} {
    verdict.problems = of.problems;
    choice = of.problems.empty() && of.newest != nullptr ? Choice::kNewest : fallback();
  }

  const Spec* spec() const {
    switch (choice) {
      case Choice::kNewest:
        return candidate->newest;
      case Choice::kAccepted:
        return candidate->accepted;
      case Choice::kNone:
        return nullptr;
    }
    return nullptr;
  }
  // This is what decides the order of retreat: a spec that has been in force, even if it is also
  // the newest, gave a cluster that worked and is touched last.
  // Returns true if the newest spec is tried and differs from the one that is in force.
  bool is_change() const {
    return choice == Choice::kNewest &&
           (candidate->accepted == nullptr || !(*candidate->newest == *candidate->accepted));
  }
  // A step leads from the newest spec to the accepted one, and from there to none. A newest spec
  // that equals the accepted one has no step between. The same problem may come back in a later
  // round, because another object retreats first; it is reported once. Gives up one step. Returns
  // false when there is nothing left to give up.
  bool retreat(const std::string& problem) {
    if (choice == Choice::kNone) return false;
    if (std::find(verdict.problems.begin(), verdict.problems.end(), problem) ==
        verdict.problems.end()) {
      verdict.problems.push_back(problem);
    }
    choice = is_change() ? fallback() : Choice::kNone;
    return true;
  }
  // Problems stay in the verdict also if an older spec is in force: they say why the newest is not.
  SpecVerdict finish() {
    verdict.newest_in_force = choice == Choice::kNewest;
    verdict.any_in_force = choice != Choice::kNone;
    return std::move(verdict);
  }

 private:
  Choice fallback() const {
    return candidate->accepted != nullptr ? Choice::kAccepted : Choice::kNone;
  }
};

// Finds the configuration in force. Objects arrive one by one and may be illegal only together (two
// default partitions, a QOS that a partition names), so all are tried at once:
// 1. each object begins with its newest spec, or with the accepted one if the newest is illegal by
//    itself.
// 2. the whole is translated and checked.
// 3. if there is an error, one object retreats: to its accepted spec, then to none. Changes retreat
//    before what is in force (give_way).
// 4. again from 2, until the rest is legal. Each round gives up one spec of finitely many, so it
// ends. Specs in force stay so as long as possible: a mistake in one object must not stop a cluster
// that runs.
class Acceptor {
 public:
  explicit Acceptor(const AcceptanceInput& input) : input_{input} {
    if (input.config) config_.emplace(*input.config);
    for (const auto& partition : input.partitions) partitions_.emplace_back(partition);
    for (const auto& qos : input.qos) qos_.emplace_back(qos);
    for (const auto& account : input.accounts) accounts_.emplace_back(account);
  }

  Acceptance run() {
    // Each round gives up at least one spec, so it ends; the defaults alone are legal.
    for (;;) {
      // First what needs no translation. Each `continue` has given up a spec, so it begins with the
      // others as they are now.
      if (refuse_second_default() || refuse_second_default_account() || refuse_second_identity()) {
        continue;
      }
      build();
      const auto issues = sched::check(out_.configuration);
      const auto error = std::find_if(issues.begin(), issues.end(), [](const auto& issue) {
        return issue.severity == sched::IssueSeverity::kError;
      });
      // Warnings are taken from the last round alone: those of earlier ones may be about specs that
      // are not in force.
      if (error == issues.end()) {
        for (const auto& issue : issues) warn(issue);
        warn_of_missing_nodes();
        break;
      }
      // Only defaults that are illegal by themselves leave nothing to retreat, which is a bug here.
      CHECK(give_way(*error), error->message);
    }
    if (config_) out_.config = config_->finish();
    for (auto& trial : partitions_) out_.partitions.push_back(trial.finish());
    for (auto& trial : qos_) out_.qos.push_back(trial.finish());
    for (auto& trial : accounts_) out_.accounts.push_back(trial.finish());
    return std::move(out_);
  }

 private:
  // Builds the whole configuration of the specs that are tried now, again in each round: a spec
  // that retreats may change what others mean.
  void build() {
    out_.configuration = {};
    const kube::SchedulerConfigSpec* spec = config_ ? config_->spec() : nullptr;
    const kube::SchedulerConfigSpec defaults;
    out_.configuration.cluster = translate_config(spec != nullptr ? *spec : defaults);
    out_.parameters = operator_parameters(spec != nullptr ? *spec : defaults);
    for (const auto& trial : partitions_) {
      if (const auto* partition = trial.spec()) {
        out_.configuration.partitions.push_back(
            translate_partition(trial.candidate->name, *partition, input_.nodes));
      }
    }
    for (const auto& trial : qos_) {
      if (const auto* qos = trial.spec()) {
        out_.configuration.qos.push_back(translate_qos(trial.candidate->name, *qos));
      }
    }
    build_accounts();
  }

  // The first account of a user is the default of its jobs: those that say so come first.
  void build_accounts() {
    std::vector<sched::UserConfig> others;
    for (const auto& trial : accounts_) {
      const auto* account = trial.spec();
      if (account == nullptr) continue;
      const std::string& name = trial.candidate->name;
      out_.configuration.accounts.push_back(translate_account(name, *account));
      for (const kube::AccountNamespace& each : account->namespaces) {
        auto& users = each.is_default.value_or(false) ? out_.configuration.users : others;
        users.push_back(translate_namespace(name, each));
      }
    }
    std::move(others.begin(), others.end(), std::back_inserter(out_.configuration.users));
  }

  // The instant of creation decides and not the order of the watch's events: a new leader
  // lists the same objects in another order and must come to the same result.
  // Two default partitions: the older one wins, ties by name; the other's spec is refused. Returns
  // true if one has retreated, so that the caller begins a new round.
  bool refuse_second_default() {
    const SpecCandidate<kube::PartitionSpec>* winner = nullptr;
    const auto is_default = [](const auto& trial) {
      const auto* spec = trial.spec();
      return spec != nullptr && spec->is_default.value_or(false);
    };
    for (const auto& trial : partitions_) {
      const auto* other = trial.candidate;
      if (is_default(trial) && (winner == nullptr || std::tie(other->created, other->name) <
                                                         std::tie(winner->created, winner->name))) {
        winner = other;
      }
    }
    // Stops at the first one that retreats; the next round finds the next.
    return std::any_of(partitions_.begin(), partitions_.end(), [&](auto& trial) {
      return is_default(trial) && trial.candidate != winner &&
             trial.retreat("spec.default: partition \"" + winner->name +
                           "\" is the default already and older; set default to false in one of "
                           "the two");
    });
  }

  // Two default accounts of one namespace: the older account wins, ties by name.
  bool refuse_second_default_account() {
    std::map<std::string, const SpecCandidate<kube::AccountSpec>*> default_of;
    // `visit` returns true to stop, and that is then the result.
    const auto for_each_default = [](const auto& trial, const auto& visit) {
      const auto* spec = trial.spec();
      if (spec == nullptr) return false;
      return std::any_of(spec->namespaces.begin(), spec->namespaces.end(), [&](const auto& each) {
        return each.is_default.value_or(false) && visit(each.name);
      });
    };
    for (const auto& trial : accounts_) {
      const auto* other = trial.candidate;
      (void)for_each_default(trial, [&](const std::string& name) {
        const auto*& winner = default_of[name];
        if (winner == nullptr ||
            std::tie(other->created, other->name) < std::tie(winner->created, winner->name)) {
          winner = other;
        }
        return false;
      });
    }
    return std::any_of(accounts_.begin(), accounts_.end(), [&](auto& trial) {
      return for_each_default(trial, [&](const std::string& name) {
        return default_of[name] != trial.candidate &&
               trial.retreat("spec.namespaces: account \"" + default_of[name]->name +
                             "\" is the default of namespace \"" + name +
                             "\" already and older; set default to false in one of the two");
      });
    });
  }

  // Two identities of one namespace: the older account wins, ties by name.
  bool refuse_second_identity() {
    struct Told {
      const SpecCandidate<kube::AccountSpec>* account = nullptr;
      const kube::PodIdentity* identity = nullptr;
    };
    std::map<std::string, Told> identity_of;
    for (const auto& trial : accounts_) {
      const auto* spec = trial.spec();
      if (spec == nullptr) continue;
      const auto* other = trial.candidate;
      for (const kube::AccountNamespace& each : spec->namespaces) {
        if (!each.identity) continue;
        Told& told = identity_of[each.name];
        if (told.account == nullptr || std::tie(other->created, other->name) <
                                           std::tie(told.account->created, told.account->name)) {
          told = {other, &*each.identity};
        }
      }
    }
    return std::any_of(accounts_.begin(), accounts_.end(), [&](auto& trial) {
      const auto* spec = trial.spec();
      if (spec == nullptr) return false;
      return std::ranges::any_of(spec->namespaces, [&](const kube::AccountNamespace& each) {
        if (!each.identity || *each.identity == *identity_of[each.name].identity) return false;
        return trial.retreat("spec.namespaces: account \"" + identity_of[each.name].account->name +
                             "\" has another identity of namespace \"" + each.name +
                             "\" and is older; make them equal, or remove one");
      });
    });
  }

  // Adds a sentence once, though several rounds may find it.
  void add_warning(const std::string& partition, std::string sentence) {
    for (auto& trial : partitions_) {
      if (trial.candidate->name != partition) continue;
      auto& warnings = trial.verdict.warnings;
      if (std::find(warnings.begin(), warnings.end(), sentence) == warnings.end()) {
        warnings.push_back(std::move(sentence));
      }
    }
  }

  // Warnings are for the object that the issue names. They change nothing about what is in force.
  void warn(const sched::ConfigIssue& issue) {
    const std::string sentence = sentence_of(issue);
    switch (issue.object) {
      case sched::IssueObject::kCluster:
        if (config_) config_->verdict.warnings.push_back(sentence);
        break;
      case sched::IssueObject::kPartition:
        add_warning(issue.name, sentence);
        break;
      case sched::IssueObject::kQos:
        for (auto& trial : qos_) {
          if (trial.candidate->name == issue.name) trial.verdict.warnings.push_back(sentence);
        }
        break;
      case sched::IssueObject::kAccount:
        for (auto& trial : accounts_) {
          if (trial.candidate->name == issue.name) trial.verdict.warnings.push_back(sentence);
        }
        break;
    }
  }

  // Nodes come and go, so a partition is in force without them (slurmctld refuses unknown names);
  // but a name may be a mistake.
  void warn_of_missing_nodes() {
    std::set<std::string_view> existing;
    for (const kube::Node* node : input_.nodes) existing.insert(node->metadata.name);
    for (const auto& partition : out_.configuration.partitions) {
      std::vector<std::string> missing;
      for (const std::string& name : partition.nodes) {
        if (!existing.contains(name)) missing.push_back(name);
      }
      if (missing.empty()) continue;
      add_warning(partition.name, "spec.nodes.hostlist: there is no node " +
                                      short_hostlist(missing) + " (" +
                                      std::to_string(missing.size()) + " of the " +
                                      std::to_string(partition.nodes.size()) + " that it names)");
    }
  }

  // Retreats an object that an error is about to its spec in force. Unchanged objects are spared as
  // long as a changed one is left: a rejected object changes nothing that runs.
  bool give_way(const sched::ConfigIssue& issue) {
    const std::string sentence = sentence_of(issue);
    // The order is: a change of the object that is blamed, a change of the cluster's configuration,
    // any other change, and only then what is in force already.
    for (const bool only_changes : {true, false}) {
      if (retreat_blamed(issue, sentence, only_changes)) return true;
      if (only_changes && config_ && config_->is_change() && config_->retreat(sentence)) {
        return true;
      }
      if (only_changes && retreat_any_change(sentence)) return true;
    }
    return false;
  }

  // Retreats an object that the issue names.
  bool retreat_blamed(const sched::ConfigIssue& issue, const std::string& sentence,
                      bool only_changes) {
    const auto try_one = [&](auto& trial) {
      return (!only_changes || trial.is_change()) && trial.retreat(sentence);
    };
    switch (issue.object) {
      case sched::IssueObject::kCluster:
        return config_ && try_one(*config_);
      case sched::IssueObject::kPartition:
        return std::any_of(partitions_.begin(), partitions_.end(), [&](auto& trial) {
          return trial.candidate->name == issue.name && try_one(trial);
        });
      case sched::IssueObject::kQos:
        return std::any_of(qos_.begin(), qos_.end(), [&](auto& trial) {
          return trial.candidate->name == issue.name && try_one(trial);
        });
      case sched::IssueObject::kAccount:
        return std::any_of(accounts_.begin(), accounts_.end(), [&](auto& trial) {
          return trial.candidate->name == issue.name && try_one(trial);
        });
    }
    return false;
  }

  // Retreats something else that is new: two objects may be illegal only together, and the one that
  // is blamed may be the one that was there first.
  bool retreat_any_change(const std::string& sentence) {
    const auto try_one = [&](auto& trial) { return trial.is_change() && trial.retreat(sentence); };
    return std::any_of(partitions_.begin(), partitions_.end(), try_one) ||
           std::any_of(qos_.begin(), qos_.end(), try_one) ||
           std::any_of(accounts_.begin(), accounts_.end(), try_one);
  }

  // Returns a sentence for users, who do not know the numbers of our rules (ConfigIssue::rule).
  static std::string sentence_of(const sched::ConfigIssue& issue) {
    std::string where;
    switch (issue.object) {
      case sched::IssueObject::kCluster:
        break;
      case sched::IssueObject::kPartition:
        where = "partition \"" + issue.name + "\": ";
        break;
      case sched::IssueObject::kQos:
        where = "QOS \"" + issue.name + "\": ";
        break;
      case sched::IssueObject::kAccount:
        where = "account \"" + issue.name + "\": ";
        break;
    }
    const std::string field = field_of(issue.field);
    return where + (field.empty() ? "" : "spec." + field + ": ") + issue.message;
  }

  // Returns the API's spelling of Slurm's: "PreemptMode" is preemptMode, "QOS" qos.
  static std::string field_of(const std::string& field) {
    std::string ours = field;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const bool next_is_small = i + 1 < ours.size() && ours[i + 1] >= 'a' && ours[i + 1] <= 'z';
      // Stops at the last capital before a small letter, which begins the next word ("QOSName" is
      // qosName).
      if (ours[i] < 'A' || ours[i] > 'Z' || (i > 0 && next_is_small)) break;
      ours[i] = static_cast<char>(ours[i] - 'A' + 'a');
    }
    return ours;
  }

  const AcceptanceInput& input_;
  std::optional<Weighing<kube::SchedulerConfigSpec>> config_;
  std::vector<Weighing<kube::PartitionSpec>> partitions_;
  std::vector<Weighing<kube::QosSpec>> qos_;
  std::vector<Weighing<kube::AccountSpec>> accounts_;
  Acceptance out_;
};

}  // namespace

Acceptance accept(const AcceptanceInput& input) {
  return Acceptor{input}.run();
}

}  // namespace control
