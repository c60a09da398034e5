// The database of records: one SQLite file with one row for each record (docs/records.md has its
// columns). A change that is written twice has no effect, and a record that has ended no longer
// changes; so everything may be written again after a crash. Writer and Reader have a connection of
// their own; a reader sees the last transaction that is complete, and holds up no writer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "records/job_changes.h"
#include "records/record.h"
#include "records/sqlite.h"

namespace records {

// One thread. One writer for a file.
class Writer {
 public:
  // Makes the file if there is none; `now` is then since when it has records. kInvalidArgument: a
  // newer version has made it.
  static base::Result<Writer> open(const std::string& path, base::Instant now);

  // Writes changes in their order, in one transaction: all of them or, after an error, none.
  base::Status write(std::span<const Change> changes);
  // Returns the jobs of a cluster with a record that has not ended.
  base::Result<std::vector<std::string>> open_jobs(const std::string& cluster);
  // Returns the number of tasks whose ends were written from their outcomes alone, without canceled
  // ones that are not known to have begun.
  std::int64_t bare_ends() const { return bare_ends_; }

 private:
  struct Statements {
    Statement upsert, close_earlier, end_task, add_ended, close_gone, open_jobs;
  };
  Writer(Database database, Statements statements)
      : database_{std::move(database)}, statements_{std::move(statements)} {}

  base::Status apply(const Written& change);
  base::Status apply(const TaskEnded& change);
  base::Status apply(const JobGone& change);

  Database database_;
  Statements statements_;  // finalized before the database is closed
  std::int64_t bare_ends_ = 0;
  std::int64_t bare_ends_of_batch_ = 0;
};

// The place of a record in the order of a Query's answer.
struct Place {
  std::int64_t end = 0;
  std::int64_t id = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// Records that were there between `from` and `until`, ordered by their end; those that have not
// ended come last.
struct Query {
  std::string cluster{};              // "" = all
  std::string ns{};                   // "" = all
  std::optional<std::string> user{};  // with the records that name no user
  std::vector<std::int64_t> jobs{};   // numbers of jobs or arrays; empty = all
  base::Instant from{};
  base::Instant until = base::kNever;
  std::size_t limit = 500;
  std::optional<Place> after{};
};

struct Page {
  std::vector<Record> records;
  std::optional<Place> next{};  // absent: there are no more
};

// Returns the statement of Reader::find. Tests ask SQLite which index it reads.
std::string sql_of(const Query& query);

// The place of a record in the order in which they were changed. A transaction that comes later has
// only places behind those of the earlier ones.
struct ChangePlace {
  std::int64_t changed = -1;
  std::int64_t id = 0;
  friend bool operator==(const ChangePlace&, const ChangePlace&) = default;
};

struct ChangedPage {
  std::vector<Record> records{};
  ChangePlace last{};  // of the last one
};

// One thread at a time.
class Reader {
 public:
  static base::Result<Reader> open(const std::string& path);

  base::Result<Page> find(const Query& query) const;
  // Returns the records that were changed behind that place, each as it is now.
  base::Result<ChangedPage> changed_after(const ChangePlace& place, std::size_t limit) const;
  // Returns the identity of this database.
  base::Result<std::string> identity() const;
  // Since when there are records.
  base::Result<base::Instant> since() const;

 private:
  explicit Reader(Database database) : database_{std::move(database)} {}
  Database database_;
};

}  // namespace records
