// The requests and their senders: counters per kind of request, and the latest writes one by one,
// so that tests and the demo can say how many writes a turn costs.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/time.h"

namespace devcluster {

inline constexpr std::size_t kLoggedWritesMax = 100'000;

struct RequestKind {
  std::string verb;
  std::string resource;     // plural; the path if it is not a resource
  std::string subresource;  // "status", …
  std::string user_agent;   // up to the first '/' or ' '
  std::string group{};      // of the resource; "" = core, or it is not a resource
  friend auto operator<=>(const RequestKind&, const RequestKind&) = default;
};

struct WriteRecord {
  base::Instant at{};
  RequestKind kind;
  std::string ns;
  std::string name;
  int code = 0;  // of the answer
};

// Not thread-safe; guarded by the API server's lock.
class RequestLog {
 public:
  // create, update, patch, delete and deletecollection are logged one by one too.
  void record(WriteRecord record);
  const std::map<RequestKind, std::int64_t>& counts() const { return counts_; }
  // Returns the writes at or after `since`, oldest first, as far as they are kept.
  std::vector<WriteRecord> writes_since(base::Instant since) const;
  void clear();

 private:
  std::map<RequestKind, std::int64_t> counts_;
  std::deque<WriteRecord> writes_;
};

nlohmann::json to_json(const std::map<RequestKind, std::int64_t>& counts);
nlohmann::json to_json(const std::vector<WriteRecord>& writes);

}  // namespace devcluster
