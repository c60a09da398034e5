// Forecasts: Jobs with spec.testOnly, which ask when and where they would start. They are judged
// like any other, but the scheduler never hears of them: a copy of its state goes on in virtual
// time on another thread (MakeForecast), and the answer is their status. A minute later they are
// deleted (TimeToLive).
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"
#include "operator/jobs/job_numbers.h"
#include "operator/jobs/job_parts.h"
#include "operator/jobs/time_to_live.h"
#include "operator/loop/scheduler_driver.h"
#include "operator/write/effect.h"

namespace control {

// Belongs to the loop's thread. Remembers only the jobs that have no answer yet. One question is
// under way at a time, so there is one copy of the state.
class Forecasts {
 public:
  Forecasts(const JobParts& parts, const SchedulerDriver& scheduler, const JobNumbers& numbers,
            TimeToLive& time_to_live)
      : parts_{parts}, scheduler_{scheduler}, numbers_{numbers}, time_to_live_{time_to_live} {}

  // Returns true if the job is one that asks, as its spec was at first. One that has been submitted
  // is none, whatever its spec says by now.
  static bool is_question(const JobRecord& job) {
    return job.basis().test_only.value_or(false) && !job.wishes->submitted && !job.wanted().state;
  }

  // Takes a question that is new, or has its answer. REQUIRES: is_question.
  void heed(JobRecord& job);
  // Forgets a job whose object is gone.
  void forget_job(const std::string& uid);

  // Returns the next question, if the last one is answered. Cost: O(jobs + nodes),
  // twenty times a second at most. Illegal questions are answered at once.
  std::optional<MakeForecast> due();
  void answered(ForecastMade&& outcome);
  base::Instant next_due() const;

 private:
  std::optional<MakeForecast> question(JobRecord& job);
  void answer(JobRecord& job, kube::JobForecast forecast);

  const JobParts parts_;
  const SchedulerDriver& scheduler_;
  const JobNumbers& numbers_;
  TimeToLive& time_to_live_;
  std::deque<std::string> line_;  // UIDs; of those that are gone, too
  std::set<std::string> waiting_;
  bool is_under_way_ = false;
  base::Instant rests_until_{};
};

}  // namespace control
