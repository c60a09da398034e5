// An API server with the kinds of a folder and nothing else, made once in a process: tests and
// simulations make a cluster for each case, and reading the definitions takes longer than most of
// them.
#pragma once

#include <memory>
#include <string>

#include "kube/testing/api_server/api_server.h"

namespace devcluster {

// For ApiServer::restore(). The program ends when a file of `folder` is not what load_crds() takes.
// Thread-safe; the files are read by the first call.
std::shared_ptr<const ApiServer::Backup> empty_cluster(const std::string& folder);

}  // namespace devcluster
