// Licenses: counters of the cluster (chapter 11). A job holds as many as it asked for from its
// start until its last pod is gone, whichever nodes it has. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace sched {

// How many by name: of the cluster, or of a job, which names none with 0.
using Licenses = std::map<std::string, int, std::less<>>;

// Adds the counts, `by` times.
inline void add_licenses(Licenses& to, const Licenses& counts, int by = 1) {
  for (const auto& [name, count] : counts) to[name] += by * count;
}

// Returns the count of that name; 0 if it is not there.
inline int licenses_of(const Licenses& licenses, const std::string& name) {
  const auto found = licenses.find(name);
  return found == licenses.end() ? 0 : found->second;
}

// Returns "bar:1,foo:2", as Slurm writes it.
inline std::string to_string(const Licenses& licenses) {
  std::string text;
  for (const auto& [name, count] : licenses) {
    text += (text.empty() ? "" : ",") + name + ":" + std::to_string(count);
  }
  return text;
}

}  // namespace sched
