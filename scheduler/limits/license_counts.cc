#include "scheduler/limits/license_counts.h"

#include <algorithm>

namespace sched {

LicenseCounts::LicenseCounts(const Cluster& cluster, JobBooks& books)
    : cluster_{cluster}, books_{books} {
  books.on_begin([this](const Job& job) { add_licenses(in_use_, job.request->licenses); });
  books.on_end([this](const Job& job) { add_licenses(in_use_, job.request->licenses, -1); });
}

// Licenses that others hold come back, so only what the cluster has in all counts (R11.6).
std::optional<std::string> LicenseCounts::refused_at_submit(const JobRequest& request) const {
  const Licenses& there = cluster_.parameters().licenses;
  for (const auto& [name, count] : request.licenses) {
    if (!there.contains(name)) {
      const std::string all = to_string(there);
      return "invalid license specification: the cluster has no license " + name +
             (all.empty() ? "; it has none" : "; it has " + all);
    }
    if (count > total(name)) {
      return "invalid license specification: asks for " + std::to_string(count) + " of license " +
             name + ", and the cluster has " + std::to_string(total(name));
    }
  }
  return std::nullopt;
}

// Counts for jobs that wait for the ends of their victims: these leave what they have to them.
LicenseCounts::Promised LicenseCounts::promised(const Job& job, const std::string& name) const {
  Promised promised;
  if (!cluster_.parameters().preempt.reclaim_licenses) return promised;
  const auto waits = [&](JobId id) {
    return id != job.id && books_.claimants().contains(id) && books_.find(id)->pending();
  };
  for (const JobId id : books_.claimants()) {
    if (waits(id)) promised.kept += licenses_of(books_.find(id)->request->licenses, name);
  }
  if (promised.kept == 0) return promised;
  for (const auto& [order, victim] : books_.allocated()) {
    if (!victim->ending || !victim->ending->preemptor) continue;
    if (waits(*victim->ending->preemptor)) {
      promised.coming_back += licenses_of(victim->request->licenses, name);
    }
  }
  return promised;
}

// Returns the licenses that are missing now, or once jobs that wait for their victims have got
// their licenses.
Licenses LicenseCounts::missing(const Job& job) const {
  Licenses missing;
  for (const auto& [name, count] : job.request->licenses) {
    const int wanted = licenses_of(in_use_, name) + count - total(name);
    const Promised by_others = promised(job, name);
    const int over = wanted + std::max(0, by_others.kept - by_others.coming_back);
    if (over > 0) missing[name] = over;
  }
  return missing;
}

// A counter that an administrator has lowered below what a waiting job asks for holds it back like
// one that is in use, as in Slurm: it may be raised again.
std::optional<LimitHit> LicenseCounts::over(const Job& job) const {
  if (job.request->licenses.empty()) return std::nullopt;
  const Licenses lacks = missing(job);
  if (lacks.empty()) return std::nullopt;
  const std::string& name = lacks.begin()->first;
  const int asked = licenses_of(job.request->licenses, name);
  std::string text = "needs " + std::to_string(asked) + " of license " + name + "; ";
  if (asked > total(name)) {
    text += "the cluster has " + std::to_string(total(name)) + ", too few for it at any time";
  } else {
    const int free = std::max(0, total(name) - licenses_of(in_use_, name));
    text += std::to_string(free) + " of " + std::to_string(total(name)) + " are free";
    if (asked <= free) text += ", kept for a job that preempts others";
  }
  return LimitHit{Reason::kLicenses, std::move(text)};
}

std::string LicenseCounts::check_invariants() const {
  Licenses held;
  for (const auto& [order, job] : books_.allocated()) add_licenses(held, job->request->licenses);
  for (const auto& [name, count] : in_use_) {
    if (count != licenses_of(held, name)) return "license " + name + ": count";
  }
  for (const auto& [name, count] : held) {
    if (count != licenses_of(in_use_, name)) return "license " + name + ": not counted";
  }
  return {};
}

}  // namespace sched
