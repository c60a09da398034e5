#include "scheduler/priority/usage.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "scheduler/priority/billing.h"
#include "scheduler/priority/fixed_point.h"

namespace sched {
namespace {

using std::chrono::days;

// Through a double: usage has 63 bits and a double 53, so the last digits of a very large usage are
// lost at a decay. They are far below what any priority shows.
void halve(Used& used, double factor) {
  used.billed = static_cast<std::int64_t>(static_cast<double>(used.billed) * factor);
  used.wall_milli = static_cast<std::int64_t>(static_cast<double>(used.wall_milli) * factor);
}

void add(Used& used, const Used& more) {
  used.billed += more.billed;
  used.wall_milli += more.wall_milli;
}

// 1 = no decay: PriorityDecayHalfLife is 0, or no time has passed.
double decay_over(base::Duration time, base::Duration half_life) {
  if (half_life.count() <= 0 || time.count() <= 0) return 1;
  return half_to_the(static_cast<double>(time.count()) / static_cast<double>(half_life.count()));
}

}  // namespace

// Returns the first instant after t at which usage goes back to 0, at midnight UTC. nullopt if it
// never does.
std::optional<base::Instant> next_reset(UsageReset reset, base::Instant t) {
  const auto today = std::chrono::floor<days>(t);
  const std::chrono::year_month_day date{today};
  const auto first_of = [&](std::chrono::year_month month) {
    return std::chrono::sys_days{month / std::chrono::day{1}};
  };
  const std::chrono::year_month month{date.year(), date.month()};
  switch (reset) {
    case UsageReset::kNever:
      return std::nullopt;
    case UsageReset::kDaily:
      return today + days{1};
    case UsageReset::kWeekly:  // on Sundays
      return today + days{7} - (std::chrono::weekday{today} - std::chrono::Sunday);
    case UsageReset::kMonthly:
      return first_of(month + std::chrono::months{1});
    case UsageReset::kQuarterly: {
      const unsigned into = (static_cast<unsigned>(date.month()) - 1) % 3;
      return first_of(month + std::chrono::months{3 - static_cast<int>(into)});
    }
    case UsageReset::kYearly:
      return first_of((date.year() + std::chrono::years{1}) / std::chrono::January);
  }
  return std::nullopt;
}

// Usage survives a change of the configuration by name: an association that stays keeps what it has
// used, one that goes takes it along, and one that comes back begins with nothing.
void UsageLedger::configure() {
  std::map<std::pair<std::string, std::string>, Used> known;
  std::map<std::string, Used> known_qos;
  // Indexes change with the configuration, names do not.
  for (std::size_t i = 0; i < names_.size(); ++i) known[names_[i]] = associations_[i];
  for (std::size_t i = 0; i < qos_names_.size(); ++i) known_qos[qos_names_[i]] = qos_[i];
  const AccountTree& tree = cluster_.accounts();
  names_.clear();
  associations_.clear();
  for (const Association& association : tree.all()) {
    names_.emplace_back(association.is_user ? tree[*association.parent].name : association.name,
                        association.is_user ? association.name : std::string{});
    // A new name has used nothing.
    associations_.push_back(known[names_.back()]);
  }
  qos_names_.clear();
  qos_.clear();
  for (const QosConfig& qos : cluster_.qos()) {
    qos_names_.push_back(qos.name);
    qos_.push_back(known_qos[qos.name]);
  }
  add_up();
}

// Accounts have used what their users have. Children come after their parents.
void UsageLedger::add_up() {
  const std::vector<Association>& all = cluster_.accounts().all();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].is_user) associations_[i] = Used{};
  }
  for (std::size_t i = all.size(); i-- > 1;) {
    // Backwards, so that an account is complete before it is added to the one above it.
    add(associations_[all[i].parent->index()], associations_[i]);
  }
}

// Returns the billing units, in thousandths, that each second of run time is charged.
std::int64_t UsageLedger::rate_of(const Job& job) const {
  const TresCounts held = held_by(cluster_, job.allocation, *job.partition);
  return billing_milli(cluster_, *job.partition, held);
}

// R9.4. `run` is all run time of the job's present run, so that a charge that is repeated charges
// nothing.
void UsageLedger::charge(Job& job, base::Duration run) {
  // Whole seconds only (R9.4). The rest is charged the next time.
  const auto more = std::chrono::floor<std::chrono::seconds>(run - job.factors.charged);
  if (more.count() <= 0) return;
  job.factors.charged += more;
  const auto qos = cluster_.find_qos(job.request->qos);
  const std::int64_t factor = qos ? cluster_.qos(*qos).usage_factor_milli : 1000;
  // It decays as if all of it had been used when the period began, like what was charged before.
  const double decay = decay_over(more, cluster_.parameters().priority.decay_half_life);
  Used used{.billed = rate_of(job) * factor / 1000 * more.count(),
            .wall_milli = more.count() * factor};
  halve(used, decay);
  if (qos) add(qos_[qos->index()], used);
  if (!job.factors.association) return;
  cluster_.accounts().upwards(*job.factors.association, [&](AssociationIndex index) {
    add(associations_[index.index()], used);
  });
}

// R9.4: everything decays by the time since the last period; a reset that lies in between forgets
// it all. Accounts are added up again from their users instead of decaying by themselves, or
// rounding would make an account differ from the sum of its users.
void UsageLedger::end_period(base::Instant now) {
  const PriorityParameters& parameters = cluster_.parameters().priority;
  // The first reset after the last period: if several have passed since, one is enough.
  const auto reset = next_reset(parameters.usage_reset, as_of_);
  const double factor =
      reset && *reset <= now ? 0 : decay_over(now - as_of_, parameters.decay_half_life);
  as_of_ = now;
  // No decay, no time has passed, or both: rounding through a double would only lose digits.
  if (factor == 1) return;
  for (Used& used : associations_) halve(used, factor);
  for (Used& used : qos_) halve(used, factor);
  add_up();
}

// Users only: accounts are their sums. Zeros are left out, so that the state grows with the
// users that are active and not with those that exist.
UsageState UsageLedger::save(const std::vector<const Job*>& jobs) const {
  UsageState state{.as_of = as_of_, .users = {}, .qos = {}, .jobs = {}};
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (names_[i].second.empty() || associations_[i] == Used{}) continue;
    state.users.push_back({names_[i].first, names_[i].second, associations_[i]});
  }
  for (std::size_t i = 0; i < qos_names_.size(); ++i) {
    if (!(qos_[i] == Used{})) state.qos.push_back({qos_names_[i], qos_[i]});
  }
  for (const Job* job : jobs) {
    state.jobs.push_back({job->id, job->factors.charged});
  }
  return state;
}

// Associations and QOS that no longer exist are left out. Accounts are the sums of their
// users again.
void UsageLedger::restore(const UsageState& state) {
  as_of_ = state.as_of;
  for (const UserUsage& usage : state.users) {
    const auto index = cluster_.accounts().find_user(usage.user, usage.account);
    if (index) associations_[index->index()] = usage.used;
  }
  for (const QosUsage& usage : state.qos) {
    if (const auto index = cluster_.find_qos(usage.qos)) qos_[index->index()] = usage.used;
  }
  add_up();
}

}  // namespace sched
