// Accounts: the tree in which shares are divided and limits are inherited (9.1), and the users in
// it. An *association* is an account, or a user in an account. The root account is always there and
// has no entry of its own unless it has limits.
#pragma once

#include <cstdint>
#include <string>

#include "scheduler/model/limits.h"

namespace sched {

inline constexpr const char* kRootAccount = "root";

// sacctmgr's Fairshare of an association.
struct Shares {
  std::int64_t count = 1;
  bool of_parent = false;  // Fairshare=parent: counts as if it were its parent
  friend bool operator==(const Shares&, const Shares&) = default;
};

struct AccountConfig {
  std::string name;
  std::string parent;  // empty = root
  Shares shares;
  std::uint32_t priority = 0;  // a term of multifactor priorities
  Limits limits;
  friend bool operator==(const AccountConfig&, const AccountConfig&) = default;
};

// A user may be in several accounts; the first of them in the configuration is the default of its
// jobs.
struct UserConfig {
  std::string name;
  std::string account;  // empty = root
  Shares shares;
  std::uint32_t priority = 0;
  Limits limits;
  friend bool operator==(const UserConfig&, const UserConfig&) = default;
};

}  // namespace sched
