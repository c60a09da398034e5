// The scheduler's usage -> UsageRecord and back. Pure.
#pragma once

#include "api/usage_record.h"
#include "base/time.h"
#include "scheduler/priority/usage_state.h"

namespace control {

kube::UsageRecordSpec encode_usage(const sched::UsageState& usage, base::Instant taken_at);
// Reads a list of jobs up to the first that cannot be read.
sched::UsageState decode_usage(const kube::UsageRecordSpec& record);

}  // namespace control
