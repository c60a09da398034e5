// The words that a shell offers when the user presses the tab key. kubectl asks a program named
// kubectl_complete-gang, which calls `kubectl-gang __complete WORDS…`; the last word is the one
// that is being typed, perhaps empty. The answer is what cobra's programs print: a line for each
// possibility, "word<tab>description", and ":4" at the end, or ":0" if file names may follow too.
#pragma once

#include <CLI/CLI.hpp>
#include <span>
#include <string>

#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// `app` has all commands; `connect` is what its options write to. Words that only the cluster knows
// (jobs, partitions, namespaces) are asked for and left out when it does not answer within 3 s.
int run_complete(std::span<const std::string> words, CLI::App& app, ConnectOptions& connect,
                 const WithSession& with_session, Output output);

}  // namespace cli
