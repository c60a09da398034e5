// The costs of the agent itself: the real program with its supervisor, on real cgroups, against an
// in-memory API server.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/time.h"

namespace agent::bench {

struct IdleShape {
  std::string name{};
  int pods = 100;
  base::Duration slice{};
  base::Duration span{};  // of the measurement
};

// {"name", "cpu_percent", "rss_kib"}: of one CPU, and of supervisor and worker together.
// `program`: kubegang-agent; `crds`: folder of the CustomResourceDefinitions.
nlohmann::ordered_json measure_idle(const IdleShape& shape, const std::string& program,
                                    const std::string& crds);

}  // namespace agent::bench
