// scontrol about the job of this pod, which needs no API server. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "launcher/process.h"

namespace launcher {

// Returns true if the word names the job of this environment: its number, or ARRAY_TASK.
bool is_own_job(const Environment& environment, const std::string& word);

// Returns the record that `scontrol [-o] show job ID` prints, in scontrol's order: the fields that
// the job's variables tell. nullopt: the words ask for something else, or for another job.
std::optional<std::string> show_own_job(const Environment& environment,
                                        std::span<const std::string> words);

}  // namespace launcher
