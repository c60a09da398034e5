// `kubectl gang dashboard`: the page on 127.0.0.1, with the rights of the user who runs it; or,
// with
// --shared, the page of a cluster for all its users, each with an own token.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/page_feed.h"
#include "cli/cluster/page_readers.h"
#include "cli/cluster/session.h"
#include "cli/program.h"
#include "dashboard/board.h"
#include "dashboard/page_server.h"
#include "kube/run_loop.h"

namespace cli {

struct DashboardOptions {
  int port = 0;  // 0 = any free one
  bool all_namespaces = false;
  bool shared = false;
  std::vector<std::string> hosts;  // of the shared page
};

// Returns what the page shows of one job: what `explain -o json` says, its pods, and what its
// reader cannot do with it.
base::Result<std::string> page_job_details(const Session& session, const std::string& ns,
                                           const std::string& name);

// Calls `act` with a session of the user who has the token.
using ActAs = std::function<base::Result<std::string>(
    const std::string& token, const std::function<base::Result<std::string>(const Session&)>& act)>;

// The page for several users: one cache of what the program may list, of which each reader sees the
// rows that they could list; what they ask for goes out with their own token.
class SharedPage {
 public:
  // `own`: the program's session; must live longer. The errors of PageServer::create().
  static base::Result<std::unique_ptr<SharedPage>> create(const Session& own,
                                                          const DashboardOptions& options,
                                                          ActAs act_as);

  int port() const { return server_->port(); }
  bool has_synced() const { return feed_->has_synced(); }
  // Serves on the calling thread until `stop` is requested.
  void serve(std::stop_token stop) { server_->serve(std::move(stop)); }

 private:
  explicit SharedPage(const Session& own) : readers_{own, board_} {}

  // The feed writes on the board, and the board wakes the server, so they end in this order from
  // below.
  dashboard::Board board_;
  PageReaders readers_;
  std::unique_ptr<dashboard::PageServer> server_;
  std::unique_ptr<PageFeed> feed_;
  kube::RunLoop loops_;  // ends first
};

// Serves until the program is interrupted. `connect`: how the program found its cluster.
int run_dashboard(const Session& session, const ConnectOptions& connect,
                  const DashboardOptions& options, Output output);

}  // namespace cli
