#include "translation/account_translation.h"

#include <cstdint>
#include <set>

#include "translation/limits_translation.h"
#include "translation/spec_problems.h"

namespace control {
namespace {

constexpr std::int64_t kSharesMax = 1'000'000;
// The largest 32-bit number that has no meaning of its own in Slurm: the two above are NO_VAL and
// INFINITE.
constexpr std::int64_t kAssociationPriorityMax = 4'294'967'293;

// Without a number an account has one share, as in Slurm. `of_parent` is Slurm's fairshare=parent:
// the account has no share of its own and counts with its parent.
sched::Shares shares_of(const std::optional<std::int32_t>& count,
                        const std::optional<bool>& of_parent) {
  return {.count = count.value_or(1), .of_parent = of_parent.value_or(false)};
}

// `field` ends with a dot.
void check_shares(const std::string& field, const std::optional<std::int32_t>& count,
                  const std::optional<bool>& of_parent, const char* other, SpecProblems& problems) {
  problems.range(field + "shares", count, 0, kSharesMax);
  if (!count || !of_parent.value_or(false)) return;
  problems.add(field + "shares: excludes " + other + "; remove one of the two");
}

// Root's numbers would give users every file of the volumes.
void check_identity(const std::string& field, const std::optional<kube::PodIdentity>& identity,
                    SpecProblems& problems) {
  constexpr std::int64_t kNumberMax = 2'147'483'647;
  if (!identity) return;
  problems.range(field + "uid", std::optional{identity->uid}, 1, kNumberMax);
  problems.range(field + "gid", std::optional{identity->gid}, 1, kNumberMax);
  for (const std::int64_t group : identity->groups) {
    problems.range(field + "groups", std::optional{group}, 1, kNumberMax);
  }
  if (!identity->home.empty() && !identity->home.starts_with('/')) {
    problems.add(field + "home: \"" + identity->home + "\" must begin with /");
  }
}

// An object of this name is allowed, for limits that hold for the whole cluster.
void check_root(const kube::AccountSpec& spec, SpecProblems& problems) {
  if (spec.parent || spec.shares || spec.shares_of_parent || spec.priority) {
    problems.add(
        "metadata.name: account root is above all others and has neither parent nor shares nor "
        "priority; remove them, or choose another name");
  }
}

}  // namespace

// Returns all that is wrong with the object by itself, each with the path of its field. A parent
// that does not exist, a circle and a second default account show only beside the other accounts
// (config_acceptance.cc).
std::vector<std::string> check_account(const kube::Account& account) {
  SpecProblems problems;
  const kube::AccountSpec& spec = account.spec;
  problems.name(account.metadata.name);
  if (account.metadata.name == kube::kRootAccount) check_root(spec, problems);
  if (spec.parent == account.metadata.name) {
    problems.add("spec.parent: \"" + *spec.parent +
                 "\" is this account itself; name another one, or leave it out for root");
  }
  check_shares("spec.", spec.shares, spec.shares_of_parent, "sharesOfParent", problems);
  problems.range("spec.priority", spec.priority, 0, kAssociationPriorityMax);
  check_limits("spec.limits", spec.limits, problems);
  // A namespace that is listed twice would have two shares and two sets of limits in one account.
  std::set<std::string> seen;
  for (std::size_t i = 0; i < spec.namespaces.size(); ++i) {
    const kube::AccountNamespace& each = spec.namespaces[i];
    const std::string field = "spec.namespaces[" + std::to_string(i) + "].";
    if (each.name.empty()) problems.add(field + "name: is empty; name a namespace");
    if (!seen.insert(each.name).second) {
      problems.add(field + "name: \"" + each.name + "\" is listed twice; list it once");
    }
    check_shares(field, each.shares, each.shares_of_account, "sharesOfAccount", problems);
    problems.range(field + "priority", each.priority, 0, kAssociationPriorityMax);
    check_limits(field + "limits", each.limits, problems);
    check_identity(field + "identity.", each.identity, problems);
  }
  return problems.take();
}

sched::AccountConfig translate_account(const std::string& name, const kube::AccountSpec& spec) {
  return {.name = name,
          .parent = spec.parent.value_or(""),
          .shares = shares_of(spec.shares, spec.shares_of_parent),
          .priority = static_cast<std::uint32_t>(spec.priority.value_or(0)),
          .limits = translate(spec.limits)};
}

// One account may list many namespaces, and a namespace may be in several accounts: each pair is an
// association of Slurm's, with shares, priority and limits of its own.
// A namespace is a user of Slurm's.
sched::UserConfig translate_namespace(const std::string& account,
                                      const kube::AccountNamespace& entry) {
  return {.name = entry.name,
          .account = account,
          .shares = shares_of(entry.shares, entry.shares_of_account),
          .priority = static_cast<std::uint32_t>(entry.priority.value_or(0)),
          .limits = translate(entry.limits)};
}

}  // namespace control
