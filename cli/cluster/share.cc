#include "cli/cluster/share.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <tuple>

#include "cli/cluster/standing.h"
#include "cli/table.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;
using sched::ShareView;

// The namespaces of an account come before the accounts below it. Sorted by name within each, so
// that two calls give the same table. An account that is its own parent is skipped, or the walk
// would not end.
// Each level looks through all views, which is nothing for the dozens of accounts that a site has.
void add_below(const std::vector<ShareView>& shares, const std::string& account, std::size_t depth,
               std::vector<ShareRow>& rows) {
  std::vector<const ShareView*> below;
  for (const ShareView& view : shares) {
    if (view.parent != account || (view.user.empty() && view.account == account)) continue;
    below.push_back(&view);
  }
  std::sort(below.begin(), below.end(), [](const ShareView* a, const ShareView* b) {
    return std::tuple{a->user.empty(), a->user, a->account} <
           std::tuple{b->user.empty(), b->user, b->account};
  });
  for (const ShareView* view : below) {
    rows.push_back({view, depth});
    if (view->user.empty()) add_below(shares, view->account, depth + 1, rows);
  }
}

}  // namespace

// Depth first, from the account root on, which is the first view.
// For example root, its account physics, the namespaces of physics, its accounts below, chemistry.
// The blanks in front of the names show the tree, as in sshare.
std::vector<ShareRow> share_rows(const std::vector<ShareView>& shares) {
  std::vector<ShareRow> rows;
  if (shares.empty()) return rows;
  rows.push_back({&shares.front(), 0});
  add_below(shares, shares.front().account, 1, rows);
  return rows;
}

// For display only: the comparison of shares is the scheduler's, in integers.
std::string share_fraction(std::int64_t ppb) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6f", static_cast<double>(ppb) / 1e9);
  return text.data();
}

std::int64_t billed_seconds(const ShareView& view) {
  // Usage is counted in thousandths of billing units.
  return view.used.billed / 1000;
}

// Columns and widths are those of sshare. An account's own line has no FairShare, because only the
// entries of users have one that counts for jobs.
std::string format_shares(const std::vector<ShareView>& shares) {
  const std::array<Column, 7> columns = {Column{"Account", 20, true},
                                         {"User", 10},
                                         {"RawShares", 9},
                                         {"NormShares", 11},
                                         {"RawUsage", 11},
                                         {"EffectvUsage", 13},
                                         {"FairShare", 10}};
  std::vector<std::vector<std::string>> rows;
  for (const ShareRow& row : share_rows(shares)) {
    const ShareView& view = *row.view;
    const bool is_root = row.is_root();
    rows.push_back({std::string(row.depth, ' ') + view.account, view.user,
                    is_root                 ? ""
                    : view.shares.of_parent ? "parent"
                                            : std::to_string(view.shares.count),
                    is_root ? "" : share_fraction(view.shares_ppb),
                    std::to_string(billed_seconds(view)),
                    is_root ? "" : share_fraction(view.effective_usage_ppb),
                    view.user.empty() ? "" : share_fraction(view.fair_share_ppb)});
  }
  return format_table(columns, rows);
}

// Reads no jobs and no nodes, so users who may read policies and usage may ask. The scheduler that
// works the shares out has no jobs: shares depend on usage alone.
int run_share(const Session& session, const ShareOptions& options, Output output) {
  const base::Result<Standing> standing = read_standing(session, std::nullopt, output);
  if (!standing) {
    output.err << "kubectl-gang share: " << standing.error().message << "\n";
    return kExitFailed;
  }
  const std::vector<ShareView> shares = standing->scheduler.shares();
  if (shares.empty()) {
    output.err << "kubectl-gang share: there are no accounts\n";
    return kExitFailed;
  }
  if (!options.json) {
    output.out << format_shares(shares);
    return kExitOk;
  }
  Json all = Json::array();
  for (const ShareRow& row : share_rows(shares)) {
    const ShareView& view = *row.view;
    Json one = {{"account", view.account}};
    // An entry of a user has its account as `account`, and an account has its parent.
    if (!view.user.empty()) one["namespace"] = view.user;
    if (!view.parent.empty() && view.user.empty()) one["parent"] = view.parent;
    if (!view.shares.of_parent) one["shares"] = view.shares.count;
    one["normShares"] = static_cast<double>(view.shares_ppb) / 1e9;
    one["usageSeconds"] = billed_seconds(view);
    one["effectiveUsage"] = static_cast<double>(view.effective_usage_ppb) / 1e9;
    if (!view.user.empty()) one["fairShare"] = static_cast<double>(view.fair_share_ppb) / 1e9;
    all.push_back(std::move(one));
  }
  output.out << all.dump(2) << "\n";
  return kExitOk;
}

}  // namespace cli
