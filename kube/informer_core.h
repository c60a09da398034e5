// The untyped part of Informer<T>, which has the contract.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "kube/backoff.h"
#include "kube/client.h"

namespace kube {

// The age of the state that a list may show.
enum class Freshness {
  kNewest,  // the state as of the list; the server may read all objects of the kind from etcd for
            // it
  // A state of the server's cache that is not older than what this informer has seen; at first,
  // any. The watch that follows begins there, so what is old is corrected as soon as it is open.
  kNotOlderThanSeen,
};

struct InformerOptions {
  std::string ns{};  // "" = all namespaces
  std::string label_selector{};
  std::string field_selector{};  // "spec.nodeName=n12"
  std::int32_t page_items_max = 500;
  Freshness freshness = Freshness::kNewest;
  BackoffOptions backoff{};
  // The length of a watch session; the server gets it plus 0 to 100 % at random, so that the
  // watches of many clients do not end together.
  base::Duration watch_timeout = std::chrono::minutes{5};
  base::Duration watch_idle_timeout = std::chrono::minutes{2};
  base::Duration gather{};  // of a watch: Request::gather
  // Set for a kind that an API server may not serve: it then has no objects, and is asked for again
  // after that long. Absent: an API server that does not serve it is an error like any other.
  std::optional<base::Duration> unserved_retry{};
  std::uint64_t seed = 1;
  // Less than what T reads; null: all of it. Must live longer than the informer.
  const KnownFields* fields = nullptr;
};

class InformerCore {
 public:
  struct Entry {
    ObjectKey key;
    std::string uid;
    std::string resource_version;
    std::shared_ptr<const void> object;
  };
  // Added: before is null; deleted: now is null.
  struct Change {
    std::shared_ptr<const void> before;
    std::shared_ptr<const void> now;
  };
  struct Hooks {
    const KnownFields* fields = nullptr;  // that T reads; null: all
    // Absent: all objects. The others are dropped before they are decoded, and are not kept.
    std::function<bool(const JsonView&)> wants;
    std::function<base::Result<Entry>(const JsonView&)> decode;
    std::function<void(const Change&)> on_change;
    std::function<void(const Undecodable&)> on_undecodable;  // may be absent
    std::function<void(const base::Error&)> on_error;        // may be absent
    std::function<void(const std::string&)> on_version;      // may be absent
    std::function<void(const std::string&)> on_list;         // may be absent
  };

  InformerCore(Client client, const Clock& clock, const ResourceInfo& resource,
               InformerOptions options, Hooks hooks);

  base::Duration step(std::stop_token stop);

  void list_again() {
    listed_ = false;
    synced_ = false;
    backoff_.reset();
  }
  bool has_synced() const { return synced_.load(); }
  std::shared_ptr<const void> find(const ObjectKey& key) const;
  std::vector<std::shared_ptr<const void>> snapshot() const;
  std::size_t size() const;

 private:
  using Cache = std::map<ObjectKey, Entry>;

  base::Duration list();
  ListOptions list_options() const;
  base::Duration not_served();
  base::Duration watch(std::stop_token stop);
  base::Duration after_watch(const base::Status& ended, bool progress);
  void replace_all(Cache fresh);
  void on_event(WatchEventType type, const JsonView& object);
  void store(Entry entry);
  void erase(const ObjectKey& key, std::shared_ptr<const void> last);
  void report(const Undecodable& undecodable);
  void tell_version() const;
  base::Duration failed(const base::Error& error);

  Client client_;
  const Clock& clock_;
  const ResourceInfo resource_;
  const InformerOptions options_;
  const Hooks hooks_;
  const KnownFields* const fields_;  // of an object as the hooks get it

  Backoff backoff_;
  base::Prng prng_;
  bool listed_ = false;           // false: the next step lists
  bool lists_newest_ = false;     // the next list, whatever the options say
  std::string resource_version_;  // of the last event or list
  // Versions that have been reported as undecodable.
  std::map<ObjectKey, std::string> reported_;
  std::atomic<bool> synced_{false};

  mutable std::mutex mu_;
  Cache cache_;  // guarded by mu_; written only by the thread of step()
};

}  // namespace kube
