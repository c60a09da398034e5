#include "cli/slurm/sshare_command.h"

#include <algorithm>
#include <array>
#include <set>

#include "cli/cluster/share.h"
#include "cli/cluster/standing.h"
#include "cli/slurm/record_table.h"

namespace cli {
namespace {

using Field = RecordField<ShareRow>;

constexpr const char* kFormat = "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
constexpr const char* kLong =
    "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare";

std::string raw_shares(const ShareRow& row) {
  if (row.is_root()) return "";
  return row.view->shares.of_parent ? "parent" : std::to_string(row.view->shares.count);
}

// SOURCE: sshare(1), --format. The blanks in front of an account show the tree.
constexpr std::array kFields = {
    Field{"Account", 20,
          [](const ShareRow& r) { return std::string(r.depth, ' ') + r.view->account; }, true},
    Field{"User", 10, [](const ShareRow& r) { return r.view->user; }},
    Field{"RawShares", 10, raw_shares},
    Field{"NormShares", 11,
          [](const ShareRow& r) { return r.is_root() ? "" : share_fraction(r.view->shares_ppb); }},
    Field{"RawUsage", 11,
          [](const ShareRow& r) { return std::to_string(billed_seconds(*r.view)); }},
    Field{"NormUsage", 11,
          [](const ShareRow& r) { return r.is_root() ? "" : share_fraction(r.view->usage_ppb); }},
    Field{"EffectvUsage", 13,
          [](const ShareRow& r) {
            return r.is_root() ? "" : share_fraction(r.view->effective_usage_ppb);
          }},
    Field{"FairShare", 10,
          [](const ShareRow& r) {
            return r.view->user.empty() ? std::string{} : share_fraction(r.view->fair_share_ppb);
          }},
    Field{"Cluster", 10, [](const ShareRow&) { return std::string{"kubegang"}; }},
    Field{"LevelFS", 10, nullptr},
    Field{"GrpTRESMins", 30, nullptr},
    Field{"GrpTRESRaw", 30, nullptr},
    Field{"TRESRunMins", 30, nullptr},
    Field{"Partition", 12, nullptr},
    Field{"ID", 6, nullptr},
};

constexpr WordTakes kNothing = WordTakes::kNothing;
constexpr WordTakes kValue = WordTakes::kValue;
constexpr std::array kOptions = {
    WordOption{'o', "format", kValue, "names of fields, with widths: user%20"},
    WordOption{'l', "long", kNothing, "more fields"},
    WordOption{'h', "noheader", kNothing, "no heading"},
    WordOption{'n', "", kNothing, "no heading"},
    WordOption{'p', "parsable", kNothing, "values with | behind each"},
    WordOption{'P', "parsable2", kNothing, "values with | between them"},
    WordOption{'a', "all", kNothing, "all users; a user of an account is a namespace"},
    WordOption{'u', "users", kValue, "only these users"},
    WordOption{'A', "accounts", kValue, "only these accounts"},
    WordOption{'U', "Users", kNothing, "users alone, without the accounts"},
    WordOption{'e', "helpformat", kNothing, "lists the fields"},
    WordOption{'M', "clusters", kValue, "a context of the kubeconfig"},
    WordOption{'v', "verbose", kNothing, "accepted; it is so anyway"},
    WordOption{'m', "partition", kNothing, "", "shares are not by partition here"},
    WordOption{'\0', "json", kNothing, "", "use kubectl gang share -o json"}};

struct SshareOptions {
  RecordTable<ShareRow> table;
  bool has_heading = true;
  bool all_users = false;
  bool only_users = false;
  std::set<std::string> users, accounts;
  std::string context;
};

int fail(Output output, const std::string& message) {
  output.err << "sshare: error: " << message << "\n";
  return kExitFailed;
}

base::Status apply(const ReadOption& option, SshareOptions& options) {
  const auto add = [&](std::set<std::string>& to) {
    for (std::string& word : list_of(option.value)) to.insert(std::move(word));
  };
  const std::string& name = option.name;
  if (name.empty() || name == "noheader") options.has_heading = false;
  if (name == "parsable") options.table.form = RecordForm::kEnded;
  if (name == "parsable2") options.table.form = RecordForm::kBetween;
  if (name == "all") options.all_users = true;
  if (name == "Users") options.only_users = true;
  if (name == "users") add(options.users);
  if (name == "accounts") add(options.accounts);
  if (name == "clusters") options.context = option.value;
  if (name == "format") return options.table.set_columns(kFields, option.value);
  if (name == "long") return options.table.set_columns(kFields, kLong);
  return {};
}

// SOURCE: without --all and --users, users are the caller alone.
bool is_shown(const ShareRow& row, const SshareOptions& options, const std::string& own) {
  const sched::ShareView& view = *row.view;
  if (!options.accounts.empty() && !options.accounts.contains(view.account)) return false;
  if (view.user.empty()) return !options.only_users;
  if (!options.users.empty()) return options.users.contains(view.user);
  return options.all_users || view.user == own;
}

int show(const Session& session, const SshareOptions& options, Output output) {
  const auto standing = read_standing(session, std::nullopt, output);
  if (!standing) return fail(output, standing.error().message);
  const std::vector<sched::ShareView> shares = standing->scheduler.shares();
  if (options.has_heading) options.table.print_heading(output.out);
  for (const ShareRow& row : share_rows(shares)) {
    if (is_shown(row, options, session.ns)) options.table.print_row(row, output.out);
  }
  return kExitOk;
}

}  // namespace

int run_sshare(std::span<const std::string> arguments, const WithCluster& with_cluster,
               Output output) {
  if (const auto answer = answer_about_itself("sshare", kOptions, arguments)) {
    output.out << *answer;
    return kExitOk;
  }
  const auto words = read_options(kOptions, arguments);
  if (!words) return fail(output, words.error().message);
  SshareOptions options;
  base::Status status = options.table.set_columns(kFields, kFormat);
  for (const ReadOption& option : words->options) {
    if (option.name == "helpformat") {
      list_fields(std::span<const Field>{kFields}, output.out);
      return kExitOk;
    }
    if (status) status = apply(option, options);
  }
  if (!status) return fail(output, status.error().message);
  return with_cluster.in(options.context)(
      [&](const Session& session) { return show(session, options, output); });
}

SlurmReference sshare_reference() {
  return {.command = "sshare",
          .options = {kOptions.begin(), kOptions.end()},
          .fields = references_of(std::span<const Field>{kFields}),
          .words = {}};
}

}  // namespace cli
