// Feeder: copies what is in SQLite to PostgreSQL. SQLite is always first; where the copy is up to
// stands in PostgreSQL itself, in the transaction of the rows, so nothing is lost and nothing is
// there twice, whichever of the two was killed or set back.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/clock.h"
#include "records/postgresql.h"
#include "records/store.h"

namespace records {

struct FeederCounters {
  std::atomic<std::int64_t> rows{0};
  std::atomic<std::int64_t> failures{0};
  // When PostgreSQL had last all that SQLite has (monotonic, microseconds).
  std::atomic<std::int64_t> complete_at{0};
};

// step() belongs to one thread.
class Feeder {
 public:
  // `read_url`: how to connect, asked before each connection, since a password may change.
  Feeder(Reader reader, const kube::Clock& clock,
         std::function<base::Result<std::string>()> read_url,
         std::function<void(const base::Error&)> on_error);

  // Copies some rows. Returns how long to wait before the next step.
  base::Duration step();
  // Ends a step that waits for PostgreSQL; there is no further one. Any thread.
  void interrupt();
  const FeederCounters& counters() const { return counters_; }

 private:
  base::Result<std::size_t> feed();
  base::Status connect();

  Reader reader_;
  const kube::Clock& clock_;
  const std::function<base::Result<std::string>()> read_url_;
  const std::function<void(const base::Error&)> on_error_;
  std::string identity_;
  std::optional<Postgresql> database_;
  ChangePlace place_;
  FeederCounters counters_;
  std::atomic<int> socket_{-1};
};

}  // namespace records
