#include "cli/import/partition_access.h"

#include <array>
#include <string_view>

#include "cli/kube_name.h"
#include "slurm/text.h"

namespace cli {
namespace {

using slurm::same_word;

// A key that closes a partition to some, and the values with which it closes it to none.
struct AccessKey {
  std::string_view name;
  std::array<std::string_view, 3> open;
};
constexpr std::array<AccessKey, 8> kAccessKeys = {{{"AllowGroups", {"ALL", "", ""}},
                                                   {"AllowAccounts", {"ALL", "", ""}},
                                                   {"DenyAccounts", {"", "NONE", ""}},
                                                   {"AllocNodes", {"ALL", "", ""}},
                                                   {"AllowAllocNodes", {"ALL", "", ""}},
                                                   {"RootOnly", {"NO", "0", "FALSE"}},
                                                   {"ReqResv", {"NO", "0", "FALSE"}},
                                                   {"State", {"UP", "DOWN", "DRAIN"}}}};

std::string list_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

}  // namespace

// Groups are sets of users, and a user is a namespace here. The members of a group are not in the
// file, so the partition is open to the namespaces with the groups' names alone. Other rules name
// accounts, hosts or reservations; a Partition has none of them, and becomes Down. So does one
// whose state cannot be read, because it would be Up.
PartitionAccess take_access(std::vector<PlacedKey>& keys, Remarks& remarks) {
  PartitionAccess access;
  for (const AccessKey& key : kAccessKeys) {
    const bool is_state = key.name == "State";
    std::optional<std::string> value;
    FilePlace place;
    std::erase_if(keys, [&](const PlacedKey& placed) {
      if (!same_word(placed.key.key, key.name)) return false;
      value = placed.key.value;
      place = placed.place;
      return !is_state;
    });
    if (!value) continue;
    bool is_open = is_state && same_word(*value, "INACTIVE");
    for (const std::string_view open : key.open) is_open = is_open || same_word(*value, open);
    if (is_open) continue;
    const std::string what = std::string{key.name} + "=" + *value + ": ";
    if (key.name != "AllowGroups") {
      access.is_closed = true;
      remarks.add(RemarkKind::kAccess, place,
                  what +
                      "a Partition cannot say this, so its state is Down; set allow.namespaces "
                      "or deny.namespaces, then state: Up");
      continue;
    }
    access.namespaces.emplace();
    for (const std::string& group : slurm::split(*value, ',')) {
      const std::string name = kube_namespace(group);
      if (!name.empty()) access.namespaces->push_back(name);
    }
    if (access.namespaces->empty()) {
      access.namespaces.reset();
      access.is_closed = true;
    }
    remarks.add(RemarkKind::kAccess, place,
                what + "becomes allow.namespaces (" +
                    list_of(access.namespaces.value_or(std::vector<std::string>{})) +
                    "); write the namespaces of the groups' members there");
  }
  return access;
}

}  // namespace cli
