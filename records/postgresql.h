// The copy of the database in PostgreSQL: the same table and the same view. A row that is put twice
// changes nothing.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "records/record.h"
#include "records/store.h"

namespace records {

// A connection. One thread, but for interrupt().
class Postgresql {
 public:
  // `url`: as libpq reads it, "postgresql://records@db.example/records" or "host=db.example …".
  // Makes the tables, or brings those of an earlier version up to date. kInvalidArgument: a newer
  // version has made them.
  static base::Result<Postgresql> open(const std::string& url);
  Postgresql(Postgresql&& other) noexcept;
  Postgresql& operator=(Postgresql&& other) noexcept;
  ~Postgresql();

  // Returns how far that database of SQLite has been put here.
  base::Result<ChangePlace> place_of(const std::string& identity);
  // In one transaction with the place: both or, after an error, neither.
  base::Status put(std::span<const Record> records, const std::string& identity,
                   const ChangePlace& last);
  // Returns the connection's socket; -1: there is none. shutdown() of it ends a call that waits for
  // a server that is silent.
  int socket() const;

 private:
  struct Connection;
  explicit Postgresql(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace records
