#include "kube/informer_core.h"

#include <optional>
#include <utility>

// The protocol between an informer and the API server. SOURCE: Kubernetes API concepts, "Efficient
// detection of changes"; client-go tools/cache/reflector.go.
//
// A list returns all objects and the version V of the state that it shows. A watch from V on
// returns every change after V, in the order in which the server stored them, each with its own
// version. So list + watch see every state of each object as long as the watch can be resumed at
// the last version that it delivered. A server keeps changes only for some minutes; a watch from an
// older version is answered with 410 Gone, and then only another list can tell what changed.
// Between two lists an object may have been deleted and made again, so objects are compared by UID
// and version and not by name.
//
// The machine has two states: not listed (step() lists) and listed (step() holds one watch
// session). resource_version_ is where the next session begins, and is set from every event, from
// bookmarks too: without those an informer whose objects do not change would hold a version that
// the server forgets.
namespace kube {
namespace {

using base::Code;

// A session that ends sooner and brought nothing is a server that does not want us now.
constexpr base::Duration kShortSession = std::chrono::seconds{1};

}  // namespace

InformerCore::InformerCore(Client client, const Clock& clock, const ResourceInfo& resource,
                           InformerOptions options, Hooks hooks)
    : client_{std::move(client)},
      clock_{clock},
      resource_{resource},
      options_{std::move(options)},
      hooks_{std::move(hooks)},
      fields_{options_.fields == nullptr ? hooks_.fields : options_.fields},
      backoff_{options_.backoff, options_.seed},
      prng_{options_.seed + 1} {}

// Lists once, then watches from the list's version on, session after session. Lists again only if
// the server says that the version is too old (410), or after an error that says nothing about the
// state.
base::Duration InformerCore::step(std::stop_token stop) {
  if (stop.stop_requested()) return {};
  return listed_ ? watch(std::move(stop)) : list();
}

// 1. look in the server's discovery for a kind that may be missing
// 2. read all pages into `fresh`, beside the cache: handlers see no half of a list
// 3. an object that cannot be decoded must not look deleted: if the cache has an older version of
//    it, that version stays
// 4. swap, and report the differences
// 5. report the objects that could not be decoded, once per version
base::Duration InformerCore::list() {
  if (options_.unserved_retry) {
    const auto served = client_.serves(resource_);
    if (!served.ok()) return failed(served.error());
    if (!*served) return not_served();
  }
  Cache fresh;
  std::vector<Undecodable> undecodable;
  const auto on_item = [&](const JsonView& item) {
    if (hooks_.wants && !hooks_.wants(item)) return;
    auto entry = hooks_.decode(item);
    if (entry.ok()) {
      ObjectKey key = entry->key;
      fresh.insert_or_assign(std::move(key), std::move(*entry));
    } else {
      undecodable.push_back(undecodable_of(item, entry.error()));
    }
  };
  const auto restarted = [&] {
    fresh.clear();
    undecodable.clear();
  };
  const auto version = client_.list_json(resource_, list_options(), on_item, restarted);
  if (!version.ok()) {
    // The failure is one of the cache, whose answer is in one piece: its version is not known there
    // (etcd was restored, or that server is behind), or it is too large.
    lists_newest_ = version.error().code == Code::kGone || version.error().code == Code::kTooLarge;
    return failed(version.error());
  }
  lists_newest_ = false;
  for (const Undecodable& one : undecodable) {
    // Only this thread writes the cache, so it may be read here without the lock.
    //
    // The UID must be the same: an object that was created again under its name is another one, and
    // the old one is gone.
    const auto last = cache_.find(one.key);
    if (last != cache_.end() && last->second.uid == one.uid) fresh.insert(*last);
  }
  resource_version_ = *version;
  // A failure of the watch now resumes at resource_version_, and only 410 or an unclear error comes
  // back here.
  listed_ = true;
  replace_all(std::move(fresh));
  std::map<ObjectKey, std::string> still_bad;
  for (const Undecodable& one : undecodable) {
    report(one);
    still_bad[one.key] = one.resource_version;
  }
  // Only the objects of this list: those that were deleted or mended during a gap are forgotten.
  reported_ = std::move(still_bad);
  if (hooks_.on_list) hooks_.on_list(resource_version_);
  tell_version();
  // Follows the handlers: a reader that sees synced_ finds that they know every object.
  synced_ = true;
  backoff_.reset();
  return {};
}

// A list of the newest state cannot go back behind what was seen before. One of the server's cache
// goes back no further than the version says. It has no pages: a server reads those from etcd.
ListOptions InformerCore::list_options() const {
  ListOptions list{.ns = options_.ns,
                   .label_selector = options_.label_selector,
                   .field_selector = options_.field_selector,
                   .page_items_max = options_.page_items_max,
                   .fields = fields_};
  if (options_.freshness == Freshness::kNewest || lists_newest_) return list;
  list.resource_version = resource_version_.empty() ? "0" : resource_version_;
  list.page_items_max = 0;
  return list;
}

// The kind was never served, or its definition was deleted, and all its objects with it.
base::Duration InformerCore::not_served() {
  replace_all({});
  reported_.clear();
  synced_ = true;
  backoff_.reset();
  return *options_.unserved_retry;
}

// Runs one session. Events are handled while it runs; this function returns when it has ended.
base::Duration InformerCore::watch(std::stop_token stop) {
  const base::Duration began = clock_.monotonic();
  bool event_seen = false;
  // Once to twice the time-out, as client-go has it: sessions that began together end apart.
  const auto extra = prng_.below(static_cast<std::uint64_t>(options_.watch_timeout.count()) + 1);
  const auto ended = client_.watch_json(
      resource_,
      {.ns = options_.ns,
       .label_selector = options_.label_selector,
       .field_selector = options_.field_selector,
       .resource_version = resource_version_,
       .server_timeout = options_.watch_timeout + base::Duration{static_cast<std::int64_t>(extra)},
       .idle_timeout = options_.watch_idle_timeout,
       .gather = options_.gather,
       .fields = fields_},
      // Runs on this thread, once per event, between the bytes of the stream: a slow handler makes
      // the server wait (TCP's flow control) and loses nothing.
      [&](WatchEventType type, const JsonView& object) {
        // Bookmarks count as well: they show that the session works.
        event_seen = true;
        on_event(type, object);
        tell_version();
        return !stop.stop_requested();
      },
      stop);
  if (stop.stop_requested()) return {};
  return after_watch(ended, event_seen || clock_.monotonic() - began >= kShortSession);
}

// Returns how long to rest before the next step. A session that brought something, or lasted,
// resets the back-off; one that ended at once counts as a failure even without an error, or a
// server that closes each watch would be asked without a pause.
base::Duration InformerCore::after_watch(const base::Status& ended, bool progress) {
  if (progress) backoff_.reset();
  if (ended.ok()) return progress ? base::Duration{} : backoff_.next();
  switch (ended.error().code) {
    case Code::kCancelled:
      return {};
    // The version is older than what etcd or the watch cache still has. Only a list can tell what
    // was missed.
    case Code::kGone:
      listed_ = false;
      if (progress) return {};
      // The server is there, whatever failed before: the list need not wait for as long as another
      // try of the same would.
      backoff_.reset();
      return backoff_.next();
    case Code::kTimeout:
      // A long silence: most likely nothing happened. The resumed watch will show it.
      return progress ? base::Duration{} : failed(ended.error());
    // The connection broke. The version is still good, so the watch resumes behind it, and no list
    // of thousands of objects is read for a network that flickers.
    // If the kind may be missing, the next step finds out whether it is still served.
    case Code::kUnavailable:
      if (options_.unserved_retry) listed_ = false;
      return failed(ended.error());
    case Code::kInvalidArgument:
    case Code::kUnauthenticated:
    case Code::kPermissionDenied:
    case Code::kNotFound:
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kTooLarge:
    case Code::kInternal:
      break;
  }
  // The list after any error shows the state in full.
  listed_ = false;
  return failed(ended.error());
}

// Swaps the cache and reports the differences: deletions first, then additions and changes in the
// order of the keys. The swap comes first, so that handlers that look into the cache find the new
// state.
void InformerCore::replace_all(Cache fresh) {
  std::vector<Change> changes;
  for (const auto& [key, old] : cache_) {
    if (!fresh.contains(key)) changes.push_back({old.object, nullptr});
  }
  for (const auto& [key, entry] : fresh) {
    const auto old = cache_.find(key);
    // The same version is the same object: handlers hear nothing of objects that did not change
    // during the gap.
    if (old == cache_.end()) {
      changes.push_back({nullptr, entry.object});
    } else if (old->second.resource_version != entry.resource_version ||
               old->second.uid != entry.uid) {
      changes.push_back({old->second.object, entry.object});
    }
  }
  {
    const std::lock_guard lock{mu_};
    cache_.swap(fresh);
  }
  // Without the lock, so that a handler may read the cache.
  for (const Change& change : changes) hooks_.on_change(change);
}

// 1. The version counts even if the object is not wanted or cannot be decoded: the next watch goes
//    on behind it.
// 2. A bookmark has nothing but the version.
// 3. Handlers see an object that stops being wanted as deleted, because they know it.
// 4. A deletion carries the object's last state, with the version of the deletion.
// 5. Anything else is stored, ADDED and MODIFIED alike: after a gap the server's word for it may
//    differ from what the cache knows.
void InformerCore::on_event(WatchEventType type, const JsonView& object) {
  const Undecodable identity = undecodable_of(object, {});
  if (!identity.resource_version.empty()) resource_version_ = identity.resource_version;
  if (type == WatchEventType::kBookmark) return;
  if (hooks_.wants && !hooks_.wants(object)) return erase(identity.key, nullptr);
  auto entry = hooks_.decode(object);
  if (type == WatchEventType::kDeleted) {
    reported_.erase(identity.key);
    erase(identity.key, entry.ok() ? entry->object : nullptr);
    return;
  }
  if (!entry.ok()) {
    report(undecodable_of(object, entry.error()));
    return;
  }
  reported_.erase(identity.key);
  store(std::move(*entry));
}

// The handler runs after the lock was given up, with pointers that keep both states alive.
void InformerCore::store(Entry entry) {
  Change change{nullptr, entry.object};
  {
    const std::lock_guard lock{mu_};
    Entry& slot = cache_[entry.key];
    // A watch that was resumed may repeat what the list already had.
    if (slot.object != nullptr && slot.uid == entry.uid &&
        slot.resource_version == entry.resource_version) {
      return;
    }
    change.before = slot.object;
    slot = std::move(entry);
  }
  hooks_.on_change(change);
}

void InformerCore::erase(const ObjectKey& key, std::shared_ptr<const void> last) {
  {
    const std::lock_guard lock{mu_};
    const auto found = cache_.find(key);
    if (found == cache_.end()) return;
    // A deletion that was only found by a list, or whose last object cannot be decoded.
    if (last == nullptr) last = found->second.object;
    cache_.erase(found);
  }
  hooks_.on_change({std::move(last), nullptr});
}

void InformerCore::report(const Undecodable& undecodable) {
  std::string& version = reported_[undecodable.key];
  // Every list has it again; it is worth one report until its version changes.
  if (version == undecodable.resource_version && !version.empty()) return;
  version = undecodable.resource_version;
  if (hooks_.on_undecodable) hooks_.on_undecodable(undecodable);
}

void InformerCore::tell_version() const {
  if (hooks_.on_version) hooks_.on_version(resource_version_);
}

// The error goes to the log, the wait to step()'s caller; the informer itself goes on.
base::Duration InformerCore::failed(const base::Error& error) {
  if (hooks_.on_error) hooks_.on_error(error);
  return backoff_.next();
}

std::shared_ptr<const void> InformerCore::find(const ObjectKey& key) const {
  const std::lock_guard lock{mu_};
  const auto found = cache_.find(key);
  return found == cache_.end() ? nullptr : found->second.object;
}

// Copies pointers only, so the lock is held for microseconds even with thousands of objects.
std::vector<std::shared_ptr<const void>> InformerCore::snapshot() const {
  const std::lock_guard lock{mu_};
  std::vector<std::shared_ptr<const void>> out;
  out.reserve(cache_.size());
  for (const auto& [key, entry] : cache_) out.push_back(entry.object);
  return out;
}

std::size_t InformerCore::size() const {
  const std::lock_guard lock{mu_};
  return cache_.size();
}

}  // namespace kube
