// The nodes (KWOK's) and the objects that everything is measured on.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "e2e/kubernetes/bench/bench_api.h"

namespace kubernetes_bench {

// All nodes; whether two gangs may share its cores: allow_turns().
inline constexpr const char* kPartition = "bench";
// One node, one job at a time: the second job waits.
inline constexpr const char* kNarrowPartition = "narrow";
// A namespace for each of what is measured.
inline constexpr const char* kGang = "gang";
inline constexpr const char* kTurns = "turns";
inline constexpr const char* kLimit = "limit";
inline constexpr const char* kLimitJobs = "limit-jobs";
inline constexpr const char* kBatch = "batch";
inline constexpr const char* kAdopted = "adopted";
inline constexpr const char* kClaim = "claim";

base::Status make_nodes(BenchApi& api, int count);
base::Status make_namespaces(BenchApi& api);
// Partitions and the configuration.
base::Status make_objects(BenchApi& api, int nodes_count);
// Two gangs may take turns on each core of kPartition (Force), or none may.
base::Status allow_turns(BenchApi& api, bool allowed);

// Returns a pod's container; without requests: null.
nlohmann::json container(const nlohmann::json& requests);
// Returns a kubegang Job; `spec` is merged into it.
nlohmann::json gang_job(const std::string& ns, const std::string& name, const nlohmann::json& spec);

}  // namespace kubernetes_bench
