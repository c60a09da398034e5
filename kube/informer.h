// Informer: a copy of all objects of one kind (and selector) that follows the API server, with a
// call for each change. Promises, and what is not promised:
//
// * Eventual: the cache lags behind the server and may skip states in between. It never goes back
//   to an older state of an object while one server's history goes on.
// * The handlers are called serially, from within step(), after the cache has the change. They must
//   be quick and must only enqueue: while one runs, the watch does not move. Nothing is locked
//   meanwhile, so a handler may read the cache.
// * Per key, changes come in order. Between keys there is no order.
// * An object that was deleted and made again may appear as one update: compare UIDs.
// * After a list that followed a gap (410, a long outage), objects that are gone are delivered as
//   deletes of the last known object. Also a delete that was seen may carry an older last state.
// * An object that does not decode is reported once per version to on_undecodable; the cache keeps
//   the last version that did (of the same UID), or has none. Its deletion is reported like any
//   other's, if it was in the cache.
// * has_synced(): the first list is complete and all its adds have been delivered.
// * A kind that the server does not serve has no objects, if the options say that this may be
//   (unserved_retry). Its objects are delivered as deletes when its definition goes, and as adds
//   when it comes, within that time.
//
// Errors of the server never end it: it tries again with back-off and jitter, resumes the watch
// where it was, and lists again after 410. step() and the constructor belong to one thread; all
// const functions may be called from any thread. Cost: memory of the transformed objects; a lookup
// is O(log n).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "kube/client.h"
#include "kube/informer_core.h"

namespace kube {

template <ApiObject T>
class Informer {
 public:
  using Pointer = std::shared_ptr<const T>;

  // Each may be absent.
  struct Handlers {
    std::function<void(const Pointer& object)> on_add{};
    std::function<void(const Pointer& before, const Pointer& now)> on_update{};
    std::function<void(const Pointer& last)> on_delete{};
    std::function<void(const Undecodable&)> on_undecodable{};
    // A list or watch failed and will be tried again; for logs.
    std::function<void(const base::Error&)> on_error{};
    // All changes up to this version of the API server's store have been delivered. Not called
    // between those of a list, which have no order.
    std::function<void(const std::string& version)> on_version{};
    // The list of this version has been delivered. Objects that came and went since the version
    // before are not known. on_version follows.
    std::function<void(const std::string& version)> on_list{};
  };
  // Drops what is not needed before the object is stored (templates, annotations). Must keep name,
  // namespace, uid and resourceVersion.
  using Transform = std::function<void(T&)>;
  // Chooses objects that no selector of the server can choose. It sees each as it comes, with the
  // fields of T: an object that is not chosen is dropped before it is decoded, as if it did not
  // exist.
  using Filter = std::function<bool(const JsonView&)>;

  Informer(Client client, const Clock& clock, InformerOptions options, Handlers handlers,
           Transform transform = {}, Filter wants = {})
      : core_{std::move(client), clock, T::kResource, std::move(options),
              hooks(std::move(handlers), std::move(transform), std::move(wants))} {}

  // Makes one list, or one watch session: blocks until it ends or `stop` is requested (at once).
  // Returns how long to wait before the next step.
  base::Duration step(std::stop_token stop) { return core_.step(std::move(stop)); }

  // Makes the next step list, whatever is known, and has_synced() is false until then. Belongs to
  // the thread of step(), between two of them.
  void list_again() { core_.list_again(); }

  bool has_synced() const { return core_.has_synced(); }
  // Null when there is none.
  Pointer find(const ObjectKey& key) const { return typed(core_.find(key)); }
  // Returns all, ordered by key. Cost: a pointer per object.
  std::vector<Pointer> snapshot() const {
    std::vector<Pointer> out;
    for (auto& object : core_.snapshot()) out.push_back(typed(std::move(object)));
    return out;
  }
  std::size_t size() const { return core_.size(); }

 private:
  static Pointer typed(std::shared_ptr<const void> object) {
    return std::static_pointer_cast<const T>(std::move(object));
  }

  static InformerCore::Hooks hooks(Handlers handlers, Transform transform, Filter wants) {
    InformerCore::Hooks out;
    out.fields = &known_fields<T>();
    out.wants = std::move(wants);
    out.decode = [transform = std::move(transform)](
                     const JsonView& read) -> base::Result<InformerCore::Entry> {
      auto object = decode<T>(read);
      if (!object.ok()) return object.error();
      if (transform) transform(*object);
      InformerCore::Entry entry{.key = key_of(object->metadata),
                                .uid = object->metadata.uid,
                                .resource_version = object->metadata.resource_version,
                                .object = nullptr};
      entry.object = std::make_shared<const T>(std::move(*object));
      return entry;
    };
    out.on_change = [handlers](const InformerCore::Change& change) {
      const Pointer before = typed(change.before);
      const Pointer now = typed(change.now);
      if (before == nullptr) {
        if (handlers.on_add) handlers.on_add(now);
      } else if (now == nullptr) {
        if (handlers.on_delete) handlers.on_delete(before);
      } else if (handlers.on_update) {
        handlers.on_update(before, now);
      }
    };
    out.on_undecodable = std::move(handlers.on_undecodable);
    out.on_error = std::move(handlers.on_error);
    out.on_version = std::move(handlers.on_version);
    out.on_list = std::move(handlers.on_list);
    return out;
  }

  InformerCore core_;
};

}  // namespace kube
