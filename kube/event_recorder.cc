#include "kube/event_recorder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/cut_text.h"
#include "kube/api/time_format.h"

namespace kube {
namespace {

// core/v1 refuses longer ones.
constexpr std::size_t kMessageBytesMax = 1024;
// Events are for people: a fifth of a second is not noticed, and an idle loop costs nothing.
constexpr base::Duration kIdleWait = std::chrono::milliseconds{200};

std::string hex(std::uint64_t value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(value));
  return text.data();
}

}  // namespace

// Fewer tries and less time than other calls: an event is worth little after half a minute.
EventRecorder::EventRecorder(Client client, const Clock& clock, EventSource source)
    : client_{client.with({.timeout = std::chrono::seconds{10}, .attempts_max = 3, .backoff = {}})},
      clock_{clock},
      source_{std::move(source)} {}

void EventRecorder::record(const ObjectReference& object, EventType type, std::string reason,
                           std::string message) {
  const base::Instant now = clock_.wall();
  message.resize(base::head_of(message, kMessageBytesMax).size());
  Event event{.involved_object = object,
              .type = type == EventType::kNormal ? "Normal" : "Warning",
              .reason = std::move(reason),
              .message = std::move(message),
              .source = source_,
              .first_timestamp = now,
              .last_timestamp = now};
  // Events have a namespace even if their object has none; kubectl looks for those of cluster
  // objects in "default".
  event.metadata.ns = object.ns.empty() ? "default" : object.ns;
  const std::lock_guard lock{mu_};
  // Events are for people to read. A server that does not take them must not cost memory without
  // end.
  if (queue_.size() >= kQueuedMax) {
    ++dropped_;
    return;
  }
  // Much as client-go names them; the count keeps events of one microsecond apart.
  event.metadata.name = object.name + "." +
                        hex(static_cast<std::uint64_t>(base::micros_since_epoch(now))) + "." +
                        hex(names_count_++);
  queue_.push_back(std::move(event));
}

// Writes at most kPerStepMax events, so that a loop with a full queue still sees its stop. Returns
// 0 if there may be more.
base::Duration EventRecorder::step() {
  for (std::size_t written = 0; written < kPerStepMax; ++written) {
    Event event;
    {
      const std::lock_guard lock{mu_};
      if (queue_.empty()) return kIdleWait;
      event = std::move(queue_.front());
      queue_.pop_front();
    }
    // Without the lock, so that record() never waits for the server.
    write(event);
  }
  return {};
}

// An event that was written before is counted up, any other is created.
void EventRecorder::write(const Event& event) {
  const Identity identity{event.involved_object.kind + "/" + event.involved_object.uid + "/" +
                              event.involved_object.name,
                          event.type, event.reason, event.message};
  if (raise_count(identity, event)) return;
  const auto created = client_.create(event);
  // An event is never repeated: the next one of its kind will say the same.
  if (!created.ok()) {
    ++dropped_;
    return;
  }
  remember(identity, event);
}

// Returns true if no new event is needed. The server removes events after its --event-ttl (an
// hour), so a patch may find none.
bool EventRecorder::raise_count(const Identity& identity, const Event& event) {
  const auto found = remembered_.find(identity);
  if (found == remembered_.end()) return false;
  Remembered& known = found->second;
  const base::Duration now = clock_.monotonic();
  if (now - known.last > kRepeatWindow) {
    remembered_.erase(found);
    return false;
  }
  const nlohmann::json patch{{"count", known.count + 1},
                             {"lastTimestamp", format_time(*event.last_timestamp)}};
  // The count is kept here, not read back: only this process writes the event.
  const auto patched = client_.patch<Event>(known.key, patch);
  if (!patched.ok() && patched.error().code == base::Code::kNotFound) {
    remembered_.erase(found);  // the server forgets events after an hour
    return false;
  }
  // One repetition is not counted. The event itself is there, so no second one is made.
  if (!patched.ok()) {
    ++dropped_;
    return true;
  }
  ++known.count;
  known.last = now;
  return true;
}

void EventRecorder::remember(const Identity& identity, const Event& event) {
  // Forgotten means only that the next repetition is an event of its own.
  if (remembered_.size() >= kRememberedMax) {
    // Linear, but only when the table is full, and only for an event that is created by a request
    // anyway.
    const auto oldest = std::ranges::min_element(
        remembered_, {}, [](const auto& entry) { return entry.second.last; });
    remembered_.erase(oldest);
  }
  remembered_[identity] = {key_of(event.metadata), 1, clock_.monotonic()};
}

}  // namespace kube
