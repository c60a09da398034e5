// `kubectl gang share`: who has used how much of which share, as sshare shows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster/session.h"
#include "cli/program.h"
#include "scheduler/priority/priority_views.h"

namespace cli {

// A line of the table; `depth` is the number of accounts above it and becomes the indentation.
struct ShareRow {
  const sched::ShareView* view = nullptr;
  std::size_t depth = 0;

  // The account root has no siblings: a share of it says nothing.
  bool is_root() const { return depth == 0; }
};
std::vector<ShareRow> share_rows(const std::vector<sched::ShareView>& shares);

// Parts per billion as a fraction with six digits, as sshare prints it: 0.333333.
std::string share_fraction(std::int64_t ppb);
// Returns whole billing units × seconds.
std::int64_t billed_seconds(const sched::ShareView& view);

// Prints the tree, each account before its namespaces and the accounts below it, siblings by name.
std::string format_shares(const std::vector<sched::ShareView>& shares);

struct ShareOptions {
  bool json = false;
};
int run_share(const Session& session, const ShareOptions& options, Output output);

}  // namespace cli
