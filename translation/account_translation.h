// Accounts -> the scheduler's tree of accounts and users (9.1). config_acceptance.h judges what
// needs several objects. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/account.h"
#include "scheduler/model/config.h"

namespace control {

// Checks as check_config does.
std::vector<std::string> check_account(const kube::Account& account);

// Translates with the API's defaults for what is absent. REQUIRES: check_account found nothing.
sched::AccountConfig translate_account(const std::string& name, const kube::AccountSpec& spec);

// Translates a namespace that the account lists, as a user in it.
sched::UserConfig translate_namespace(const std::string& account,
                                      const kube::AccountNamespace& entry);

}  // namespace control
