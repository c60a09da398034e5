// Reading objects for commands: an object that does not decode is told on stderr and left out.
#pragma once

#include <string>
#include <vector>

#include "cli/cluster/job_time.h"
#include "cli/cluster/session.h"
#include "cli/program.h"

namespace cli {

// All objects of a kind; ns "" = all namespaces (or the kind has none).
template <kube::ApiObject T>
base::Result<std::vector<T>> list_all(const Session& session, const std::string& ns,
                                      Output output) {
  base::Result<kube::ObjectList<T>> list = session.client.list<T>({.ns = ns});
  if (!list) return list.error();
  for (const kube::Undecodable& broken : list->undecodable) {
    output.err << "kubectl-gang: left out: " << broken.error.message << "\n";
  }
  return std::move(list->items);
}

base::Result<Timetables> read_timetables(const Session& session, Output output);

// A job by its name, or by its number (status.jobID) in the session's namespace. kNotFound: no such
// job.
base::Result<kube::Job> find_job(const Session& session, const std::string& name_or_number,
                                 Output output);

}  // namespace cli
