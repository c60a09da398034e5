#include "records/store.h"

#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "records/columns.h"

namespace records {
namespace {

// 2: what a run has used. 3: when a row was changed. 4: indexes of times have both ends. A version
// has more columns than the one before, and else the same.
constexpr std::int64_t kVersion = 4;
constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

// The key of a record. NULLs differ from each other in an index, so a job that is not an array
// counts as task -1 there.
constexpr const char* kKey = "cluster, jobUID, ifnull(task, -1), restart";
// By which records are ordered: those without an end come last.
constexpr const char* kEnd = "ifnull(endTime, 9223372036854775807)";

void set_number(std::int64_t value, std::int64_t& out) {
  out = value;
}
void set_number(std::int64_t value, std::int32_t& out) {
  out = static_cast<std::int32_t>(value);
}
void set_number(std::int64_t value, bool& out) {
  out = value != 0;
}
void set_number(std::int64_t value, kube::Bytes& out) {
  out = kube::Bytes{value};
}
void set_number(std::int64_t value, base::Duration& out) {
  out = base::Duration{value};
}
void set_number(std::int64_t value, base::Instant& out) {
  out = base::instant_from_micros(value);
}

// Binds the fields as parameters ?1, ?2, … in the order of the columns, as far as the statement has
// any.
class Binder : public EachAlike<Binder> {
 public:
  explicit Binder(Statement& statement) : statement_{statement}, count_{statement.parameters()} {}

  template <typename T>
  void field(std::string_view, const T& value) {
    if (++at_ <= count_) bind(value);
  }

 private:
  void bind(const std::string& value) { statement_.bind(at_, std::string_view{value}); }
  void bind(RecordState value) { statement_.bind(at_, kube::to_string(value)); }
  template <typename T>
  void bind(const T& value) {
    statement_.bind(at_, number_of(value));
  }
  template <typename T>
  void bind(const std::optional<T>& value) {
    if (value) return bind(*value);
    statement_.bind_null(at_);
  }

  Statement& statement_;
  const int count_;
  int at_ = 0;
};

// Reads the fields from the columns of a row, from number `first` on.
class RowReader : public EachAlike<RowReader> {
 public:
  RowReader(const Statement& row, int first) : row_{row}, at_{first} {}

  void field(std::string_view, std::string& out) { out = row_.text(at_++); }
  void field(std::string_view, RecordState& out) {
    out = kube::parse_enum<RecordState>(row_.text(at_++)).value_or(RecordState::kLost);
  }
  template <typename T>
  void field(std::string_view, T& out) {
    set_number(row_.integer(at_++), out);
  }
  template <typename T>
  void field(std::string_view, std::optional<T>& out) {
    const int at = at_++;
    if (row_.is_null(at)) return out.reset();
    set_number(row_.integer(at), out.emplace());
  }

 private:
  const Statement& row_;
  int at_;
};

std::string names_of_columns() {
  std::string names;
  for (const auto& column : columns()) names += (names.empty() ? "" : ", ") + column.name;
  return names;
}

std::string parameters() {
  std::string text;
  for (std::size_t i = 1; i <= columns().size(); ++i) {
    text += (i == 1 ? "?" : ", ?") + std::to_string(i);
  }
  return text;
}

// Returns the parameter that Binder gives to a column.
std::string parameter_of(std::string_view name) {
  for (std::size_t i = 0; i < columns().size(); ++i) {
    if (columns()[i].name == name) return "?" + std::to_string(i + 1);
  }
  CHECK(false);
  return "";
}

// Returns how long it has run when it ends at `end`. Since its run time was written last, at most a
// minute ago, it has run, unless it was suspended.
std::string elapsed_at(const std::string& end) {
  return "CASE WHEN startTime IS NULL THEN 0"
         " WHEN elapsedAsOf IS NULL THEN max(0, " +
         end +
         " - startTime)"
         " WHEN state = 'Running' THEN elapsed + max(0, " +
         end +
         " - elapsedAsOf)"
         " ELSE elapsed END";
}

// The number of the transaction, in the rows that it has changed.
constexpr const char* kChanged = "(SELECT sequence FROM about)";
constexpr const char* kChangedColumn = "changed INTEGER NOT NULL DEFAULT 0";
constexpr const char* kSequenceColumn = "sequence INTEGER NOT NULL DEFAULT 0";
// By which others know this database from one that takes its place.
constexpr const char* kIdentityColumn = "identity TEXT NOT NULL DEFAULT ''";
constexpr const char* kChangedIndex = "CREATE INDEX record_changed ON record (changed)";
// A question about a time reads the rows that had ended after its beginning, in the order of their
// ends. Most of them were submitted after its end: the index itself says that, and of ten years no
// more rows are read than there are in the time.
std::string indexes_of_times() {
  const std::string end = kEnd;
  return "CREATE INDEX record_end ON record (" + end + ", submitTime);" +
         "CREATE INDEX record_user ON record (user, " + end + ", submitTime);" +
         "CREATE INDEX record_namespace ON record (namespace, " + end + ", submitTime);";
}

constexpr const char* kSetIdentity = "UPDATE about SET identity = lower(hex(randomblob(16)))";

std::string schema() {
  std::string table = "CREATE TABLE record (id INTEGER PRIMARY KEY";
  for (const auto& column : columns()) {
    table += ", " + column.name + (column.is_text ? " TEXT NOT NULL" : " INTEGER");
  }
  return table + ", " + kChangedColumn + ");" + kChangedIndex + ";" +
         "CREATE UNIQUE INDEX record_key ON record (" + kKey + ");" + indexes_of_times() +
         "CREATE INDEX record_job ON record (jobID);" +
         "CREATE INDEX record_array ON record (arrayID) WHERE arrayID IS NOT NULL;" +
         "CREATE TABLE about (since INTEGER NOT NULL, " + kSequenceColumn + ", " + kIdentityColumn +
         ");";
}

// For people and for SQL: times as text in UTC, durations in seconds, sums instead of the parts.
constexpr const char* kView = R"(
CREATE VIEW job AS SELECT
  cluster, jobID, arrayID, task, restart, jobUID, namespace, object, name,
  CASE user WHEN '' THEN namespace ELSE user END AS user, account, qos, partition, state, exitCode,
  reason, preemptedBy, nodes AS askedNodes,
  ifnull(tasks, nodes * ifnull(tasksPerNode, 1)) * ifnull(cpusPerTask, 1) AS askedCPUs,
  allocatedNodes, allocatedCPUs, allocatedMemory, devices, licenses, hostlist,
  datetime(submitTime / 1000000, 'unixepoch') AS submitTime,
  datetime(eligibleTime / 1000000, 'unixepoch') AS eligibleTime,
  datetime(startTime / 1000000, 'unixepoch') AS startTime,
  datetime(endTime / 1000000, 'unixepoch') AS endTime,
  timeLimit / 1000000 AS timeLimitSeconds, elapsed / 1000000 AS elapsedSeconds,
  suspended / 1000000 AS suspendedSeconds,
  elapsed / 1000000 * allocatedCPUs AS cpuSeconds, (userCPU + systemCPU) / 1e6 AS usedCPUSeconds,
  maxRSS, memoryPeak, priority, comment
FROM record;)";

base::Status make_tables(Database& database, base::Instant now) {
  Transaction transaction{database};
  base::Status status = transaction.begin();
  if (status) status = database.run(schema() + kView);
  if (status) {
    status = database.run("INSERT INTO about (since) VALUES (" +
                          std::to_string(base::micros_since_epoch(now)) + "); " + kSetIdentity +
                          "; PRAGMA user_version = " + std::to_string(kVersion));
  }
  return status ? transaction.commit() : status;
}

// A database of an earlier version gets the columns that it lacks, empty, and the view of this one.
base::Status migrate(Database& database, std::int64_t version) {
  auto known = database.prepare("SELECT name FROM pragma_table_info('record')");
  if (!known) return known.error();
  std::set<std::string> names;
  auto has_row = known->step();
  for (; has_row && *has_row; has_row = known->step()) names.insert(known->text(0));
  if (!has_row) return has_row.error();
  known->reset();
  Transaction transaction{database};
  base::Status status = transaction.begin();
  for (const auto& column : columns()) {
    if (!status || names.contains(column.name)) continue;
    status = database.run("ALTER TABLE record ADD COLUMN " + column.name +
                          (column.is_text ? " TEXT NOT NULL DEFAULT ''" : " INTEGER"));
  }
  if (status && version < 3) {
    status = database.run(std::string{"ALTER TABLE record ADD COLUMN "} + kChangedColumn +
                          "; ALTER TABLE about ADD COLUMN " + kSequenceColumn +
                          "; ALTER TABLE about ADD COLUMN " + kIdentityColumn + "; " +
                          kChangedIndex + "; " + kSetIdentity);
  }
  if (status && version < 4) {
    status = database.run(
        "DROP INDEX record_end; DROP INDEX record_user; "
        "DROP INDEX record_namespace; " +
        indexes_of_times());
  }
  if (status) status = database.run("DROP VIEW job");
  if (status) status = database.run(kView);
  if (status) status = database.run("PRAGMA user_version = " + std::to_string(kVersion));
  return status ? transaction.commit() : status;
}

// Each returns a text for prepare(). All of them leave records alone that have ended.
std::string upsert_sql() {
  std::string changed;
  for (std::size_t i = kKeyColumns; i < columns().size(); ++i) {
    const std::string& name = columns()[i].name;
    // A status with an end no longer names the preemptor.
    if (name == "preemptedBy") {
      changed +=
          ", preemptedBy = CASE excluded.state WHEN 'Preempted' THEN preemptedBy "
          "ELSE excluded.preemptedBy END";
      continue;
    }
    changed += (changed.empty() ? "" : ", ") + name + " = excluded." + name;
  }
  return "INSERT INTO record (" + names_of_columns() + ", changed) VALUES (" + parameters() + ", " +
         kChanged + ") ON CONFLICT (" + kKey + ") DO UPDATE SET " + changed +
         ", changed = excluded.changed WHERE endTime IS NULL";
}

std::string of_task_sql() {
  return "cluster = " + parameter_of("cluster") + " AND jobUID = " + parameter_of("jobUID") +
         " AND ifnull(task, -1) = ifnull(" + parameter_of("task") + ", -1)";
}

std::string set_changed() {
  return std::string{"changed = "} + kChanged + ", ";
}

// Returns what a run has used, as far as it is known.
std::string used() {
  std::string changed;
  for (const char* name : {"userCPU", "systemCPU", "maxRSS", "memoryPeak"}) {
    changed += std::string{", "} + name + " = ifnull(" + parameter_of(name) + ", " + name + ")";
  }
  const std::string steps = parameter_of("steps");
  return changed + ", steps = CASE " + steps + " WHEN '' THEN steps ELSE " + steps + " END";
}

// A job that waits again has ended a run when it was submitted again.
std::string close_earlier_sql() {
  const std::string end = parameter_of("submitTime");
  return "UPDATE record SET " + set_changed() + "endTime = " + end +
         ", elapsed = " + elapsed_at(end) +
         ", state = CASE preemptedBy WHEN '' THEN 'Requeued' ELSE 'Preempted' END" + used() +
         " WHERE " + of_task_sql() + " AND restart < " + parameter_of("restart") +
         " AND endTime IS NULL AND " + end + " IS NOT NULL";
}

std::string end_task_sql() {
  const std::string end = parameter_of("endTime");
  return "UPDATE record SET " + set_changed() + "endTime = " + end +
         ", elapsed = " + elapsed_at(end) + ", state = " + parameter_of("state") +
         ", exitCode = ifnull(" + parameter_of("exitCode") + ", exitCode)" + used() + " WHERE " +
         of_task_sql() + " AND endTime IS NULL";
}

std::string add_ended_sql() {
  return "INSERT INTO record (" + names_of_columns() + ", changed) SELECT " + parameters() + ", " +
         kChanged + " WHERE NOT EXISTS (SELECT 1 FROM record WHERE " + of_task_sql() + ")";
}

// An unseen end adds no run time to what was written.
constexpr const char* kGoneParameters = " WHERE cluster = ?1 AND jobUID = ?2 AND endTime IS NULL";
std::string close_gone_sql() {
  return "UPDATE record SET " + set_changed() +
         "endTime = ?3, state = ?4, reason = ?5, elapsed = CASE ?4 WHEN 'Lost' "
         "THEN elapsed ELSE " +
         elapsed_at("?3") + " END" + kGoneParameters;
}

base::Status prepare_file(Database& database, base::Instant now) {
  // FULL: what was committed is on the disk. Readers do not wait for the writer.
  base::Status status = database.run("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  if (!status) return status;
  const auto version = database.integer("PRAGMA user_version");
  if (!version) return version.error();
  if (version->value_or(0) == 0) return make_tables(database, now);
  if (version->value_or(0) == kVersion) return {};
  if (**version > 0 && **version < kVersion) return migrate(database, **version);
  return base::invalid_argument("the database has version " + std::to_string(**version) +
                                ", and this program knows " + std::to_string(kVersion));
}

}  // namespace

base::Result<Writer> Writer::open(const std::string& path, base::Instant now) {
  auto database = Database::open(path, Database::Access::kWrite);
  if (!database) return database.error();
  if (const base::Status status = prepare_file(*database, now); !status) {
    return status.error().with_context(path);
  }
  std::vector<Statement> prepared;
  for (const std::string& sql :
       {upsert_sql(), close_earlier_sql(), end_task_sql(), add_ended_sql(), close_gone_sql(),
        std::string{"SELECT DISTINCT jobUID FROM record WHERE "} + kEnd + " = " +
            std::to_string(kNoEnd) + " AND +cluster = ?1"}) {
    auto statement = database->prepare(sql);
    if (!statement) return statement.error().with_context(path);
    prepared.push_back(std::move(*statement));
  }
  return Writer{std::move(*database),
                {.upsert = std::move(prepared[0]),
                 .close_earlier = std::move(prepared[1]),
                 .end_task = std::move(prepared[2]),
                 .add_ended = std::move(prepared[3]),
                 .close_gone = std::move(prepared[4]),
                 .open_jobs = std::move(prepared[5])}};
}

base::Status Writer::write(std::span<const Change> changes) {
  if (changes.empty()) return {};
  Transaction transaction{database_};
  base::Status status = transaction.begin();
  if (status) status = database_.run("UPDATE about SET sequence = sequence + 1");
  bare_ends_of_batch_ = 0;
  for (const Change& change : changes) {
    if (!status) return status;
    status = std::visit([this](const auto& one) { return apply(one); }, change);
  }
  if (status) status = transaction.commit();
  if (status) bare_ends_ += bare_ends_of_batch_;
  return status;
}

base::Status Writer::apply(const Written& change) {
  Binder binder{statements_.upsert};
  visit(binder, change.record);
  base::Status status = statements_.upsert.run();
  if (!status || change.record.restart == 0) return status;
  Binder earlier{statements_.close_earlier};
  Record before = change.record;
  set_usage(before, change.used_before);
  visit(earlier, before);
  return statements_.close_earlier.run();
}

base::Status Writer::apply(const TaskEnded& change) {
  for (Statement* statement : {&statements_.end_task, &statements_.add_ended}) {
    Binder binder{*statement};
    visit(binder, change.record);
    if (const base::Status status = statement->run(); !status) return status;
    const bool is_known_to_have_begun =
        statement == &statements_.end_task || change.record.state != RecordState::kCancelled;
    if (is_known_to_have_begun && database_.changes() > 0) ++bare_ends_of_batch_;
  }
  return {};
}

base::Status Writer::apply(const JobGone& change) {
  Statement& statement = statements_.close_gone;
  statement.bind(1, std::string_view{change.cluster});
  statement.bind(2, std::string_view{change.job_uid});
  statement.bind(3, base::micros_since_epoch(change.at));
  statement.bind(4, kube::to_string(change.is_seen ? RecordState::kCancelled : RecordState::kLost));
  statement.bind(5, std::string_view{change.is_seen ? "Deleted" : "EndNotSeen"});
  return statement.run();
}

base::Result<std::vector<std::string>> Writer::open_jobs(const std::string& cluster) {
  Statement& statement = statements_.open_jobs;
  statement.bind(1, std::string_view{cluster});
  std::vector<std::string> uids;
  auto has_row = statement.step();
  for (; has_row && *has_row; has_row = statement.step()) uids.push_back(statement.text(0));
  statement.reset();
  if (!has_row) return has_row.error();
  return uids;
}

base::Result<Reader> Reader::open(const std::string& path) {
  auto database = Database::open(path, Database::Access::kRead);
  if (!database) return database.error();
  const auto version = database->integer("PRAGMA user_version");
  if (!version) return version.error().with_context(path);
  if (version->value_or(0) != kVersion) {
    return base::invalid_argument(path + ": no database of records of this version");
  }
  return Reader{std::move(*database)};
}

base::Result<base::Instant> Reader::since() const {
  const auto since = database_.integer("SELECT since FROM about");
  if (!since) return since.error();
  return base::instant_from_micros(since->value_or(0));
}

base::Result<std::string> Reader::identity() const {
  auto statement = database_.prepare("SELECT identity FROM about");
  if (!statement) return statement.error();
  const auto has_row = statement->step();
  if (!has_row) return has_row.error();
  return *has_row ? statement->text(0) : "";
}

base::Result<ChangedPage> Reader::changed_after(const ChangePlace& place, std::size_t limit) const {
  auto statement = database_.prepare(
      "SELECT changed, id, " + names_of_columns() +
      " FROM record WHERE (changed, id) > (?1, ?2) ORDER BY changed, id LIMIT ?3");
  if (!statement) return statement.error();
  statement->bind(1, place.changed);
  statement->bind(2, place.id);
  statement->bind(3, static_cast<std::int64_t>(limit));
  ChangedPage page{.last = place};
  auto has_row = statement->step();
  for (; has_row && *has_row; has_row = statement->step()) {
    page.last = {.changed = statement->integer(0), .id = statement->integer(1)};
    RowReader reader{*statement, 2};
    visit(reader, page.records.emplace_back());
  }
  if (!has_row) return has_row.error();
  return page;
}

// The order is that of the indexes, so that a page costs what it has, wherever it begins. A plus
// before a column keeps its index out of use: all records are of one cluster.
// SQLite keeps no statistics of the table, so it chooses the index by the statement alone: that of
// the namespace, else of the user, else of the ends. Rows of numbers are few, and read by these:
// with + before it a column's index is not considered.
std::string sql_of(const Query& query) {
  const std::string end = kEnd;
  const std::string other = query.jobs.empty() ? "" : "+";
  std::string sql = "SELECT id, " + end + ", " + names_of_columns() +
                    " FROM record WHERE (?1 = '' OR +cluster = ?1) AND " + other + end +
                    " >= ?2 AND submitTime <= ?3";
  if (!query.ns.empty()) sql += " AND " + other + "namespace = ?4";
  if (query.user) sql += " AND " + other + "user IN (?5, '')";
  if (query.after) sql += " AND (" + other + end + ", id) > (?6, ?7)";
  if (!query.jobs.empty()) {
    std::string numbers;
    for (const std::int64_t job : query.jobs) {
      numbers += (numbers.empty() ? "" : ",") + std::to_string(job);
    }
    sql += " AND id IN (SELECT id FROM record WHERE jobID IN (" + numbers +
           ") UNION SELECT id FROM record WHERE arrayID IN (" + numbers + "))";
  }
  return sql + " ORDER BY " + end + ", id LIMIT ?8";
}

base::Result<Page> Reader::find(const Query& query) const {
  auto statement = database_.prepare(sql_of(query));
  if (!statement) return statement.error();
  statement->bind(1, std::string_view{query.cluster});
  statement->bind(2, base::micros_since_epoch(query.from));
  statement->bind(3, base::micros_since_epoch(query.until));
  if (!query.ns.empty()) statement->bind(4, std::string_view{query.ns});
  if (query.user) statement->bind(5, std::string_view{*query.user});
  if (query.after) statement->bind(6, query.after->end);
  if (query.after) statement->bind(7, query.after->id);
  statement->bind(8, static_cast<std::int64_t>(query.limit) + 1);
  Page page;
  auto has_row = statement->step();
  Place last;
  for (; has_row && *has_row; has_row = statement->step()) {
    if (page.records.size() == query.limit) {
      page.next = last;
      break;
    }
    last = {.end = statement->integer(1), .id = statement->integer(0)};
    RowReader reader{*statement, 2};
    visit(reader, page.records.emplace_back());
  }
  if (!has_row) return has_row.error();
  return page;
}

}  // namespace records
