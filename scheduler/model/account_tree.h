// AccountTree: accounts and users as they are configured, resolved to indexes. Index 0 is the root
// account; parents come before children.
//
// Threads: none. Cost: making it O(associations × log associations); a question O(log associations)
// or less.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler/model/accounts.h"
#include "scheduler/model/ids.h"

namespace sched {

struct Association {
  std::string name;  // of the account, or of the user
  bool is_user = false;
  std::optional<AssociationIndex> parent;  // nothing: the root
  // The nearest ancestor among whose children it shares: its parent, unless that has Fairshare
  // =parent itself.
  std::optional<AssociationIndex> shares_under;
  Shares shares;
  std::uint32_t priority = 0;
  Limits limits;
};

class AccountTree {
 public:
  AccountTree() = default;
  // An account whose parent is not there, or is below itself, counts as a child of the root; the
  // check of legality warns of the one and refuses the other.
  AccountTree(const std::vector<AccountConfig>& accounts, const std::vector<UserConfig>& users);

  // No accounts are configured: jobs have no association.
  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const Association& operator[](AssociationIndex index) const { return all_[index.index()]; }
  const std::vector<Association>& all() const { return all_; }
  std::optional<AssociationIndex> find_account(std::string_view name) const;
  // Finds the user in that account; with an empty name in its default account. nullopt = none.
  std::optional<AssociationIndex> find_user(std::string_view user, std::string_view account) const;
  // Calls visit(index) for it and all above it, the root last.
  template <typename Visit>
  void upwards(AssociationIndex from, const Visit& visit) const {
    for (std::optional<AssociationIndex> at = from; at; at = all_[at->index()].parent) visit(*at);
  }
  // Returns "account b", "user ada in account b".
  std::string describe(AssociationIndex index) const;

 private:
  void add_accounts(const std::vector<AccountConfig>& accounts);
  AssociationIndex add(Association association);

  std::vector<Association> all_;
  std::map<std::string, AssociationIndex, std::less<>> accounts_;
  std::map<std::pair<std::string, std::string>, AssociationIndex, std::less<>> users_;
  std::map<std::string, AssociationIndex, std::less<>> default_of_;
};

}  // namespace sched
