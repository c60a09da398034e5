// Watches: every change that the store records is offered to all of them, in order; each keeps what
// its selector matches until its reader fetches it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kube/clock.h"
#include "kube/testing/api_server/body_stream.h"
#include "kube/testing/api_server/selector.h"
#include "kube/testing/api_server/store.h"

namespace devcluster {

// A reader that falls behind by more loses its watch, as on a real server.
inline constexpr std::size_t kWatchQueueChangesMax = 16384;

// One change as a watcher sees it: ADDED, MODIFIED, DELETED (also of an object that enters or
// leaves the selector).
struct WatchEvent {
  ChangeType type = ChangeType::kAdded;
  ObjectPtr object;
};

// Turns an object into the representation that was asked for (plain, table, metadata only).
using ObjectEncoder = std::function<std::string(const ObjectPtr& object)>;

struct WatchOptions {
  GroupResource resource;  // where the objects are stored
  Selector selector;
  ObjectEncoder encode;
  std::string kind;  // of bookmarks
  std::string api_version;
  std::optional<base::Duration> timeout;            // on the clock's monotonic time
  std::optional<base::Duration> bookmark_interval;  // nullopt: no bookmarks
  // A bookmark with the annotation k8s.io/initial-events-end follows the initial events.
  bool mark_initial_end = false;
};

// offer(), finish() and fail() are called by the hub and by Rest under the server's lock; read() by
// one reader without it; cancel() by any thread.
class WatchStream final : public BodyStream {
 public:
  // `initial` is delivered first; `rv` is the store's version at this moment.
  WatchStream(const kube::Clock& clock, WatchOptions options, std::vector<WatchEvent> initial,
              std::int64_t rv);

  void offer(const ChangePtr& change);
  // Sends the end, or a broken connection, after what is queued.
  void finish(StreamState state);
  // Sends the end, with an ERROR event that carries this metav1.Status.
  void fail(const std::string& status_json);
  const WatchOptions& options() const { return options_; }

  StreamState read(std::string& out, base::Duration wait) override;
  void cancel() override;

 private:
  std::optional<WatchEvent> seen_through_selector(const Change& change) const;
  std::string encode(const WatchEvent& event) const;
  std::string bookmark(std::int64_t rv, bool initial_end) const;

  const kube::Clock& clock_;
  const WatchOptions options_;
  const base::Duration begin_;

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<WatchEvent> queue_;  // guarded by mu_, as all below
  std::string error_line_;        // delivered after the queue, once
  std::int64_t seen_rv_;          // of the newest change offered, matching or not
  StreamState state_ = StreamState::kOpen;
  bool cancelled_ = false;
  bool initial_end_due_;
  base::Duration next_bookmark_;
};

// The list of open watches. Not thread-safe; guarded by the API server's lock.
class WatchHub {
 public:
  void add(const std::shared_ptr<WatchStream>& watch) { watches_.push_back(watch); }
  void publish(const ChangePtr& change);

  // Ends all watches of a resource ("" = of all).
  void finish(const std::string& resource, StreamState state);
  // Present watchers of the resource do not get its next change.
  void lose_next(const std::string& resource) { lose_next_.insert(resource); }
  std::size_t open_count();

 private:
  std::vector<std::weak_ptr<WatchStream>> watches_;
  std::multiset<std::string> lose_next_;
};

}  // namespace devcluster
