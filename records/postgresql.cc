#include "records/postgresql.h"

#include <nlohmann/json.hpp>
#include <pqxx/pqxx>
#include <type_traits>
#include <utility>

#include "records/columns.h"

namespace records {

struct Postgresql::Connection {
  explicit Connection(const std::string& url) : of_libpqxx{url} {}
  pqxx::connection of_libpqxx;
};

namespace {

// A version has more columns than the one before, and else the same.
constexpr int kVersion = 1;
// Any number that no other program takes for its lock.
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(7318242911)";

// PostgreSQL takes names without quotes for lower case. `user` is a word of its own.
std::string name_of(const Column& column) {
  std::string name = "\"";
  for (const char c : column.name) {
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name + '"';
}

std::string names_of_columns() {
  std::string names;
  for (const Column& column : columns()) names += (names.empty() ? "" : ", ") + name_of(column);
  return names;
}

constexpr const char* kKey = "cluster, jobuid, coalesce(task, -1), restart";

// As in SQLite, with PostgreSQL's own type for instants.
constexpr const char* kView = R"(
CREATE VIEW job AS SELECT
  cluster, jobID, arrayID, task, restart, jobUID, namespace, object, name,
  CASE "user" WHEN '' THEN namespace ELSE "user" END AS "user", account, qos, partition, state,
  exitCode, reason, preemptedBy, nodes AS askedNodes,
  coalesce(tasks, nodes * coalesce(tasksPerNode, 1)) * coalesce(cpusPerTask, 1) AS askedCPUs,
  allocatedNodes, allocatedCPUs, allocatedMemory, devices, licenses, hostlist,
  to_timestamp(submitTime / 1e6) AS submitTime, to_timestamp(eligibleTime / 1e6) AS eligibleTime,
  to_timestamp(startTime / 1e6) AS startTime, to_timestamp(endTime / 1e6) AS endTime,
  timeLimit / 1000000 AS timeLimitSeconds, elapsed / 1000000 AS elapsedSeconds,
  suspended / 1000000 AS suspendedSeconds,
  elapsed / 1000000 * allocatedCPUs AS cpuSeconds, (userCPU + systemCPU) / 1e6 AS usedCPUSeconds,
  maxRSS, memoryPeak, priority, comment
FROM record)";

void make_tables(pqxx::work& work) {
  work.exec("CREATE TABLE record ()");
  work.exec("CREATE TABLE record_about (version integer NOT NULL)");
  work.exec(
      "CREATE TABLE record_source (identity text PRIMARY KEY, changed bigint NOT NULL, "
      "id bigint NOT NULL)");
  work.exec("INSERT INTO record_about VALUES (0)");
}

// The columns that are missing, empty, and this version's view.
void migrate(pqxx::work& work) {
  std::string added;
  for (const Column& column : columns()) {
    added += (added.empty() ? "" : ", ") + std::string{"ADD COLUMN IF NOT EXISTS "} +
             name_of(column) + (column.is_text ? " text NOT NULL DEFAULT ''" : " bigint");
  }
  work.exec("ALTER TABLE record " + added);
  work.exec(std::string{"CREATE UNIQUE INDEX IF NOT EXISTS record_key ON record ("} + kKey + ")");
  work.exec("CREATE INDEX IF NOT EXISTS record_end ON record (endTime)");
  work.exec("CREATE INDEX IF NOT EXISTS record_user ON record (\"user\", endTime)");
  work.exec("DROP VIEW IF EXISTS job");
  work.exec(kView);
  work.exec("UPDATE record_about SET version = " + std::to_string(kVersion));
}

base::Status bring_up_to_date(pqxx::connection& connection) {
  pqxx::work work{connection};
  work.exec(kLock);
  if (work.exec1("SELECT to_regclass('record_about') IS NULL")[0].as<bool>()) make_tables(work);
  const int version = work.exec1("SELECT version FROM record_about")[0].as<int>();
  if (version > kVersion) {
    return base::invalid_argument("PostgreSQL has tables of version " + std::to_string(version) +
                                  ", and this program knows " + std::to_string(kVersion));
  }
  if (version < kVersion) migrate(work);
  work.commit();
  return {};
}

// `record` is a type of PostgreSQL's own, so the rows' type must be spelled out.
std::string put_sql() {
  std::string changed, types;
  for (const Column& column : columns()) {
    types += (types.empty() ? "" : ", ") + name_of(column) + (column.is_text ? " text" : " bigint");
  }
  for (std::size_t i = kKeyColumns; i < columns().size(); ++i) {
    const std::string name = name_of(columns()[i]);
    changed += (changed.empty() ? "" : ", ") + name + " = excluded." + name;
  }
  const std::string names = names_of_columns();
  return "INSERT INTO record (" + names + ") SELECT " + names +
         " FROM jsonb_to_recordset($1::jsonb) AS rows(" + types + ") ON CONFLICT (" + kKey +
         ") DO UPDATE SET " + changed;
}

// A record as a row of the table: numbers as SQLite has them.
class RowWriter : public EachAlike<RowWriter> {
 public:
  template <typename T>
  void field(std::string_view, const T& value) {
    const std::string quoted = name_of(columns()[at_++]);
    row_[quoted.substr(1, quoted.size() - 2)] = json_of(value);
  }
  nlohmann::json row() && { return std::move(row_); }

 private:
  // PostgreSQL has no text with a zero in it.
  static nlohmann::json json_of(std::string value) {
    std::erase(value, '\0');
    return value;
  }
  static nlohmann::json json_of(RecordState value) { return kube::to_string(value); }
  template <typename T>
  static nlohmann::json json_of(const T& value) {
    return number_of(value);
  }
  template <typename T>
  static nlohmann::json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : nlohmann::json{};
  }

  nlohmann::json row_ = nlohmann::json::object();
  std::size_t at_ = 0;
};

std::string rows_of(std::span<const Record> records) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Record& record : records) {
    RowWriter writer;
    visit(writer, record);
    rows.push_back(std::move(writer).row());
  }
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// libpqxx throws; nothing else here does.
template <typename Action>
auto caught(Action action) -> decltype(action()) {
  try {
    return action();
  } catch (const std::exception& error) {
    std::string what = error.what();
    while (what.ends_with('\n')) what.pop_back();
    return base::Error{base::Code::kUnavailable, "PostgreSQL: " + what};
  }
}

}  // namespace

Postgresql::Postgresql(std::unique_ptr<Connection> connection)
    : connection_{std::move(connection)} {}
Postgresql::Postgresql(Postgresql&& other) noexcept = default;
Postgresql& Postgresql::operator=(Postgresql&& other) noexcept = default;
Postgresql::~Postgresql() = default;

base::Result<Postgresql> Postgresql::open(const std::string& url) {
  return caught([&]() -> base::Result<Postgresql> {
    auto made = std::make_unique<Connection>(url);
    pqxx::connection& connection = made->of_libpqxx;
    connection.set_variable("client_min_messages", "warning");
    if (const base::Status status = bring_up_to_date(connection); !status) return status.error();
    connection.prepare("put", put_sql());
    connection.prepare("place", "SELECT changed, id FROM record_source WHERE identity = $1");
    connection.prepare("move",
                       "INSERT INTO record_source (identity, changed, id) VALUES ($1, $2, $3) "
                       "ON CONFLICT (identity) DO UPDATE SET changed = excluded.changed, "
                       "id = excluded.id");
    return Postgresql{std::move(made)};
  });
}

base::Result<ChangePlace> Postgresql::place_of(const std::string& identity) {
  return caught([&]() -> base::Result<ChangePlace> {
    pqxx::read_transaction work{connection_->of_libpqxx};
    const pqxx::result rows = work.exec_prepared("place", identity);
    if (rows.empty()) return ChangePlace{};
    return ChangePlace{.changed = rows[0][0].as<std::int64_t>(),
                       .id = rows[0][1].as<std::int64_t>()};
  });
}

base::Status Postgresql::put(std::span<const Record> records, const std::string& identity,
                             const ChangePlace& last) {
  const std::string rows = rows_of(records);
  return caught([&]() -> base::Status {
    pqxx::work work{connection_->of_libpqxx};
    work.exec_prepared("put", rows);
    work.exec_prepared("move", identity, last.changed, last.id);
    work.commit();
    return {};
  });
}

int Postgresql::socket() const {
  return connection_ ? connection_->of_libpqxx.sock() : -1;
}

}  // namespace records
