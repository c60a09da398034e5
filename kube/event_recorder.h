// EventRecorder: writes what happened to an object as a Kubernetes Event, for `kubectl describe`.
// The same event again within kRepeatWindow raises the count of the first instead of making a new
// one. Best effort: an event that cannot be written is dropped and counted, never retried forever.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "kube/api/event.h"
#include "kube/client.h"

namespace kube {

enum class EventType { kNormal, kWarning };

// record() may be called from any thread; step() belongs to one.
class EventRecorder {
 public:
  static constexpr std::size_t kQueuedMax = 1024;      // beyond that, new events are dropped
  static constexpr std::size_t kRememberedMax = 1024;  // events whose count may still be raised
  static constexpr base::Duration kRepeatWindow = std::chrono::minutes{10};
  static constexpr std::size_t kPerStepMax = 32;

  // component: "kubegang-operator"; host: the node, or "".
  EventRecorder(Client client, const Clock& clock, EventSource source);

  // Never blocks. `reason` is CamelCase, `message` a sentence, of which the first 1,024 bytes
  // are written.
  void record(const ObjectReference& object, EventType type, std::string reason,
              std::string message);

  // Writes at most kPerStepMax of them. Returns how long to wait until the next step.
  base::Duration step();

  // Not written: the queue was full or the server refused.
  std::uint64_t dropped_count() const { return dropped_.load(); }

 private:
  // UID, type, reason, message.
  using Identity = std::tuple<std::string, std::string, std::string, std::string>;
  struct Remembered {
    ObjectKey key;
    std::int32_t count = 1;
    base::Duration last{};
  };

  void write(const Event& event);
  bool raise_count(const Identity& identity, const Event& event);
  void remember(const Identity& identity, const Event& event);

  Client client_;
  const Clock& clock_;
  const EventSource source_;
  std::atomic<std::uint64_t> dropped_{0};
  std::map<Identity, Remembered> remembered_;

  std::mutex mu_;
  std::deque<Event> queue_;        // guarded by mu_
  std::uint64_t names_count_ = 0;  // guarded by mu_
};

}  // namespace kube
