// The scheduler's usage -> UsageRecord and back. Pure.
#pragma once

#include "api/usage_record.h"
#include "base/time.h"
#include "scheduler/priority/usage_state.h"

namespace control {

kube::UsageRecordSpec encode_usage(const sched::UsageState& usage, base::Instant taken_at);
// A list of jobs that cannot be read ends where it cannot.
sched::UsageState decode_usage(const kube::UsageRecordSpec& record);

}  // namespace control
