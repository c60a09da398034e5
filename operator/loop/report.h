// Report: where the loop and its parts say what they did: log lines, warnings, Kubernetes Events.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/log_fields.h"
#include "kube/api/event.h"

namespace control {

// Each may be absent. Called on the loop's thread.
struct LoopHooks {
  // One line per decision that changed something: constant message, key=value pairs
  // (base/log_fields.h).
  std::function<void(const std::string& message, const std::string& fields)> log;
  std::function<void(const std::string& message, const std::string& fields)> warn;
  // A Kubernetes Event.
  std::function<void(const kube::ObjectReference& object, bool warning, const std::string& reason,
                     const std::string& message)>
      event;
  // Called when this leader has ceased to lead and writes nothing. The process should exit.
  std::function<void(const std::string& why)> ended;
};

class Report {
 public:
  explicit Report(LoopHooks hooks) : hooks_{std::move(hooks)} {}

  void log(const std::string& message, const base::LogFields& fields) const {
    if (hooks_.log) hooks_.log(message, base::to_text(fields));
  }
  void warn(const std::string& message, const base::LogFields& fields) const {
    if (hooks_.warn) hooks_.warn(message, base::to_text(fields));
  }
  void event(const kube::ObjectReference& object, bool warning, const std::string& reason,
             const std::string& message) const {
    if (hooks_.event) hooks_.event(object, warning, reason, message);
  }
  void ended(const std::string& why) const {
    if (hooks_.ended) hooks_.ended(why);
  }

 private:
  const LoopHooks hooks_;
};

}  // namespace control
