// The processors of this machine, as the kernel lists them.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/node_timetable.h"
#include "base/result.h"

namespace agent {

// Reads `directory` (/sys/devices/system/cpu): `online`, and of each online CPU its package and
// core. Where packages have different numbers of cores the smallest counts, so nothing is promised
// that is not there. `cpu_ids` names the CPUs that count in the order package, core, thread: core
// number c of the node, counted so, has the CPUs c * threads_per_core and following of that list.
// kNotFound or kInvalidArgument: the directory is not what it should be.
// SOURCE: kernel Documentation/admin-guide/cputopology.rst.
base::Result<kube::NodeTopology> read_topology(const std::string& directory);

// The topology as of now: CPUs come and go (hot-plug). One thread.
class TopologyWatch {
 public:
  explicit TopologyWatch(std::string directory) : directory_{std::move(directory)} {}

  // Reads it again if other CPUs are online than at the last call. nullopt: it cannot be read, see
  // error(). Cost: one read of a file if nothing changed.
  std::optional<kube::NodeTopology> read();
  // Returns the CPUs that were online at the last read(), as the kernel lists them; "" = not known.
  // Unlike `cpu_ids` it names all of them: if one thread of one core is offline, a second thread
  // counts of no core, and all of them go on working.
  std::string online() const { return online_.value_or(""); }
  // Why the last read() returned nothing; "" = it did not.
  const std::string& error() const { return error_; }

 private:
  const std::string directory_;
  std::optional<std::string> online_;  // as of the last read()
  std::optional<kube::NodeTopology> topology_;
  std::string error_;
};

}  // namespace agent
