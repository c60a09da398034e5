// Accounts and users, as sacctmgr has them (9.1).
#include "slurm/conf.h"
#include "slurm/conf_actions.h"
#include "slurm/limit_actions.h"
#include "slurm/limits.h"

namespace slurm {
namespace {

using sched::AccountConfig;
using sched::Limits;
using sched::UserConfig;

template <typename T>
base::Status shares(T& t, std::string_view key, std::string_view value) {
  t.shares = {};
  if (same_word(value, "parent")) {
    t.shares.of_parent = true;
    return {};
  }
  return set_integer(t.shares.count, key, value, {.min = 0, .max = kUint32Max});
}

template <typename T>
base::Status priority(T& t, std::string_view key, std::string_view value) {
  return set_integer(t.priority, key, value, {.min = 0, .max = kUint32Max});
}

template <typename T, auto action>
base::Status of_association(T& t, std::string_view key, std::string_view value) {
  return action(t.limits, key, value);
}

constexpr std::array kAccountKeys = {
    ConfKey<AccountConfig>{"Name", string_key<&AccountConfig::name>},
    ConfKey<AccountConfig>{"Parent", string_key<&AccountConfig::parent>},
    ConfKey<AccountConfig>{"Fairshare", shares<AccountConfig>},
    ConfKey<AccountConfig>{"Share", shares<AccountConfig>},
    ConfKey<AccountConfig>{"Priority", priority<AccountConfig>},
    ConfKey<AccountConfig>{"Description", ignored<AccountConfig>},
    ConfKey<AccountConfig>{"Organization", ignored<AccountConfig>},
    ConfKey<AccountConfig>{"GrpTRES",
                           of_association<AccountConfig, tres_limit<&Limits::group_tres>>},
    ConfKey<AccountConfig>{"GrpJobs",
                           of_association<AccountConfig, count_limit<&Limits::group_jobs>>},
    ConfKey<AccountConfig>{"GrpSubmitJobs",
                           of_association<AccountConfig, count_limit<&Limits::group_submit>>},
    ConfKey<AccountConfig>{"GrpSubmit",
                           of_association<AccountConfig, count_limit<&Limits::group_submit>>},
    ConfKey<AccountConfig>{"GrpWall",
                           of_association<AccountConfig, wall_limit<&Limits::group_wall>>},
    ConfKey<AccountConfig>{"MaxTRESPerJob",
                           of_association<AccountConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<AccountConfig>{"MaxTRES", of_association<AccountConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<AccountConfig>{"MaxTRESPJ",
                           of_association<AccountConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<AccountConfig>{"MaxTRESPerNode",
                           of_association<AccountConfig, tres_limit<&Limits::node_tres>>},
    ConfKey<AccountConfig>{"MaxTRESPN",
                           of_association<AccountConfig, tres_limit<&Limits::node_tres>>},
    ConfKey<AccountConfig>{"MaxWallDurationPerJob",
                           of_association<AccountConfig, wall_limit<&Limits::job_wall>>},
    ConfKey<AccountConfig>{"MaxWall", of_association<AccountConfig, wall_limit<&Limits::job_wall>>},
    ConfKey<AccountConfig>{"MaxJobs",
                           of_association<AccountConfig, count_limit<&Limits::user_jobs>>},
    ConfKey<AccountConfig>{"MaxSubmitJobs",
                           of_association<AccountConfig, count_limit<&Limits::user_submit>>},
    ConfKey<AccountConfig>{"MaxSubmit",
                           of_association<AccountConfig, count_limit<&Limits::user_submit>>},
};
constexpr std::array kUserKeys = {
    ConfKey<UserConfig>{"Name", string_key<&UserConfig::name>},
    ConfKey<UserConfig>{"Account", string_key<&UserConfig::account>},
    ConfKey<UserConfig>{"Fairshare", shares<UserConfig>},
    ConfKey<UserConfig>{"Share", shares<UserConfig>},
    ConfKey<UserConfig>{"Priority", priority<UserConfig>},
    ConfKey<UserConfig>{"GrpTRES", of_association<UserConfig, tres_limit<&Limits::group_tres>>},
    ConfKey<UserConfig>{"GrpJobs", of_association<UserConfig, count_limit<&Limits::group_jobs>>},
    ConfKey<UserConfig>{"GrpSubmitJobs",
                        of_association<UserConfig, count_limit<&Limits::group_submit>>},
    ConfKey<UserConfig>{"GrpSubmit",
                        of_association<UserConfig, count_limit<&Limits::group_submit>>},
    ConfKey<UserConfig>{"GrpWall", of_association<UserConfig, wall_limit<&Limits::group_wall>>},
    ConfKey<UserConfig>{"MaxTRESPerJob", of_association<UserConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<UserConfig>{"MaxTRES", of_association<UserConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<UserConfig>{"MaxTRESPJ", of_association<UserConfig, tres_limit<&Limits::job_tres>>},
    ConfKey<UserConfig>{"MaxTRESPerNode",
                        of_association<UserConfig, tres_limit<&Limits::node_tres>>},
    ConfKey<UserConfig>{"MaxTRESPN", of_association<UserConfig, tres_limit<&Limits::node_tres>>},
    ConfKey<UserConfig>{"MaxWallDurationPerJob",
                        of_association<UserConfig, wall_limit<&Limits::job_wall>>},
    ConfKey<UserConfig>{"MaxWall", of_association<UserConfig, wall_limit<&Limits::job_wall>>},
    ConfKey<UserConfig>{"MaxJobs", of_association<UserConfig, count_limit<&Limits::user_jobs>>},
    ConfKey<UserConfig>{"MaxSubmitJobs",
                        of_association<UserConfig, count_limit<&Limits::user_submit>>},
    ConfKey<UserConfig>{"MaxSubmit", of_association<UserConfig, count_limit<&Limits::user_submit>>},
};

}  // namespace

base::Result<sched::AccountConfig> read_account_keys(std::span<const KeyValue> keys) {
  AccountConfig account;
  const base::Status status = apply_keys(account, keys, kAccountKeys, "an account");
  if (!status) return status.error();
  if (account.name.empty()) return base::invalid_argument("account: its Name is missing");
  return account;
}

base::Result<sched::UserConfig> read_user_keys(std::span<const KeyValue> keys) {
  UserConfig user;
  const base::Status status = apply_keys(user, keys, kUserKeys, "a user");
  if (!status) return status.error();
  if (user.name.empty()) return base::invalid_argument("user: its Name is missing");
  return user;
}

}  // namespace slurm
