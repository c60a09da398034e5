// SchedulerConfig's group `priority` -> the scheduler's (chapter 9). Pure.
#pragma once

#include "api/scheduler_config.h"
#include "scheduler/model/config.h"
#include "translation/spec_problems.h"

namespace control {

void check_priority(const std::optional<kube::PriorityConfig>& priority, SpecProblems& problems);

// Translates with the API's defaults for what is absent. REQUIRES: check_priority found nothing.
sched::PriorityParameters translate_priority(const std::optional<kube::PriorityConfig>& priority);

}  // namespace control
