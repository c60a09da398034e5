#include "operator/publish/usage_keeper.h"

#include <algorithm>
#include <chrono>

#include "translation/usage_translation.h"

namespace control {
namespace {

// About as large as it is as JSON.
std::int64_t bytes_of(const kube::UsageRecordSpec& record) {
  constexpr std::size_t kBytesPerNamespace = 120;
  constexpr std::size_t kBytesPerQos = 80;
  return static_cast<std::int64_t>(record.jobs.size() +
                                   record.namespaces.size() * kBytesPerNamespace +
                                   record.qos.size() * kBytesPerQos);
}

}  // namespace

void UsageKeeper::observe(const kube::UsageRecord* object) {
  if (object == nullptr) {
    mirror_.saw_gone();
  } else {
    (void)mirror_.saw(*object);
  }
}

void UsageKeeper::take(base::Instant now, const sched::Scheduler& scheduler,
                       const IsStored& is_stored) {
  sched::UsageState usage = scheduler.usage();
  // An ended job whose status is stored tells its own run time; until then the record must.
  std::erase_if(ended_, [&](const auto& each) { return is_stored(each.first); });
  // A job that has nodes again is listed for its present run.
  for (const sched::JobCharged& job : usage.jobs) ended_.erase(job.job);
  for (const auto& [job, charged] : ended_) usage.jobs.push_back({job, charged});
  mirror_.change(WriteUrgency::kUrgent) = encode_usage(usage, now);
  has_news_ = false;
  rests_until_ =
      // A large record is written less often, so that its bytes per second stay bounded.
      now + std::max<base::Duration>(
                kRest, std::chrono::seconds{bytes_of(mirror_.wanted()) / kBytesPerSecond});
  period_began_ = usage.as_of;
}

// 1. Whether there is something new. 2. Whether the record has rested. 3. Whether it may be
// written.
std::optional<PutUsage> UsageKeeper::due(base::Instant now, sched::Scheduler& scheduler,
                                         const IsStored& is_stored) {
  // 1. is there something new?
  for (const sched::JobCharged& job : scheduler.take_charged_ends()) {
    ended_[job.job] = job.run;
    has_news_ = true;
  }
  const base::Instant period_began = scheduler.usage_as_of();
  if (period_began == base::Instant{}) return std::nullopt;
  has_news_ = has_news_ || period_began != period_began_;
  // 2. has the record rested?
  if (has_news_ && now >= rests_until_) take(now, scheduler, is_stored);
  if (mirror_.urgency() == WriteUrgency::kClean || !mirror_.may_write(now)) return std::nullopt;
  // 3. it may be written
  kube::UsageRecord object;
  object.metadata.name = std::string{kube::kUsageRecordName};
  object.spec = mirror_.wanted();
  mirror_.begin(now);
  return PutUsage{std::move(object), mirror_.exists(), mirror_.exists() ? mirror_.version() : ""};
}

WriteEnd UsageKeeper::answered(const UsagePut& outcome, base::Instant now) {
  return mirror_.answered(outcome.result, outcome.fresh, now);
}

base::Instant UsageKeeper::next_due() const {
  base::Instant due = has_news_ ? rests_until_ : base::kNever;
  if (mirror_.urgency() != WriteUrgency::kClean) due = std::min(due, mirror_.due());
  return due;
}

}  // namespace control
