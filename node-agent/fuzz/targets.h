// The targets of the fuzzers: each reader of the agent that is given text from outside, with what
// must hold whatever the text is. A broken promise aborts.
#pragma once

#include <string_view>

namespace agent {

// A NodeTimetable as JSON: refused with a sentence, or a complete function of time.
void fuzz_timetable(std::string_view text);

// Lines: a pod's UID, kubelet's cgroup root, a path of a cgroup. Nothing outside of the root is
// ever opened, and nothing that does not name the UID.
void fuzz_pod_path(std::string_view text);

// A journal, whole or damaged.
void fuzz_journal(std::string_view text);

}  // namespace agent
