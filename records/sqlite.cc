#include "records/sqlite.h"

#include <sqlite3.h>

#include "base/check.h"

namespace records {
namespace {

// A reader never waits; the only other writer is one that ends at this moment.
constexpr int kBusyMillis = 5'000;

base::Error error_of(sqlite3* database, int code) {
  const int primary = code & 0xff;
  const bool may_pass = primary == SQLITE_BUSY || primary == SQLITE_LOCKED ||
                        primary == SQLITE_FULL || primary == SQLITE_IOERR ||
                        primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY;
  std::string message = ::sqlite3_errstr(code);
  if (database != nullptr) message += std::string{": "} + ::sqlite3_errmsg(database);
  return {may_pass ? base::Code::kUnavailable : base::Code::kInternal, "database: " + message};
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  ::sqlite3_finalize(statement);
}

void Statement::bind(int parameter, std::int64_t value) {
  CHECK(::sqlite3_bind_int64(statement_.get(), parameter, value) == SQLITE_OK);
}

void Statement::bind(int parameter, std::string_view text) {
  // A null pointer would be NULL.
  const char* const data = text.empty() ? "" : text.data();
  CHECK(::sqlite3_bind_text64(statement_.get(), parameter, data, text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8) == SQLITE_OK);
}

void Statement::bind_null(int parameter) {
  CHECK(::sqlite3_bind_null(statement_.get(), parameter) == SQLITE_OK);
}

int Statement::parameters() const {
  return ::sqlite3_bind_parameter_count(statement_.get());
}

base::Result<bool> Statement::step() {
  const int code = ::sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return error_of(::sqlite3_db_handle(statement_.get()), code);
}

base::Status Statement::run() {
  const auto has_row = step();
  reset();
  return has_row.status();
}

void Statement::reset() {
  (void)::sqlite3_reset(statement_.get());  // repeats the error of the step before
}

bool Statement::is_null(int column) const {
  return ::sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const unsigned char* const data = ::sqlite3_column_text(statement_.get(), column);
  const int size = ::sqlite3_column_bytes(statement_.get(), column);
  return data == nullptr ? std::string{} : std::string{data, data + size};
}

void Database::Close::operator()(sqlite3* database) const {
  ::sqlite3_close_v2(database);
}

base::Result<Database> Database::open(const std::string& path, Access access) {
  const int flags =
      access == Access::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* raw = nullptr;
  const int code = ::sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database{raw};
  if (code != SQLITE_OK) return error_of(raw, code).with_context(path);
  ::sqlite3_extended_result_codes(raw, 1);
  ::sqlite3_busy_timeout(raw, kBusyMillis);
  return database;
}

base::Status Database::run(const std::string& sql) {
  const int code = ::sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error_of(database_.get(), code);
  return {};
}

base::Result<Statement> Database::prepare(const std::string& sql) const {
  sqlite3_stmt* raw = nullptr;
  const int code = ::sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return error_of(database_.get(), code);
  return Statement{raw};
}

base::Result<std::optional<std::int64_t>> Database::integer(const std::string& sql) const {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const auto has_row = statement->step();
  if (!has_row) return has_row.error();
  if (!*has_row || statement->is_null(0)) return std::optional<std::int64_t>{};
  return std::optional{statement->integer(0)};
}

std::int64_t Database::changes() const {
  return ::sqlite3_changes64(database_.get());
}

base::Status Transaction::begin() {
  const base::Status begun = database_.run("BEGIN IMMEDIATE");
  is_open_ = begun.ok();
  return begun;
}

base::Status Transaction::commit() {
  const base::Status done = database_.run("COMMIT");
  if (done.ok()) is_open_ = false;
  return done;
}

Transaction::~Transaction() {
  // Nothing can be done about an error: the database itself takes back what was not committed.
  if (is_open_) (void)database_.run("ROLLBACK");
}

}  // namespace records
