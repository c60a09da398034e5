// Report: where the loop and its parts say what they did: log lines, warnings, Kubernetes Events.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "kube/api/event.h"

namespace control {

// Each may be absent. Called on the loop's thread.
struct LoopHooks {
  // One line per decision that changed something: constant message, key=value pairs.
  std::function<void(const std::string& message, const std::string& fields)> log;
  std::function<void(const std::string& message, const std::string& fields)> warn;
  // A Kubernetes Event.
  std::function<void(const kube::ObjectReference& object, bool warning, const std::string& reason,
                     const std::string& message)>
      event;
  // Another operator leads with a higher term: nothing more may be written. The process should
  // exit.
  std::function<void(std::int64_t term)> fenced;
};

class Report {
 public:
  explicit Report(LoopHooks hooks) : hooks_{std::move(hooks)} {}

  void log(const std::string& message, const std::string& fields) const {
    if (hooks_.log) hooks_.log(message, fields);
  }
  void warn(const std::string& message, const std::string& fields) const {
    if (hooks_.warn) hooks_.warn(message, fields);
  }
  void event(const kube::ObjectReference& object, bool warning, const std::string& reason,
             const std::string& message) const {
    if (hooks_.event) hooks_.event(object, warning, reason, message);
  }
  void fenced(std::int64_t term) const {
    if (hooks_.fenced) hooks_.fenced(term);
  }

 private:
  const LoopHooks hooks_;
};

}  // namespace control
