#include "kube/testing/api_server/empty_cluster.h"

#include <map>
#include <mutex>

#include "base/check.h"
#include "kube/testing/manual_clock.h"

namespace devcluster {

// The lock is held while the files are read: a second caller waits for the first one's cluster
// instead of making its own. The objects of a backup are immutable and shared, so a restore copies
// pointers and not objects.
std::shared_ptr<const ApiServer::Backup> empty_cluster(const std::string& folder) {
  static std::mutex mu;
  static std::map<std::string, std::shared_ptr<const ApiServer::Backup>> backups;
  const std::scoped_lock lock{mu};
  auto& backup = backups[folder];
  if (!backup) {
    const kube::ManualClock clock;
    ApiServer server{clock};
    const base::Status loaded = server.load_crds(folder);
    CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().message);
    backup = server.back_up();
  }
  return backup;
}

}  // namespace devcluster
