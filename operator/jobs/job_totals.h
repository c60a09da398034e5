// Totals of jobs since the process began, for administrators: how long they waited
// and ran, who was preempted, what that cost. Names of jobs are in none of it, so the number of
// series is bounded by what administrators have configured.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "operator/jobs/job_record.h"
#include "operator/loop/counters.h"
#include "scheduler/decision.h"

namespace control {

// From a minute to a week: what people mean by a short and by a long wait.
inline constexpr std::array<double, 11> kWaitBounds = {1,     10,    60,    300,    900,   3600,
                                                       10800, 43200, 86400, 259200, 604800};
using WaitTimes = Observed<kWaitBounds>;

class JobTotals {
 public:
  // The partition that a job runs in, and the QOS that it asks for, "" = none.
  struct Series {
    std::string partition, qos;
    friend auto operator<=>(const Series&, const Series&) = default;
  };

  // Called with the wanted status as the decision has left it.
  void started(const JobRecord& job, base::Instant now);
  // Called with the wanted status before the decision changes it; a turn of the rotation is none.
  void suspended(sched::Reason cause);
  // Likewise.
  void ending(const JobRecord& job, const sched::End& end);
  // Likewise, of a job that has nodes or had none. ACCOUNT is one that is configured, or "".
  void changed(const JobRecord& job, const sched::StateChange& change, const std::string& account);

  // Raised by each change of the rest.
  std::int64_t version() const { return version_; }

  // From when a job may start, or its submission, to its first start.
  const std::map<Series, WaitTimes>& waits() const { return waits_; }
  // Returns the time of each run that has ended, without the time that it was suspended.
  const std::map<Series, WaitTimes>& runs() const { return runs_; }
  // By state: "Completed", "Failed", …
  const std::map<std::string, std::int64_t>& ends() const { return ends_; }
  // By what becomes of the victim: "suspend", "requeue", "cancel".
  const std::map<std::string, std::int64_t>& preemptions() const { return preemptions_; }
  // By cause: "preemption", "user", "node", "pod".
  const std::map<std::string, std::int64_t>& requeues() const { return requeues_; }
  // Returns the time that victims had run before they were requeued or canceled.
  double preempted_cpu_seconds() const { return preempted_cpu_seconds_; }
  // Time of runs that have ended, by the account that the job asks for, "" = none.
  const std::map<std::string, double>& account_cpu_seconds() const { return account_cpu_seconds_; }

 private:
  std::int64_t version_ = 0;
  std::map<Series, WaitTimes> waits_;
  std::map<Series, WaitTimes> runs_;
  std::map<std::string, std::int64_t> ends_;
  std::map<std::string, std::int64_t> preemptions_;
  std::map<std::string, std::int64_t> requeues_;
  double preempted_cpu_seconds_ = 0;
  std::map<std::string, double> account_cpu_seconds_;
};

}  // namespace control
