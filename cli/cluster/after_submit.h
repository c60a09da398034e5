// The steps after a submission: the operator's answer, and with --wait the job's end.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/job.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// The program that speaks, before a sentence of these functions: "kubectl-gang submit", "sbatch".
using Speaker = std::string_view;
inline constexpr Speaker kSubmitSpeaker = "kubectl-gang submit";

// True: the server cannot be asked now, and the same question may be answered later. Everything
// else is an answer, such as "forbidden" or "not found", and waiting would not change it.
bool is_outage(const base::Error& error);

// Waits until the operator has given the job its number and looked for nodes, at most 60 s. Returns
// the job as it is then; without a number if no operator answered. kInvalidArgument: the operator
// refused it, or no nodes can ever hold it; the message is the operator's, and the job is deleted.
// An API server that is away is reported once and waited for.
base::Result<kube::Job> wait_for_number(const Session& session, const kube::Job& submitted,
                                        Output output, Speaker speaker = kSubmitSpeaker);

// Waits for a number, too, and deletes a job that has none by then (kUnavailable).
base::Result<kube::Job> number_or_take_back(const Session& session, const kube::Job& submitted,
                                            Output output, Speaker speaker = kSubmitSpeaker);

// Deletes the job that was submitted, and no other of its name.
base::Status take_back(const Session& session, const kube::Job& submitted);

// Waits for the job's end and returns its exit code. Reports an API server that is away, too.
base::Result<int> wait_for_end(const Session& session, const kube::Job& submitted, Output output);

// Checks what a server dry run does not: that the partitions, the QOS and the account that the job
// names are there.
base::Status check_names(const Session& session, const kube::Job& job);

// Returns comments of YAML: the spec of the job's template with what each of its partitions adds to
// the pods (podDefaults). "" if none adds anything. kInvalidArgument: the sentence with which the
// job would be refused; others: partitions and accounts cannot be read.
base::Result<std::string> pod_defaults_comments(const Session& session, const kube::Job& job);

}  // namespace cli
