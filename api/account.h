// Account: a group of namespaces in the tree in which shares of the cluster are divided and limits
// are inherited. Slurm's accounts and associations (sacctmgr), with namespaces in the place of
// users. SOURCE: api.md "Account".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/limits.h"
#include "kube/api/meta.h"

namespace kube {

// An account may have this name for limits of the whole cluster; every other one is below it.
inline constexpr std::string_view kRootAccount = "root";

// Limits of an account and of all accounts below it; absent = no limit of its own.
struct AccountLimits {
  std::optional<GroupLimits> group{};
  std::optional<JobLimits> per_job{};
  std::optional<JobCountLimits> per_namespace{};

  friend bool operator==(const AccountLimits&, const AccountLimits&) = default;
};

// The user that the pods of a namespace run as, where they get the podDefaults of their partition.
// Only administrators write accounts, so no user chooses whose files these pods may read.
struct PodIdentity {
  std::string user{};  // a name: USER, LOGNAME, SLURM_JOB_USER
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::vector<std::int64_t> groups{};  // beside gid
  std::string home{};                  // HOME

  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
};

// A namespace whose jobs may be of the account: Slurm's user in an account.
struct AccountNamespace {
  std::string name{};
  std::optional<bool> is_default{};  // "default"
  std::optional<std::int32_t> shares{};
  std::optional<bool> shares_of_account{};  // Fairshare=parent
  std::optional<std::int64_t> priority{};
  std::optional<AccountLimits> limits{};
  std::optional<PodIdentity> identity{};

  friend bool operator==(const AccountNamespace&, const AccountNamespace&) = default;
};

// Absent fields have the operator's defaults: one share, no limits.
struct AccountSpec {
  std::optional<std::string> parent{};  // absent = root
  std::optional<std::int32_t> shares{};
  std::optional<bool> shares_of_parent{};  // Fairshare=parent
  std::optional<std::int64_t> priority{};
  std::optional<AccountLimits> limits{};
  std::vector<AccountNamespace> namespaces{};

  friend bool operator==(const AccountSpec&, const AccountSpec&) = default;
};

struct AccountStatus {
  std::optional<std::int64_t> observed_generation{};  // newest spec that was judged
  std::optional<AccountSpec> accepted{};              // the last legal spec
  Conditions conditions{};                            // Accepted

  friend bool operator==(const AccountStatus&, const AccountStatus&) = default;
};

struct Account {
  static constexpr ResourceInfo kResource{kGroup, kGroupVersion, "accounts", "Account", false};

  ObjectMeta metadata{};
  AccountSpec spec{};
  AccountStatus status{};

  friend bool operator==(const Account&, const Account&) = default;
};

template <>
base::Result<Account> decode<Account>(const JsonView& object);
template <>
const KnownFields& known_fields<Account>();
nlohmann::json encode(const Account& account);

}  // namespace kube
