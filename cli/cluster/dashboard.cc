#include "cli/cluster/dashboard.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/wellknown.h"
#include "cli/cluster/connect.h"
#include "cli/cluster/explain.h"
#include "cli/cluster/page_control.h"
#include "cli/cluster/page_records.h"
#include "cli/cluster/page_sooner.h"
#include "cli/cluster/page_whatif.h"
#include "cli/cluster/share.h"
#include "kube/api/pod.h"

namespace cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kPodsShownMax = 200;

// Returns the tree of accounts as `share -o json` says it; there is nothing to ask for.
base::Result<std::string> page_shares(const Session& session, std::string_view) {
  std::ostringstream out;
  std::ostringstream err;
  if (run_share(session, {.json = true}, {.out = out, .err = err}) == kExitOk) return out.str();
  return base::Error{base::Code::kNotFound, err.str()};
}

// Handlers of readers' requests, by the path to which they post.
constexpr std::array kPosts = {std::pair{"/control", &page_control},
                               std::pair{"/whatif", &page_whatif},
                               std::pair{"/records", &page_records},
                               std::pair{"/sooner", &page_sooner},
                               std::pair{"/shares", &page_shares}};

// Returns the pods of the job; none if the user may not read pods.
Json pods_json(const Session& session, const std::string& name) {
  Json pods = Json::array();
  const auto list = session.client.list<kube::Pod>(
      {.ns = session.ns, .label_selector = std::string{kube::kLabelJob} + "=" + name});
  if (!list) return pods;
  for (const kube::Pod& pod : list->items) {
    if (pods.size() == kPodsShownMax) break;
    const auto& phase = pod.status.phase;
    pods.push_back({{"name", pod.metadata.name},
                    {"node", pod.spec.node_name.value_or("")},
                    {"phase", phase ? std::string{kube::to_string(*phase)} : ""},
                    {"reason", pod.status.reason}});
  }
  return pods;
}

}  // namespace

// Requests: those of `explain`, a list of the job's pods, the job itself and a question about the
// user's rights, when a user opens a job. With its namespace a name is never taken for a number.
base::Result<std::string> page_job_details(const Session& session, const std::string& ns,
                                           const std::string& name) {
  const Session own{
      .client = session.client, .clock = session.clock, .sleeper = session.sleeper, .ns = ns};
  std::ostringstream out;
  std::ostringstream err;
  if (run_explain(own, ns + "/" + name, true, {.out = out, .err = err}) != kExitOk) {
    return base::Error{base::Code::kNotFound, err.str()};
  }
  const auto job = session.client.get<kube::Job>({.ns = ns, .name = name});
  if (!job) return job.error();
  const Json json = {{"explain", Json::parse(out.str())},
                     {"pods", pods_json(own, name)},
                     {"uid", job->metadata.uid},
                     {"refusals", page_refusals(session, *job)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<std::unique_ptr<SharedPage>> SharedPage::create(const Session& own,
                                                             const DashboardOptions& options,
                                                             ActAs act_as) {
  std::unique_ptr<SharedPage> page{new SharedPage{own}};
  dashboard::PageServer::Hooks hooks;
  hooks.readers = &page->readers_;
  hooks.job = [act_as](const std::string& token, const std::string& ns, const std::string& name) {
    return act_as(token,
                  [&](const Session& session) { return page_job_details(session, ns, name); });
  };
  for (const auto& [path, act] : kPosts) {
    hooks.posts[path] = [act_as, act = act](const std::string& token, const std::string& body) {
      return act_as(token, [&](const Session& session) { return act(session, body); });
    };
  }
  auto server = dashboard::PageServer::create({.port = options.port, .hosts = options.hosts},
                                              page->board_, own.clock, std::move(hooks));
  if (!server) return server.error();
  page->server_ = std::move(*server);
  page->feed_ = std::make_unique<PageFeed>(own, "", page->board_);
  page->loops_.start("readers",
                     [page = page.get()](std::stop_token) { return page->readers_.step(); });
  return page;
}

namespace {

// The first process of a container ends by SIGTERM only if it says so; there is nothing to save.
void end_by_signals() {
  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { ::_exit(0); });
}

int run_shared(const Session& session, const ConnectOptions& connect,
               const DashboardOptions& options, Output output) {
  const auto page = SharedPage::create(
      session, options,
      [&](const std::string& token, const auto& act) -> base::Result<std::string> {
        const auto connection = Connection::open_as(token, connect);
        if (!connection) return connection.error();
        return act((*connection)->session());
      });
  if (!page) {
    output.err << "kubectl-gang dashboard: " << page.error().message << "\n";
    return kExitFailed;
  }
  output.out << "Jobs of all namespaces, on port " << (*page)->port()
             << " of all addresses, for readers with a token of this cluster." << std::endl;
  end_by_signals();
  (*page)->serve(std::stop_token{});
  return kExitOk;
}

// The server's thread is this one; the feed has its own. They end in the opposite order, since the
// feed writes on the board and the board wakes the server.
int run_own(const Session& session, const DashboardOptions& options, Output output) {
  const std::string ns = options.all_namespaces ? "" : session.ns;
  dashboard::Board board;
  dashboard::PageServer::Hooks hooks;
  hooks.job = [&](const std::string&, const std::string& job_ns, const std::string& name) {
    return page_job_details(session, job_ns, name);
  };
  for (const auto& [path, act] : kPosts) {
    hooks.posts[path] = [&session, act = act](const std::string&, const std::string& body) {
      return act(session, body);
    };
  }
  hooks.on_new_code = [&](const std::string& address) {
    output.out << "A browser has signed in. For another one: " << address << std::endl;
  };
  const auto server = dashboard::PageServer::create({.port = options.port, .reader = ::geteuid()},
                                                    board, session.clock, std::move(hooks));
  if (!server) {
    output.err << "kubectl-gang dashboard: " << server.error().message << "\n";
    return kExitFailed;
  }
  const PageFeed feed{session, ns, board};
  output.out << "Jobs of " << (ns.empty() ? "all namespaces" : "namespace " + ns)
             << ", for this user of this machine alone. Ctrl-C ends it. Open in a browser, once:\n"
             << (*server)->address() << std::endl;
  (*server)->serve(std::stop_token{});
  return kExitOk;
}

}  // namespace

int run_dashboard(const Session& session, const ConnectOptions& connect,
                  const DashboardOptions& options, Output output) {
  return options.shared ? run_shared(session, connect, options, output)
                        : run_own(session, options, output);
}

}  // namespace cli
