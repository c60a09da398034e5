// An API server in memory: answers requests as a kube-apiserver would, for the kinds that kubegang
// uses. No network and no threads of its own: InProcessTransport and HttpsFrontEnd stand on top.
//
// It keeps one monotonic resourceVersion, isolates the status subresource, raises the generation
// with the spec only, enforces the schemas of CustomResourceDefinitions (CEL rules are not
// evaluated), collects garbage by ownerReferences as soon as an owner is gone, and keeps pods that
// are being deleted until their kubelet deletes them with grace period 0. Not served: server-side
// apply, strategic merge patches of lists, OpenAPI v2, SPDY; each is refused in a sentence.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "kube/api/resource_info.h"
#include "kube/clock.h"
#include "kube/testing/api_server/body_stream.h"
#include "kube/testing/api_server/faults.h"
#include "kube/testing/api_server/request_log.h"
#include "kube/transport.h"

namespace devcluster {

struct ApiServerOptions {
  // The seed of UIDs and generated names; two servers with one seed give the same ones.
  std::uint64_t seed = 1;
  // Older changes are forgotten: a watch from before them gets 410.
  std::size_t history_changes_max = 65536;
  base::Duration bookmark_interval = std::chrono::seconds{60};
  // Objects come with metadata.managedFields of about the size that a real server's have. For
  // measurements; who wrote a field is not kept.
  bool managed_fields = false;
};

// A request with what the front end knows of its sender. Rights are not checked: every user may do
// everything.
struct ApiRequest {
  kube::Request http;
  std::string user_agent;
  bool upgrades = false;              // to a WebSocket that speaks v5.channel.k8s.io
  std::string user = "system:admin";  // authenticated by the front end
  std::vector<std::string> groups = {"system:masters"};
};

// GET …/pods/NAME/exec
struct PodExecRequest {
  std::string ns;
  std::string pod;
  std::string container;
  std::vector<std::string> command;
};
// A program in a container: its end of the pipes is the container's, these are the caller's to
// close. `exit_code` is asked when the pidfd is readable.
struct PodExecProcess {
  int input = -1;
  int output = -1;
  int error = -1;
  int pidfd = -1;
  std::function<int()> exit_code;
};
// Blocks until the program has begun: the container may be frozen. kNotFound becomes 404.
using PodExecHook = std::function<base::Result<PodExecProcess>(const PodExecRequest&)>;

// An answer, and what a test's faults do to it on its way.
struct ApiAnswer {
  kube::Response response;                             // headers and, without a stream, the body
  std::shared_ptr<BodyStream> stream;                  // the body, where it goes on for a while
  std::function<base::Result<PodExecProcess>()> exec;  // with 101: begins the program
  base::Duration delay{0};  // injected: the front end waits that long first
  bool reset = false;       // injected: the front end breaks the connection instead
};

// GET …/pods/NAME/log
struct PodLogRequest {
  std::string ns;
  std::string pod;
  std::string container;
  bool follow = false;
  bool previous = false;
  bool timestamps = false;
  std::optional<std::int64_t> tail_lines;
  std::optional<std::int64_t> since_seconds;
  std::optional<std::int64_t> limit_bytes;
};
// Answers with the log's bytes; the stream ends at the log's end, with `follow` when the container
// has ended. kNotFound and kInvalidArgument become 404 and 400.
using PodLogHook = std::function<base::Result<std::shared_ptr<BodyStream>>(const PodLogRequest&)>;

using PodWebhook = std::function<void(nlohmann::json& pod)>;

// Thread-safe. Requests are handled one at a time, under one lock; a write costs microseconds.
// Answers are turned into JSON without the lock.
class ApiServer {
 public:
  explicit ApiServer(const kube::Clock& clock, ApiServerOptions options = {});
  ~ApiServer();

  // Creates the CustomResourceDefinitions of all *.yaml files of a folder. kNotFound if the
  // folder does not exist; kInvalidArgument names file and field.
  base::Status load_crds(const std::string& folder);

  ApiAnswer handle(const ApiRequest& request);

  // Called without the lock, from the threads of handle(). Set it before requests come in.
  void set_pod_log_hook(PodLogHook hook);

  // The same for programs in pods.
  void set_pod_exec_hook(PodExecHook hook);

  // Changes every pod that is to be created, as a mutating webhook of the cluster would; under the
  // lock. Set it before requests come in.
  void set_pod_webhook(PodWebhook webhook);

  // Failures for tests. Resources are plural names ("pods"); "" = all.
  void inject(Fault fault);
  void fail_next(std::string verb, std::string resource, int code, int retry_after_seconds = 0);
  void clear_faults();
  void drop_watches(const std::string& resource = "");   // they end properly
  void reset_watches(const std::string& resource = "");  // their connections break
  void lose_next_event(const std::string& resource);  // current watchers never see the next change
  void compact();  // watches and continue tokens from before now get 410

  // All objects and kinds, as a snapshot of etcd has them; cheap, since objects are shared.
  class Backup;
  std::shared_ptr<const Backup> back_up() const;
  // Works as `etcdutl snapshot restore --bump-revision --mark-compacted`: what was written since is
  // undone, resourceVersions go on from above all that were ever given, watches break, and those
  // from before get 410. The backup may be of another server.
  void restore(const Backup& backup);

  // Returns all objects of a kind as they are stored, by namespace and name. No request, and cheap:
  // they are shared, and a change makes another one.
  std::vector<std::shared_ptr<const nlohmann::json>> objects(const kube::ResourceInfo& kind) const;

  // Returns the requests that it got.
  std::map<RequestKind, std::int64_t> request_counts() const;
  std::vector<WriteRecord> writes_since(base::Instant since) const;
  void clear_request_log();
  std::int64_t resource_version() const;
  std::size_t open_watches_count() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace devcluster
