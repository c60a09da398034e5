// Accounts and users, as sacctmgr has them (9.1).
#include <algorithm>
#include <array>

#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/limit_actions.h"
#include "slurm/limits.h"

namespace slurm {
namespace {

// The two kinds of association have the same keys and differ only in what names them, so every
// action here is a template over AccountConfig and UserConfig.

using sched::AccountConfig;
using sched::Limits;
using sched::UserConfig;

// "parent" stands in place of a number: the account's children then share as if they were its
// parent's (R9.15).
template <typename T>
base::Status shares(T& t, std::string_view key, std::string_view value) {
  t.shares = {};
  if (same_word(value, "parent")) {
    t.shares.of_parent = true;
    return {};
  }
  return set_integer(t.shares.count, key, value, {.min = 0, .max = kUint32Max});
}

// The association's priority is a term of the jobs' priorities, by PriorityWeightAssoc (R9.3).
template <typename T>
base::Status priority(T& t, std::string_view key, std::string_view value) {
  return set_integer(t.priority, key, value, {.min = 0, .max = kUint32Max});
}

// Works as of_qos() of conf_qos.cc: an action on Limits becomes one on the account or user.
template <typename T, auto action>
base::Status of_association(T& t, std::string_view key, std::string_view value) {
  return action(t.limits, key, value);
}

// The keys that accounts and users have in common: shares and limits. A limit has up to three
// names: those of `sacctmgr modify`, and the shorter ones of dumps and listings.
template <typename T>
constexpr std::array kAssociationKeys = {
    ConfKey<T>{"Fairshare", shares<T>},
    ConfKey<T>{"Share", shares<T>},
    ConfKey<T>{"Priority", priority<T>},
    ConfKey<T>{"GrpTRES", of_association<T, tres_limit<&Limits::group_tres>>},
    ConfKey<T>{"GrpJobs", of_association<T, count_limit<&Limits::group_jobs>>},
    ConfKey<T>{"GrpSubmitJobs", of_association<T, count_limit<&Limits::group_submit>>},
    ConfKey<T>{"GrpSubmit", of_association<T, count_limit<&Limits::group_submit>>},
    ConfKey<T>{"GrpWall", of_association<T, wall_limit<&Limits::group_wall>>},
    ConfKey<T>{"MaxTRESPerJob", of_association<T, tres_limit<&Limits::job_tres>>},
    ConfKey<T>{"MaxTRES", of_association<T, tres_limit<&Limits::job_tres>>},
    ConfKey<T>{"MaxTRESPJ", of_association<T, tres_limit<&Limits::job_tres>>},
    ConfKey<T>{"MaxTRESPerNode", of_association<T, tres_limit<&Limits::node_tres>>},
    ConfKey<T>{"MaxTRESPN", of_association<T, tres_limit<&Limits::node_tres>>},
    ConfKey<T>{"MaxWallDurationPerJob", of_association<T, wall_limit<&Limits::job_wall>>},
    ConfKey<T>{"MaxWall", of_association<T, wall_limit<&Limits::job_wall>>},
    ConfKey<T>{"MaxJobs", of_association<T, count_limit<&Limits::user_jobs>>},
    ConfKey<T>{"MaxSubmitJobs", of_association<T, count_limit<&Limits::user_submit>>},
    ConfKey<T>{"MaxSubmit", of_association<T, count_limit<&Limits::user_submit>>},
};

// Returns a table of the keys of `own` and the keys that all associations have. It is made at
// compile time, so the tables of accounts and users are plain arrays like the others.
template <typename T, std::size_t count>
constexpr auto with_association_keys(const std::array<ConfKey<T>, count>& own) {
  constexpr std::size_t kAssociationCount = kAssociationKeys<T>.size();
  std::array<ConfKey<T>, count + kAssociationCount> all{};
  std::copy(own.begin(), own.end(), all.begin());
  std::copy(kAssociationKeys<T>.begin(), kAssociationKeys<T>.end(), all.begin() + count);
  return all;
}

constexpr auto kAccountKeys = with_association_keys(std::array{
    ConfKey<AccountConfig>{"Name", string_key<&AccountConfig::name>},
    ConfKey<AccountConfig>{"Parent", string_key<&AccountConfig::parent>},
    // For people only.
    ConfKey<AccountConfig>{"Description", ignored<AccountConfig>},
    ConfKey<AccountConfig>{"Organization", ignored<AccountConfig>},
});
constexpr auto kUserKeys = with_association_keys(std::array{
    ConfKey<UserConfig>{"Name", string_key<&UserConfig::name>},
    // A user is listed once for each account. The pair is Slurm's association.
    ConfKey<UserConfig>{"Account", string_key<&UserConfig::account>},
});

}  // namespace

// Whether the parent exists, and whether accounts form a tree (9.1), is known only when all of them
// are read; the scheduler checks it then.
base::Result<sched::AccountConfig> read_account_keys(std::span<const KeyValue> keys) {
  AccountConfig account;
  const base::Status status = apply_keys(account, keys, kAccountKeys, "an account");
  if (!status) return status.error();
  if (account.name.empty()) return base::invalid_argument("account: its Name is missing");
  return account;
}

// A user without an Account is left to the caller: in a dump the account stands on a line before.
base::Result<sched::UserConfig> read_user_keys(std::span<const KeyValue> keys) {
  UserConfig user;
  const base::Status status = apply_keys(user, keys, kUserKeys, "a user");
  if (!status) return status.error();
  if (user.name.empty()) return base::invalid_argument("user: its Name is missing");
  return user;
}

}  // namespace slurm
