// SQLite's C interface as objects that close themselves. Each belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace records {

// A prepared statement. Numbers of parameters begin with 1, those of columns with 0.
class Statement {
 public:
  void bind(int parameter, std::int64_t value);
  void bind(int parameter, std::string_view text);
  void bind_null(int parameter);
  // Returns the highest number of a parameter in its text.
  int parameters() const;
  // Returns true if there is a row, whose columns can be read until the next step().
  base::Result<bool> step();
  // For a statement without rows; afterwards it can be bound and run again.
  base::Status run();
  // After rows: it can be bound and run again. Bound values stay.
  void reset();

  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_{statement} {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

class Database {
 public:
  enum class Access { kRead, kWrite };  // kWrite makes the file if there is none

  // kUnavailable: the file cannot be opened, or another process keeps it locked.
  static base::Result<Database> open(const std::string& path, Access access);

  // Runs all statements of `sql`, which return no rows.
  base::Status run(const std::string& sql);
  base::Result<Statement> prepare(const std::string& sql) const;
  // Returns the first column of the first row; nullopt if there is none.
  base::Result<std::optional<std::int64_t>> integer(const std::string& sql) const;
  // Rows that the last statement has changed.
  std::int64_t changes() const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  explicit Database(sqlite3* database) : database_{database} {}

  std::unique_ptr<sqlite3, Close> database_;
};

// BEGIN now; ROLLBACK when it goes out of scope without commit().
class Transaction {
 public:
  explicit Transaction(Database& database) : database_{database} {}
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  base::Status begin();
  base::Status commit();

 private:
  Database& database_;
  bool is_open_ = false;
};

}  // namespace records
