// The failures that an API server cannot be asked for: which of the next requests are refused,
// slowed down or cut off.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "base/time.h"

namespace devcluster {

// The fate of the next `count` requests that match; empty texts match everything.
struct Fault {
  enum class Kind {
    kStatus,       // refused with `code`, nothing is done; with `text`, as by something in between
    kSlow,         // answered after `delay`
    kResetBefore,  // connection breaks, nothing was done
    kResetAfter,   // it was done, but the connection breaks before the answer
  };
  Kind kind = Kind::kStatus;
  std::string verb;      // get, list, watch, create, update, patch, delete, deletecollection
  std::string resource;  // plural: pods, jobs, …
  std::string subresource;
  std::string name;
  std::string user_agent;  // a part of it
  int code = 500;
  int retry_after_seconds = 0;
  std::string text;  // the answer; "" = a Status
  base::Duration delay{0};
  int count = 1;
};

// {"kind": "Status", "verb": "create", "resource": "pods", "code": 429, "retryAfterSeconds": 1};
// kInvalidArgument names an unknown key or value.
base::Result<Fault> parse_fault(const nlohmann::json& source);

// Not thread-safe; guarded by the API server's lock.
class FaultPlan {
 public:
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  void clear() { faults_.clear(); }

  struct Subject {
    const std::string& verb;
    const std::string& resource;
    const std::string& subresource;
    const std::string& name;
    const std::string& user_agent;
  };
  // Takes the first fault that matches; uses it up by one.
  std::optional<Fault> take(const Subject& subject);

 private:
  std::vector<Fault> faults_;
};

}  // namespace devcluster
