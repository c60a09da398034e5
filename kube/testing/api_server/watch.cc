#include "kube/testing/api_server/watch.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

// Between the store and a reader stands one queue for each watch. A writer of the store, under the
// server's lock, only appends shared pointers to it; the reader's thread turns them into JSON. So a
// slow reader takes no time of the writers, and of memory kWatchQueueChangesMax entries at most.
namespace devcluster {
namespace {

using nlohmann::json;

// How often a waiting reader looks at the clock (which may be one that tests move).
constexpr base::Duration kClockLookInterval = std::chrono::seconds{1};

const char* type_text(ChangeType type) {
  switch (type) {
    case ChangeType::kAdded:
      return "ADDED";
    case ChangeType::kModified:
      return "MODIFIED";
    case ChangeType::kDeleted:
      return "DELETED";
  }
  return "ERROR";
}

}  // namespace

WatchStream::WatchStream(const kube::Clock& clock, WatchOptions options,
                         std::vector<WatchEvent> initial, std::int64_t rv)
    : clock_{clock},
      options_{std::move(options)},
      begin_{clock.monotonic()},
      queue_{initial.begin(), initial.end()},
      seen_rv_{rv},
      initial_end_due_{options_.mark_initial_end},
      next_bookmark_{begin_ + options_.bookmark_interval.value_or(base::Duration{0})} {}

// A watch with a selector sees objects come and go that only change: an object that begins to match
// is ADDED, one that no longer matches is DELETED. The operator's informers rely on both.
std::optional<WatchEvent> WatchStream::seen_through_selector(const Change& change) const {
  const Selector& selector = options_.selector;
  const bool before = change.previous && selector.matches(*change.previous);
  const bool after = change.type != ChangeType::kDeleted && selector.matches(*change.object);
  if (before && after) return WatchEvent{ChangeType::kModified, change.object};
  if (after) return WatchEvent{ChangeType::kAdded, change.object};
  if (!before) return std::nullopt;
  if (change.type == ChangeType::kDeleted) return WatchEvent{ChangeType::kDeleted, change.object};
  // It left the selector: its last state within, with the version of the change.
  json last = *change.previous;
  last["metadata"]["resourceVersion"] = std::to_string(change.rv);
  return WatchEvent{ChangeType::kDeleted, std::make_shared<const json>(std::move(last))};
}

// Under the server's lock. Filters outside of mu_, which the reader may hold.
void WatchStream::offer(const ChangePtr& change) {
  if (change->resource != options_.resource) {
    // Other resources' changes count for bookmarks too.
    const std::scoped_lock lock{mu_};
    seen_rv_ = change->rv;
    return;
  }
  std::optional<WatchEvent> event = seen_through_selector(*change);
  const std::scoped_lock lock{mu_};
  seen_rv_ = change->rv;
  if (!event || state_ != StreamState::kOpen) return;
  // A reader that does not read loses its session and must list again, as with a real server's
  // cache; memory does not grow with it.
  if (queue_.size() >= kWatchQueueChangesMax) {
    state_ = StreamState::kEnd;
  } else {
    queue_.push_back(std::move(*event));
  }
  changed_.notify_all();
}

void WatchStream::finish(StreamState state) {
  const std::scoped_lock lock{mu_};
  state_ = state;
  changed_.notify_all();
}

// A watch from too old a version has status 200 and this one event: the client learns of it only
// from the stream.
void WatchStream::fail(const std::string& status_json) {
  const std::scoped_lock lock{mu_};
  error_line_ = R"({"type":"ERROR","object":)" + status_json + "}\n";
  state_ = StreamState::kEnd;
  changed_.notify_all();
}

// The reader has gone: the queue is no longer delivered, unless read() takes it on its way out.
void WatchStream::cancel() {
  const std::scoped_lock lock{mu_};
  cancelled_ = true;
  changed_.notify_all();
}

std::string WatchStream::encode(const WatchEvent& event) const {
  return std::string{R"({"type":")"} + type_text(event.type) + R"(","object":)" +
         options_.encode(event.object) + "}\n";
}

// Returns an object with nothing but its version (and kind, which clients need to decode it).
std::string WatchStream::bookmark(std::int64_t rv, bool initial_end) const {
  json metadata = {{"resourceVersion", std::to_string(rv)}, {"creationTimestamp", nullptr}};
  if (initial_end) metadata["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  const json line = {{"type", "BOOKMARK"},
                     {"object",
                      {{"kind", options_.kind},
                       {"apiVersion", options_.api_version},
                       {"metadata", std::move(metadata)}}}};
  return line.dump() + "\n";
}

// Called again and again by the thread of the connection. Each call returns after at most `wait`
// with what is there now: 1. events, 2. the mark behind the initial ones, 3. the end, 4. a
// bookmark. kEnd comes only with a call that has nothing else to return.
StreamState WatchStream::read(std::string& out, base::Duration wait) {
  // Two clocks: that of the tests, which may stand still or jump, decides about time-outs and
  // bookmarks; the machine's clock bounds how long this thread waits.
  const base::Duration give_up = clock_.monotonic() + wait;
  const auto real_give_up = std::chrono::steady_clock::now() + wait;
  std::unique_lock lock{mu_};
  while (true) {
    const base::Duration now = clock_.monotonic();
    // 1. events first: whatever ends the session, nothing before its end is lost
    if (!queue_.empty()) {
      std::deque<WatchEvent> batch = std::exchange(queue_, {});
      lock.unlock();  // Encoding costs; the server's writers must not wait for it.
      for (const WatchEvent& event : batch) out += encode(event);
      return StreamState::kOpen;
    }
    if (!error_line_.empty()) {
      out += std::exchange(error_line_, {});
      return StreamState::kOpen;
    }
    // 2. the end of the initial events (sendInitialEvents), once they have been read
    if (initial_end_due_) {
      initial_end_due_ = false;
      out += bookmark(seen_rv_, true);
      return StreamState::kOpen;
    }
    // 3. the end of the session
    if (cancelled_) return StreamState::kEnd;
    if (state_ != StreamState::kOpen) return state_;
    if (options_.timeout && now >= begin_ + *options_.timeout) {
      state_ = StreamState::kEnd;
      if (options_.bookmark_interval) out += bookmark(seen_rv_, false);
      return StreamState::kOpen;  // The end comes with the next read.
    }
    // 4. nothing to send: a bookmark now and then
    if (options_.bookmark_interval && now >= next_bookmark_) {
      next_bookmark_ = now + *options_.bookmark_interval;
      out += bookmark(seen_rv_, false);
      return StreamState::kOpen;
    }
    const auto real_now = std::chrono::steady_clock::now();
    if (now >= give_up || real_now >= real_give_up) return StreamState::kOpen;
    changed_.wait_until(lock, std::min(real_give_up, real_now + kClockLookInterval));
  }
}

void WatchHub::publish(const ChangePtr& change) {
  const auto lost = lose_next_.find(change->resource.resource);
  const bool lose = lost != lose_next_.end();
  // Once: a lost event is what a client sees if its watch cache skips one. Only the next list
  // repairs it.
  if (lose) lose_next_.erase(lost);
  std::erase_if(watches_, [&](const std::weak_ptr<WatchStream>& weak) {
    const std::shared_ptr<WatchStream> watch = weak.lock();
    if (!watch) return true;
    if (!lose || watch->options().resource != change->resource) watch->offer(change);
    return false;
  });
}

// The watches stay in the list until their readers let go of them.
void WatchHub::finish(const std::string& resource, StreamState state) {
  for (const auto& weak : watches_) {
    const auto watch = weak.lock();
    if (watch && (resource.empty() || watch->options().resource.resource == resource)) {
      watch->finish(state);
    }
  }
}

std::size_t WatchHub::open_count() {
  std::erase_if(watches_, [](const auto& weak) { return weak.expired(); });
  return watches_.size();
}

}  // namespace devcluster
