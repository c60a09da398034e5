// Workload models: traces that are drawn at random, as large as one likes and at any load. Nothing
// in them is a log of a machine. Pure: the same options give the same trace.
//
// Jobs arrive by a daily cycle; users' limits are as far from the run times as users' limits are.
#pragma once

#include <cstdint>
#include <string_view>

#include "cli/workload/swf.h"

namespace cli {

struct ModelOptions {
  std::uint64_t seed = 1;
  int jobs_count = 1'000;
  // Run time × processors of all jobs ÷ (processors × time to the last submission).
  double load = 0.8;
};

struct WorkloadModel {
  std::string_view name;  // as files and people call it: "lublin-feitelson"
  int processors = 0;     // of the machine
  SwfTrace (*make)(const ModelOptions& options) = nullptr;
};

// Lublin and Feitelson, "The workload on parallel supercomputers: modeling the characteristics of
// rigid jobs", 2003: fitted to the logs of three machines. 128 processors.
SwfTrace lublin_feitelson_trace(const ModelOptions& options);
// Like the log of the SP2 of the Cornell Theory Center in what is simple about it: 338 processors,
// jobs of at most 18 hours, run times that are log-uniform (Downey, "A parallel workload model and
// its implications for processor allocation", 1997), a third of the jobs serial.
SwfTrace ctc_like_trace(const ModelOptions& options);

inline constexpr WorkloadModel kLublinFeitelson{"lublin-feitelson", 128, lublin_feitelson_trace};
inline constexpr WorkloadModel kCtcLike{"ctc-like", 338, ctc_like_trace};

}  // namespace cli
