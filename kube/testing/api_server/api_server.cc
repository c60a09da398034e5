#include "kube/testing/api_server/api_server.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "kube/api/time_format.h"
#include "kube/testing/api_server/discovery.h"
#include "kube/testing/api_server/open_api.h"
#include "kube/testing/api_server/rest.h"
#include "kube/testing/api_server/yaml_json.h"

namespace devcluster {
namespace {

using nlohmann::json;

constexpr const char* kJson = "application/json";

// Replaces bytes that are not UTF-8, which a client may have sent in a text: the answer must be
// JSON in any case.
ApiAnswer answer_of_json_text(int code, std::string text, const std::string& type = kJson) {
  ApiAnswer answer;
  answer.response.status = code;
  answer.response.headers["content-type"] = type;
  answer.response.body = std::move(text += '\n');
  return answer;
}

ApiAnswer json_answer(int code, const json& body, const std::string& type = kJson) {
  return answer_of_json_text(code, body.dump(-1, ' ', false, json::error_handler_t::replace), type);
}

// For logs, health checks and OpenAPI documents.
ApiAnswer text_answer(std::string text) {
  ApiAnswer answer;
  answer.response.status = 200;
  answer.response.headers["content-type"] = "text/plain; charset=utf-8";
  answer.response.body = std::move(text);
  return answer;
}

// The same seconds stand in the body and in the header: client-go reads either.
ApiAnswer error_answer(const ApiError& error) {
  ApiAnswer answer = json_answer(error.code, to_json(error));
  if (error.retry_after_seconds > 0) {
    answer.response.headers["retry-after"] = std::to_string(error.retry_after_seconds);
  }
  return answer;
}

// Returns the answer of a knob: it has no content.
ApiAnswer success_answer() {
  return json_answer(200, {{"kind", "Status"}, {"apiVersion", "v1"}, {"status", "Success"}});
}

// RFC 7234, section 5.5: 299 - "text"; several in one header, separated by commas. kubectl prints
// them as "Warning: ...".
std::string warning_header(const std::vector<std::string>& warnings) {
  std::string header;
  for (const std::string& warning : warnings) {
    std::string escaped;
    for (const char c : warning) {
      if (c == '"' || c == '\\') escaped += '\\';
      escaped += c;
    }
    header += (header.empty() ? "" : ", ") + std::string{"299 - \""} + escaped + "\"";
  }
  return header;
}

// SelfSubject…Review: every user may do everything here.
// The body of the request comes back with a status, as reviews do.
json review_answer(const ResourceType& type, const ApiRequest& request) {
  json body = json::parse(request.http.body, nullptr, false);
  if (!body.is_object()) body = json::object();
  body["kind"] = type.kind;
  body["apiVersion"] = type.api_version();
  if (type.kind == "SelfSubjectReview") {
    body["status"]["userInfo"] = {{"username", request.user}, {"groups", request.groups}};
  } else if (type.kind == "SelfSubjectRulesReview") {
    body["status"] = {
        {"incomplete", false},
        {"resourceRules", {{{"verbs", {"*"}}, {"apiGroups", {"*"}}, {"resources", {"*"}}}}},
        {"nonResourceRules", {{{"verbs", {"*"}}, {"nonResourceURLs", {"*"}}}}}};
  } else {
    body["status"] = {{"allowed", true}};
  }
  return body;
}

// The hook speaks in the codes of base::Result, clients in those of HTTP.
ApiError error_of_hook(const base::Error& error) {
  if (error.code == base::Code::kInvalidArgument) return bad_request(error.message);
  ApiError answer = error_of_code(error.code == base::Code::kNotFound ? 404 : 500, 0);
  answer.message = error.message;
  return answer;
}

}  // namespace

// The lock is held where the store, the registry, the faults and the log are used, and in no other
// place: encoding, the log hook and the network are outside.
class ApiServer::Impl {
 public:
  Impl(const kube::Clock& clock, const ApiServerOptions& options)
      : clock_{clock}, managed_fields_{options.managed_fields}, rest_{clock, options} {}

  // The way of a request: handle() → route() → resource() → Rest::handle() → encode().
  ApiAnswer handle(const ApiRequest& request);
  ApiAnswer route(const RequestInfo& info, const ApiRequest& request);
  ApiAnswer resource(const RequestInfo& info, const ApiRequest& request);
  ApiAnswer encode(const RestRequest& request, const RestResult& result) const;
  std::optional<ApiRequest> by_webhook(const ApiRequest& request) const;
  ApiAnswer pod_log(const RequestInfo& info);
  ApiAnswer pod_exec(const RequestInfo& info, bool upgrades);
  Outcome<PodLogRequest> pod_log_request(const RequestInfo& info);
  ApiAnswer debug(const RequestInfo& info, const ApiRequest& request);

  const kube::Clock& clock_;
  const bool managed_fields_;
  mutable std::mutex mu_;  // guards everything below
  Rest rest_;
  FaultPlan faults_;
  RequestLog log_;
  OpenApi open_api_;
  PodLogHook log_hook_;
  PodExecHook exec_hook_;
  PodWebhook pod_webhook_;
};

// 1. Injected failures. 2. The request. 3. The log.
ApiAnswer ApiServer::Impl::handle(const ApiRequest& request) {
  const RequestInfo info = parse_request(request.http);
  const std::string& what = info.is_resource ? info.resource : info.path;
  // 1. injected failures; the knobs themselves never fail
  std::optional<Fault> fault;
  if (!info.path.starts_with("/debug/")) {
    const std::scoped_lock lock{mu_};
    fault = faults_.take({info.verb, what, info.subresource, info.name, request.user_agent});
  }
  ApiAnswer answer;
  if (fault && fault->kind == Fault::Kind::kStatus) {
    // Refused before anything is done.
    answer = error_answer(error_of_code(fault->code, fault->retry_after_seconds));
    if (!fault->text.empty()) answer.response.body = fault->text;
    // The connection seems to have broken on the way there: nothing is done, and the client cannot
    // know it.
  } else if (fault && fault->kind == Fault::Kind::kResetBefore) {
    answer.reset = true;
  } else {
    // 2. the request. ResetAfter carries it out and then gives no answer
    // Not under mu_: a request takes the lock itself for as long as it touches the store.
    answer = route(info, request);
  }
  // The request is carried out at once and answered late, so that timeouts of clients can be
  // tested.
  if (fault && fault->kind == Fault::Kind::kSlow) answer.delay = fault->delay;
  if (fault && fault->kind == Fault::Kind::kResetAfter) answer.reset = true;

  // 3. the log, also of what failed
  const std::scoped_lock lock{mu_};
  log_.record({.at = clock_.wall(),
               .kind = {info.verb, what, info.subresource, request.user_agent, info.group},
               .ns = info.ns,
               .name = info.name,
               .code = answer.response.status});
  return answer;
}

// Resources first; then the few other paths that kubectl and clients ask for.
// Errors are answers, too: a request always gets one, except for a reset.
ApiAnswer ApiServer::Impl::route(const RequestInfo& info, const ApiRequest& request) {
  if (info.is_resource) return resource(info, request);
  if (info.path.starts_with("/debug/")) return debug(info, request);
  // The rest are documents, which can only be read.
  if (request.http.method != kube::Method::kGet) return error_answer(method_not_allowed());
  if (info.path == "/version") return json_answer(200, version_document());
  const std::string first = info.segments.empty() ? "" : info.segments[0];
  if (first == "healthz" || first == "livez" || first == "readyz") return text_answer("ok");
  if (first == "api" || first == "apis") {
    const bool aggregated =
        info.segments.size() == 1 && wants_aggregated_discovery(request.http.accept);
    const std::scoped_lock lock{mu_};
    if (const auto document = discovery_document(rest_.registry(), info.segments, aggregated)) {
      return json_answer(200, *document, aggregated ? kAggregatedDiscoveryType : kJson);
    }
  }
  if (first == "openapi" && info.path.starts_with("/openapi/v3")) {
    // 12 is the length of "/openapi/v3/".
    const std::string path = info.segments.size() < 3 ? "" : info.path.substr(12);
    const std::scoped_lock lock{mu_};
    if (auto document = open_api_.document(rest_.registry(), path)) {
      ApiAnswer answer = text_answer(std::move(*document));
      answer.response.headers["content-type"] = kJson;
      return answer;
    }
  }
  return error_answer(no_such_path());
}

// 1. choose how the answer is written (Accept), 2. find the type, 3. answer requests that need no
//    stored object (reviews, logs), 4. let the webhook change a new pod, 5. carry the request out
//    under the lock and encode the answer without it.
ApiAnswer ApiServer::Impl::resource(const RequestInfo& info, const ApiRequest& request) {
  auto representation = choose_representation(request.http.accept, info.query.get("includeObject"));
  const bool is_stream = info.subresource == "log" || info.subresource == "exec";
  if (!representation && !is_stream) {
    return error_answer(not_acceptable("application/json"));
  }
  if (representation) representation->managed_fields = managed_fields_;
  ResourceTypePtr type;
  {
    const std::scoped_lock lock{mu_};
    // The type is shared: a CRD that is deleted meanwhile does not take it away from this request.
    type = rest_.registry().find(info.group, info.version, info.resource);
  }
  // A kind that is not served and a path that makes no sense get the same 404.
  if (!type) return error_answer(no_such_path());
  if (type->create_only) {
    if (info.verb != "create") return error_answer(method_not_allowed());
    return json_answer(201, review_answer(*type, request));
  }
  if (!type->custom && type->plural == "pods" && info.subresource == "log") {
    return info.verb == "get" ? pod_log(info) : error_answer(method_not_allowed());
  }
  const bool is_exec = !type->custom && type->plural == "pods" && info.subresource == "exec";
  if (is_exec && info.verb == "get") return pod_exec(info, request.upgrades);
  // Only creations: webhooks of a real cluster see more, which no test needs.
  const bool creates_pod =
      info.verb == "create" && !type->custom && type->plural == "pods" && info.subresource.empty();
  const std::optional<ApiRequest> changed = creates_pod ? by_webhook(request) : std::nullopt;
  const RestRequest rest_request{info, changed ? *changed : request, type,
                                 representation.value_or(Representation{})};
  std::optional<Outcome<RestResult>> outcome;
  try {
    {
      // One request at a time changes the store, so versions have one order. Answers are encoded
      // without the lock, because large lists take long.
      const std::scoped_lock lock{mu_};
      outcome.emplace(rest_.handle(rest_request));
    }
    if (!outcome->ok()) return error_answer(outcome->error());
    return encode(rest_request, **outcome);
  } catch (const json::exception& error) {  // a type that check_types() should have refused
    ApiError internal = error_of_code(500, 0);
    internal.message = std::string{"Internal error occurred: "} + error.what();
    return error_answer(internal);
  }
}

// nullopt if there is no webhook, or if it could not change such a body.
std::optional<ApiRequest> ApiServer::Impl::by_webhook(const ApiRequest& request) const {
  const std::scoped_lock lock{mu_};
  if (!pod_webhook_) return std::nullopt;
  json pod = json::parse(request.http.body, nullptr, false);
  if (!pod.is_object()) return std::nullopt;
  pod_webhook_(pod);
  ApiRequest changed = request;
  // The request is copied, because the caller's own must not change.
  changed.http.body = pod.dump();
  return changed;
}

// A RestResult holds exactly one of: a watch, JSON as it is, a list, an object.
ApiAnswer ApiServer::Impl::encode(const RestRequest& request, const RestResult& result) const {
  ApiAnswer answer;
  if (result.watch) {
    answer.response.status = 200;
    answer.response.headers["content-type"] = kJson;
    answer.stream = result.watch;
    return answer;
  }
  if (result.verbatim) {
    answer = json_answer(result.code, *result.verbatim);
  } else if (result.list) {
    answer = answer_of_json_text(result.code, encode_list(*request.type, request.representation,
                                                          *result.list, clock_.wall()));
  } else {
    answer = answer_of_json_text(result.code, encode_object(*request.type, request.representation,
                                                            *result.object, clock_.wall()));
  }
  if (!result.warnings.empty()) {
    answer.response.headers["warning"] = warning_header(result.warnings);
  }
  return answer;
}

// Checks what a real server checks before it asks a kubelet: the pod exists, and the container is
// one of its.
Outcome<PodLogRequest> ApiServer::Impl::pod_log_request(const RequestInfo& info) {
  ObjectPtr pod;
  {
    const std::scoped_lock lock{mu_};
    pod = rest_.store().find({"", "pods"}, {info.ns, info.name});
  }
  if (!pod) return not_found({"", "pods"}, info.name);
  const Query& query = info.query;
  PodLogRequest wanted{.ns = info.ns,
                       .pod = info.name,
                       .container = query.get("container"),
                       .follow = query.is_true("follow"),
                       .previous = query.is_true("previous"),
                       .timestamps = query.is_true("timestamps"),
                       .tail_lines = query.number("tailLines"),
                       .since_seconds = query.number("sinceSeconds"),
                       .limit_bytes = query.number("limitBytes")};
  // Both lists are gone through, for the name that was asked for and for the sentence that lists
  // all.
  std::string names;
  bool known = false;
  std::size_t count = 0;
  for (const char* list : {"containers", "initContainers"}) {
    for (const json& container : (*pod)["spec"].value(list, json::array())) {
      const std::string name = container.value("name", "");
      if (wanted.container.empty() && ++count == 1) wanted.container = name;
      known = known || name == wanted.container;
      names += (names.empty() ? "" : " ") + name;
    }
  }
  // Only a pod of one container has a log without a container's name, as with kube-apiserver.
  if (count > 1) {
    return bad_request("a container name must be specified for pod " + info.name +
                       ", choose one of: [" + names + "]");
  }
  if (!known) {
    return bad_request("container " + wanted.container + " is not valid for pod " + info.name);
  }
  return wanted;
}

// The log itself comes from the hook, as it comes from kubelet in a real cluster.
ApiAnswer ApiServer::Impl::pod_log(const RequestInfo& info) {
  const auto wanted = pod_log_request(info);
  if (!wanted.ok()) return error_answer(wanted.error());
  PodLogHook hook;
  {
    const std::scoped_lock lock{mu_};
    // Copied: the hook waits for a container's output and must not hold the lock meanwhile.
    hook = log_hook_;
  }
  if (!hook) {
    ApiError error = error_of_code(503, 0);
    error.message = "logs of pod " + info.name + " are not available: no kubelet serves them";
    return error_answer(error);
  }
  // Without the lock: the hook may wait.
  auto stream = hook(*wanted);
  if (!stream.ok()) return error_answer(error_of_hook(stream.error()));
  ApiAnswer answer = text_answer("");
  answer.stream = std::move(*stream);
  return answer;
}

// The pod and its container are checked as for a log. The program begins once the connection has
// been switched, as on a real server.
ApiAnswer ApiServer::Impl::pod_exec(const RequestInfo& info, bool upgrades) {
  if (!upgrades) {
    return error_answer(bad_request("exec: only WebSocket with v5.channel.k8s.io is served here"));
  }
  const auto wanted = pod_log_request(info);
  if (!wanted.ok()) return error_answer(wanted.error());
  if (info.query.is_true("tty")) {
    return error_answer(bad_request("exec: there are no terminals here; leave out --tty"));
  }
  const PodExecRequest request{.ns = wanted->ns,
                               .pod = wanted->pod,
                               .container = wanted->container,
                               .command = info.query.all("command")};
  if (request.command.empty()) return error_answer(bad_request("you must specify a command"));
  ApiAnswer answer;
  answer.response.status = 101;
  const std::scoped_lock lock{mu_};
  if (!exec_hook_) return error_answer(error_of_code(503, 0));
  answer.exec = [hook = exec_hook_, request] { return hook(request); };
  return answer;
}

// For tests in other processes: the knobs and counters of ApiServer under /debug/.
ApiAnswer ApiServer::Impl::debug(const RequestInfo& info, const ApiRequest& request) {
  const std::scoped_lock lock{mu_};
  const std::string resource = info.query.get("resource");
  if (info.path == "/debug/requests" && info.verb == "get") {
    // Without an instant, or with one that cannot be read, all writes.
    const auto since = kube::parse_instant(info.query.get("since"));
    const auto writes = log_.writes_since(since.ok() ? *since : base::Instant{});
    return json_answer(200, {{"counts", to_json(log_.counts())}, {"writes", to_json(writes)}});
  }
  if (info.path == "/debug/requests" && info.verb == "delete") {
    log_.clear();
  } else if (info.path == "/debug/faults" && info.verb == "create") {
    auto fault = parse_fault(json::parse(request.http.body, nullptr, false));
    if (!fault.ok()) return error_answer(bad_request(fault.error().message));
    faults_.add(std::move(*fault));
  } else if (info.path == "/debug/faults" && info.verb == "delete") {
    faults_.clear();
  } else if (info.path == "/debug/watches/drop" && info.verb == "create") {
    // An empty `resource` stands for all.
    rest_.watches().finish(resource, StreamState::kEnd);
  } else if (info.path == "/debug/watches/reset" && info.verb == "create") {
    rest_.watches().finish(resource, StreamState::kReset);
  } else if (info.path == "/debug/watches/lose-next" && info.verb == "create") {
    rest_.watches().lose_next(resource);
  } else if (info.path == "/debug/compact" && info.verb == "create") {
    rest_.compact();
  } else {
    return error_answer(no_such_path());
  }
  return success_answer();
}

// A real cluster has these four namespaces from its start. Made by requests, so that they have UIDs
// and versions like any other object.
ApiServer::ApiServer(const kube::Clock& clock, ApiServerOptions options)
    : impl_{std::make_unique<Impl>(clock, options)} {
  for (const char* name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    const json body = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    ApiRequest request;
    request.http.method = kube::Method::kPost;
    request.http.path = "/api/v1/namespaces";
    request.http.body = body.dump();
    const ApiAnswer answer = handle(request);
    CHECK(answer.response.status == 201, answer.response.body);
  }
  // The server's own requests are not counted.
  clear_request_log();
}

ApiServer::~ApiServer() = default;

// Takes the same path as kubectl's create, so that a definition that a real server refuses is
// refused here. In the order of file names: UIDs and versions are the same in each run.
base::Status ApiServer::load_crds(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator{folder, error}) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  }
  if (error) {
    return base::Error{base::Code::kNotFound, "crds folder " + folder + ": " + error.message()};
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const auto documents = read_yaml_file(file);
    if (!documents.ok()) return documents.error();
    for (const std::string& document : *documents) {
      ApiRequest request;
      request.http.method = kube::Method::kPost;
      request.http.path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
      request.http.body = document;
      const ApiAnswer answer = handle(request);
      if (answer.response.status != 201) {
        return base::invalid_argument(
            file + ": " + json::parse(answer.response.body, nullptr, false).value("message", ""));
      }
    }
  }
  // Cleared as in the constructor: tests count what programs ask for.
  clear_request_log();
  return {};
}

// May be called from any thread.
ApiAnswer ApiServer::handle(const ApiRequest& request) {
  return impl_->handle(request);
}

void ApiServer::set_pod_log_hook(PodLogHook hook) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->log_hook_ = std::move(hook);
}

void ApiServer::set_pod_exec_hook(PodExecHook hook) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->exec_hook_ = std::move(hook);
}

void ApiServer::set_pod_webhook(PodWebhook webhook) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->pod_webhook_ = std::move(webhook);
}

void ApiServer::inject(Fault fault) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->faults_.add(std::move(fault));
}

// The commonest fault in one line.
void ApiServer::fail_next(std::string verb, std::string resource, int code,
                          int retry_after_seconds) {
  Fault fault;
  fault.verb = std::move(verb);
  fault.resource = std::move(resource);
  fault.code = code;
  fault.retry_after_seconds = retry_after_seconds;
  inject(std::move(fault));
}

// Faults that were injected and have not been met yet.
void ApiServer::clear_faults() {
  const std::scoped_lock lock{impl_->mu_};
  impl_->faults_.clear();
}

// For all of them: "" stands for every resource.
void ApiServer::drop_watches(const std::string& resource) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->rest_.watches().finish(resource, StreamState::kEnd);
}

// Breaks the connections, whereas drop_watches() ends the answers in order.
void ApiServer::reset_watches(const std::string& resource) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->rest_.watches().finish(resource, StreamState::kReset);
}

// A real server never loses one; the informer must find out all the same when it lists again.
void ApiServer::lose_next_event(const std::string& resource) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->rest_.watches().lose_next(resource);
}

// After it a watch from an earlier version is answered with 410 Gone.
void ApiServer::compact() {
  const std::scoped_lock lock{impl_->mu_};
  impl_->rest_.compact();
}

// Everything that is stored, by pointers: objects are never changed in place, so taking and
// restoring a backup is cheap.
class ApiServer::Backup {
 public:
  Rest::Backup rest;
};

std::shared_ptr<const ApiServer::Backup> ApiServer::back_up() const {
  const std::scoped_lock lock{impl_->mu_};
  return std::make_shared<const Backup>(Backup{impl_->rest_.back_up()});
}

void ApiServer::restore(const Backup& backup) {
  const std::scoped_lock lock{impl_->mu_};
  impl_->rest_.restore(backup.rest);
}

// Copies pointers under the lock and no objects, so that tests may ask in every step of a
// simulation.
std::vector<std::shared_ptr<const json>> ApiServer::objects(const kube::ResourceInfo& kind) const {
  const std::scoped_lock lock{impl_->mu_};
  std::vector<std::shared_ptr<const json>> found;
  const GroupResource storage{std::string{kind.group}, std::string{kind.plural}};
  for (const auto& [key, object] : impl_->rest_.store().all(storage)) found.push_back(object);
  return found;
}

// Counts by verb, resource, subresource and user agent, since the log was cleared.
std::map<RequestKind, std::int64_t> ApiServer::request_counts() const {
  const std::scoped_lock lock{impl_->mu_};
  return impl_->log_.counts();
}

std::vector<WriteRecord> ApiServer::writes_since(base::Instant since) const {
  const std::scoped_lock lock{impl_->mu_};
  return impl_->log_.writes_since(since);
}

void ApiServer::clear_request_log() {
  const std::scoped_lock lock{impl_->mu_};
  impl_->log_.clear();
}

// Raised by every write, so two equal values mean that nothing was written in between.
std::int64_t ApiServer::resource_version() const {
  const std::scoped_lock lock{impl_->mu_};
  return impl_->rest_.store().rv();
}

// For tests that wait until a program watches.
std::size_t ApiServer::open_watches_count() const {
  const std::scoped_lock lock{impl_->mu_};
  return impl_->rest_.watches().open_count();
}

}  // namespace devcluster
