// PolicyBook: SchedulerConfig, Partitions, QOS and Accounts as they are stored, and the
// configuration in force that follows from them: the newest specs if they are legal together, for
// the others the last accepted ones. The status of each object says what became of its spec.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/log_fields.h"
#include "operator/loop/inbox.h"
#include "operator/loop/kinds.h"
#include "operator/policy/policy_kind.h"
#include "operator/publish/mirror.h"
#include "translation/pod_defaults.h"

namespace control {

template <typename T>
struct PolicyEntry {
  std::shared_ptr<const T> object;  // newest seen
  StatusMirror<T> status;
};
template <typename T>
using PolicyEntries = std::map<std::string, PolicyEntry<T>>;  // by name

// Belongs to the loop's thread.
class PolicyBook {
 public:
  template <typename T>
  void observe(const Changes<T>& changes) {
    for (const auto& [key, object] : changes) {
      if (object == nullptr) {
        is_dirty_ = entries<T>().erase(key.name) > 0 || is_dirty_;
        continue;
      }
      PolicyEntry<T>& entry = entries<T>()[key.name];
      // An answer may have shown more than the watch has so far.
      if (entry.object != nullptr && entry.object->metadata.uid == object->metadata.uid &&
          is_newer_version(entry.object->metadata.resource_version,
                           object->metadata.resource_version)) {
        continue;
      }
      const auto before = std::exchange(entry.object, object);
      is_dirty_ = is_dirty_ || before == nullptr || before->metadata.uid != object->metadata.uid ||
                  !(before->spec == object->spec);
      if (entry.status.uid() == object->metadata.uid) {
        (void)entry.status.saw(*object);
      } else {
        entry.status = StatusMirror<T>{*object};
      }
    }
  }
  // A node came or went, or has other labels: partitions pick their nodes by these.
  void observe_nodes() { is_dirty_ = true; }
  bool is_dirty() const { return is_dirty_; }

  struct Decided {
    bool configuration_changed = false;  // also by the first decision
    bool parameters_changed = false;
    std::vector<base::LogFields> refused;  // specs
  };
  // Works out what is in force.
  Decided decide(std::span<const kube::Node* const> nodes, base::Instant now);

  // Returns the configuration in force.
  const sched::Configuration& configuration() const { return configuration_; }
  const OperatorParameters& parameters() const { return parameters_; }
  // Returns true if the partition, as accepted, taints its nodes.
  bool taints_nodes(const std::string& partition) const;
  // For pods of the namespace that start in the partition, as accepted.
  DefaultsInForce pod_defaults(const std::string& partition, const std::string& ns) const;

  // Says in the status of the SchedulerConfig if more licenses are in use than there are.
  void show_licenses(const sched::Licenses& in_use, base::Instant now);

  template <typename T>
  PolicyEntries<T>& entries() {
    return std::get<PolicyEntries<T>>(entries_);
  }
  template <typename T>
  const PolicyEntries<T>& entries() const {
    return std::get<PolicyEntries<T>>(entries_);
  }
  // Returns the status of the object; null if there is none.
  template <typename T>
  StatusMirror<T>* find_status(const std::string& name) {
    const auto found = entries<T>().find(name);
    return found == entries<T>().end() ? nullptr : &found->second.status;
  }
  // Calls action(WritePoint, StatusMirror<T>&) for each object of each kind.
  template <typename Action>
  void for_each_status(Action action) {
    PolicyKinds::for_each([&]<typename T>(std::type_identity<T>) {
      for (auto& [name, entry] : entries<T>()) action(PolicyKind<T>::kPoint, entry.status);
    });
  }

 private:
  template <typename T>
  void show(PolicyEntry<T>& entry, const SpecVerdict& verdict, base::Instant now, Decided& decided);

  void show_preempt_modes();

  PolicyKinds::Tuple<PolicyEntries> entries_;
  bool is_dirty_ = false;
  bool has_decided_ = false;
  sched::Configuration configuration_;
  OperatorParameters parameters_;
};

}  // namespace control
