#include "scheduler/model/account_tree.h"

#include <functional>
#include <set>
#include <string_view>

namespace sched {

// The accounts first, then the users as leaves below them (9.1); a user of an account that does not
// exist is put below the root. If nothing is configured the tree is empty, without a root:
// then no job has an association, and no limit and no share is looked for.
AccountTree::AccountTree(const std::vector<AccountConfig>& accounts,
                         const std::vector<UserConfig>& users) {
  if (accounts.empty() && users.empty()) return;
  add_accounts(accounts);
  for (const UserConfig& user : users) {
    const std::string& account = user.account.empty() ? kRootAccount : user.account;
    const AssociationIndex parent = find_account(account).value_or(AssociationIndex{0});
    const AssociationIndex index = add({.name = user.name,
                                        .is_user = true,
                                        .parent = parent,
                                        .shares_under = {},
                                        .shares = user.shares,
                                        .priority = user.priority,
                                        .limits = user.limits});
    users_.emplace(std::pair{user.name, account}, index);
    // emplace() keeps the first: a user's default account is the first in which the user is listed.
    default_of_.emplace(user.name, index);
  }
}

// The root first, then every account whose parent is there already, until none is left to add.
void AccountTree::add_accounts(const std::vector<AccountConfig>& accounts) {
  Association root{
      .name = kRootAccount, .parent = {}, .shares_under = {}, .shares = {}, .limits = {}};
  for (const AccountConfig& account : accounts) {
    if (account.name == kRootAccount) root.limits = account.limits;
  }
  accounts_.emplace(kRootAccount, add(std::move(root)));
  // An account whose parent does not exist counts as a child of the root (a warning, legality.cc);
  // those below it keep it as their parent.
  std::set<std::string_view> names;
  for (const AccountConfig& account : accounts) names.insert(account.name);
  std::multimap<std::string, const AccountConfig*> waiting;  // by parent
  for (const AccountConfig& account : accounts) {
    if (account.name == kRootAccount) continue;
    waiting.emplace(names.contains(account.parent) ? account.parent : kRootAccount, &account);
  }
  const auto place = [&](const AccountConfig& account, AssociationIndex parent) {
    const AssociationIndex index = add({.name = account.name,
                                        .parent = parent,
                                        .shares_under = {},
                                        .shares = account.shares,
                                        .priority = account.priority,
                                        .limits = account.limits});
    accounts_.emplace(account.name, index);
  };
  // Breadth first: all_ grows while it is gone through, so a parent always stands before its
  // children. Accounts of a circle are never reached and are left out (an error, legality.cc).
  for (std::size_t done = 0; done < all_.size(); ++done) {
    const std::string name = all_[done].name;
    const auto [first, last] = waiting.equal_range(name);
    for (auto at = first; at != last; ++at) {
      place(*at->second, AssociationIndex{static_cast<std::int32_t>(done)});
    }
    waiting.erase(first, last);
  }
}

// R9.15: what shares under an account with Fairshare=parent shares under the next account above
// that has shares of its own.
//
// For example, users of account physics, which has Fairshare=parent, share under root with the
// other accounts there, as if physics were not between. An account is added before those below it,
// so a walk upwards finds all of them.
AssociationIndex AccountTree::add(Association association) {
  if (association.parent) {
    association.shares_under = association.parent;
    while (all_[association.shares_under->index()].shares.of_parent) {
      association.shares_under = all_[association.shares_under->index()].parent;
    }
  }
  all_.push_back(std::move(association));
  return AssociationIndex{static_cast<std::int32_t>(all_.size()) - 1};
}

// Cost: O(log accounts).
std::optional<AssociationIndex> AccountTree::find_account(std::string_view name) const {
  const auto at = accounts_.find(name);
  if (at == accounts_.end()) return std::nullopt;
  return at->second;
}

// 9.1: a job that names no account is of its user's default account, the first in which the user is
// listed.
std::optional<AssociationIndex> AccountTree::find_user(std::string_view user,
                                                       std::string_view account) const {
  if (account.empty()) {
    const auto at = default_of_.find(user);
    if (at == default_of_.end()) return std::nullopt;
    return at->second;
  }
  const auto at = users_.find(std::pair{std::string{user}, std::string{account}});
  if (at == users_.end()) return std::nullopt;
  return at->second;
}

// For messages about limits: whose limit it is.
std::string AccountTree::describe(AssociationIndex index) const {
  const Association& association = all_[index.index()];
  if (!association.is_user) return "account " + association.name;
  return "user " + association.name + " in account " + all_[association.parent->index()].name;
}

}  // namespace sched
