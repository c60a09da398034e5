// The typed client: one call is one request, retried where that is safe. A Client is a handle that
// is cheap to copy; copies share the limits and the stop. All calls block the calling thread, are
// thread-safe, and return an Error that names verb, kind and object.
//
// Retries: reads, updates, patches and deletes after kUnavailable and kTimeout; creates only after
// 429, when the server says that it did nothing. At most CallOptions::attempts_max tries, after
// Retry-After if the server names one, else with back-off and jitter. A retried update under a
// resourceVersion may return kConflict for its own first try, and a retried delete kNotFound: read
// again, as after any conflict.
//
// The typed calls exist for the kinds that a library instantiates them for (client_calls.h):
// core kinds in kube/core_calls.cc, those of kubegang.io in api/client_calls.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "kube/api/json_view.h"
#include "kube/api/meta.h"
#include "kube/backoff.h"
#include "kube/clock.h"
#include "kube/rate_limiter.h"
#include "kube/sleeper.h"
#include "kube/transport.h"

namespace kube {

struct CallOptions {
  base::Duration timeout = std::chrono::seconds{30};  // of one try
  int attempts_max = 5;
  BackoffOptions backoff{.first = std::chrono::milliseconds{100}, .max = std::chrono::seconds{5}};
};

struct ClientOptions {
  RateLimit rate{};
  std::int32_t in_flight_max = 20;  // watches are not counted
  CallOptions call{};
  std::string field_manager = "kubegang";
  std::uint64_t seed = 1;  // of the jitter
};

struct ListOptions {
  std::string ns{};              // "" = all namespaces
  std::string label_selector{};  // "a=b,c"
  std::string field_selector{};  // "spec.nodeName=n12"
  // "" = the newest state, which may be read from etcd; else a state of the server's cache that is
  // not older ("0" = any). kGone: the server knows no such version yet, or its store was set back.
  std::string resource_version{};
  // Fewer where a page would be too large for an answer; 0 = all in one.
  std::int32_t page_items_max = 500;
  // The fields that are read of each object. Null: all of them in list_json(), those of T in
  // list<T>(). Must live longer than the call.
  const KnownFields* fields = nullptr;
  // Asks for the next page, on another thread, while the last one is read and handled.
  bool reads_ahead = false;
};

// An object that was received and could not be decoded.
struct Undecodable {
  ObjectKey key{};
  std::string uid{};
  std::string resource_version{};
  base::Error error{};
};

// Reads the name, as far as there is one. Never fails.
Undecodable undecodable_of(const JsonView& object, base::Error error);

template <ApiObject T>
struct ObjectList {
  std::vector<T> items{};
  std::string resource_version{};
  std::vector<Undecodable> undecodable{};
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark };

struct WatchOptions {
  std::string ns{};
  std::string label_selector{};
  std::string field_selector{};
  std::string resource_version{};  // events after this one
  // The server ends the stream after this long.
  base::Duration server_timeout = std::chrono::minutes{5};
  // The longest silence: without even a bookmark for that long, the connection may be dead.
  base::Duration idle_timeout = std::chrono::minutes{2};
  base::Duration gather{};              // Request::gather
  const KnownFields* fields = nullptr;  // as in a list
};

struct WriteOptions {
  bool dry_run = false;  // the server checks and stores nothing
  // The fields that are read of the answer; null: all of the type. Must live longer than the call.
  const KnownFields* fields = nullptr;
};

struct PatchOptions {
  // Preconditions: kConflict when the object has another one.
  std::optional<std::string> resource_version{};
  std::optional<std::string> uid{};
  bool dry_run = false;
};

enum class Propagation { kBackground, kForeground, kOrphan };

struct DeleteOptions {
  std::optional<std::string> uid{};  // precondition: kConflict when it is another object
  std::optional<std::string> resource_version{};
  std::optional<std::chrono::seconds> grace_period{};
  std::optional<Propagation> propagation{};
  bool dry_run = false;
};

enum class Part { kWhole, kStatus };  // of an object: what a write is about

class Client {
 public:
  // All three must live longer than the last copy.
  Client(Transport& transport, const Clock& clock, Sleeper& sleeper, ClientOptions options);

  // Returns the same client with other time-outs or tries.
  Client with(CallOptions call) const;
  // Calls that wait for the rate limit or for a retry return kCancelled, later calls at once.
  // Applies to all copies. Waits for a request that is on its way (CallOptions::timeout at most).
  void request_stop();

  template <ApiObject T>
  base::Result<T> get(const ObjectKey& key) const;

  // Lists all pages. Begins again, at most three times, when the server forgets the list in between
  // (410). Objects that do not decode are set apart.
  template <ApiObject T>
  base::Result<ObjectList<T>> list(const ListOptions& options = {}) const;

  // Writes to object.metadata.ns. Returns what the server made of it; so do the other writes.
  template <ApiObject T>
  base::Result<T> create(const T& object, const WriteOptions& options = {}) const;
  // Does the same from JSON: a Pod with a template's fields that Pod does not have.
  template <ApiObject T>
  base::Result<T> create_json(const std::string& ns, const nlohmann::json& object,
                              const WriteOptions& options = {}) const;

  // Replaces spec and metadata, or the status; under object.metadata.resource_version unless that
  // is "". Only for kinds that are typed completely (not Pods, Nodes, Services).
  template <ApiObject T>
  base::Result<T> update(const T& object, const WriteOptions& options = {}) const;
  template <ApiObject T>
  base::Result<T> update_status(const T& object, const WriteOptions& options = {}) const;

  // Sends a JSON merge patch ({"spec": {"control": {"cancel": true}}}); null removes a field.
  template <ApiObject T>
  base::Result<T> patch(const ObjectKey& key, const nlohmann::json& merge_patch,
                        const PatchOptions& options = {}) const;
  template <ApiObject T>
  base::Result<T> patch_status(const ObjectKey& key, const nlohmann::json& merge_patch,
                               const PatchOptions& options = {}) const;
  // Sends the status's difference from -> to as a merge patch, under from's UID and, if
  // `check_version`, its resourceVersion. Writes nothing and returns `from` when equal.
  template <ApiObject T>
  base::Result<T> patch_status_from(const T& from, const T& to, bool check_version = true) const;

  template <ApiObject T>
  base::Status remove(const ObjectKey& key, const DeleteOptions& options = {}) const;

  // Any request by hand. `path` is encoded and has its query. The answer is null when its body is
  // empty.
  base::Result<nlohmann::json> call_json(Method method, const std::string& path,
                                         const nlohmann::json* body = nullptr) const;

  // Reads each line of an answer that is text, as it comes: the log of a pod. Ends as
  // Transport::stream does; not retried. `idle_timeout`: nothing arrived for this time.
  base::Status text_lines(const std::string& path, base::Duration idle_timeout,
                          const std::function<bool(std::string_view)>& on_line,
                          std::stop_token stop) const;

  // Returns whether the API server serves the kind, by its discovery. The answer to a list does not
  // say it: a kind that is not served and a load balancer that fails over answer with the same
  // text.
  base::Result<bool> serves(const ResourceInfo& resource) const;

  // Reads each page's items, one by one, in the server's order; a page too large for one answer
  // comes as smaller ones. Returns the list's resourceVersion. `restarted` is called when the items
  // so far are void since the list begins again.
  base::Result<std::string> list_json(const ResourceInfo& resource, const ListOptions& options,
                                      const std::function<void(const JsonView&)>& on_item,
                                      const std::function<void()>& restarted) const;

  // Runs one watch session with bookmarks, on the calling thread; not retried. Ends as
  // Transport::stream does; an ERROR event ends it with that error (kGone: list again).
  // on_event returns false to end it. A bookmark's object has only metadata.resourceVersion.
  base::Status watch_json(const ResourceInfo& resource, const WatchOptions& options,
                          const std::function<bool(WatchEventType, const JsonView&)>& on_event,
                          std::stop_token stop) const;

 private:
  class Core;

  // The calls below the typed ones: they return the text of the answer.
  base::Result<std::string> send(Request request, const std::string& context) const;
  base::Result<std::string> get_text(const ResourceInfo& resource, const ObjectKey& key) const;
  base::Result<std::string> post_json(const ResourceInfo& resource, const std::string& ns,
                                      const nlohmann::json& object,
                                      const WriteOptions& options) const;
  base::Result<std::string> put_json(const ResourceInfo& resource, const ObjectKey& key, Part part,
                                     const nlohmann::json& object,
                                     const WriteOptions& options) const;
  base::Result<std::string> patch_json(const ResourceInfo& resource, const ObjectKey& key,
                                       Part part, const nlohmann::json& merge_patch,
                                       const PatchOptions& options) const;
  base::Status delete_json(const ResourceInfo& resource, const ObjectKey& key,
                           const DeleteOptions& options) const;
  std::string write_query(bool dry_run) const;

  Client(std::shared_ptr<Core> core, CallOptions call);

  std::shared_ptr<Core> core_;
  CallOptions call_;
};

}  // namespace kube
