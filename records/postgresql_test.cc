// The copy in PostgreSQL, with Debian's own server, which is killed and started again.
#include "records/postgresql.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <pqxx/pqxx>
#include <thread>

#include "kube/testing/manual_clock.h"
#include "records/feeder.h"
#include "records/testing/history.h"

namespace records {
namespace {

namespace fs = std::filesystem;
using testing::at;
using testing::job_named;
using testing::kCluster;
using testing::on;

constexpr const char* kDebiansServers = "/usr/lib/postgresql";
constexpr ::uid_t kNobody = 65'534;  // a server does not run as root

std::optional<fs::path> find_programs() {
  std::error_code failed;
  for (const auto& version : fs::directory_iterator{kDebiansServers, failed}) {
    if (fs::exists(version.path() / "bin/initdb")) return version.path() / "bin";
  }
  return std::nullopt;
}

constexpr const char* kSocket = ".s.PGSQL.5432";

// A server with a socket in its own folder, and no port.
class Server {
 public:
  explicit Server(const fs::path& programs, const fs::path& folder)
      : programs_{programs}, folder_{folder} {
    fs::create_directories(folder_);
    if (::geteuid() == 0) {
      EXPECT_EQ(::chown(folder_.c_str(), kNobody, kNobody), 0);
    }
    const int made = wait_for(run({"initdb", "-D", data(), "-U", "records", "-A", "trust",
                                   "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"}));
    EXPECT_EQ(made, 0) << "initdb";
  }
  ~Server() {
    if (pid_) kill();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Until it answers. The processes of one that was killed take a moment to end, and until then
  // another one ends itself.
  void start() {
    for (int tries = 0; tries < 300; ++tries) {
      if (!pid_) {
        pid_ = run({"postgres", "-D", data(), "-k", folder_, "-h", "", "-c", "fsync=off"});
      }
      if (answers()) return;
      if (::waitpid(*pid_, nullptr, WNOHANG) == *pid_) pid_.reset();
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
    }
    FAIL() << "the server does not answer";
  }
  // Without a word: what it had not written is gone.
  void kill() {
    ::kill(*pid_, SIGKILL);
    ::waitpid(*pid_, nullptr, 0);
    pid_.reset();
  }
  static std::string url_at(const fs::path& folder) {
    return "host=" + folder.string() + " user=records dbname=postgres";
  }
  std::string url() const { return url_at(folder_); }
  fs::path socket() const { return folder_ / kSocket; }
  pqxx::result ask(const std::string& sql) const {
    pqxx::connection connection{url()};
    pqxx::work work{connection};
    pqxx::result rows = work.exec(sql);
    work.commit();
    return rows;
  }

 private:
  std::string data() const { return folder_ / "data"; }
  bool answers() const {
    try {
      return !ask("SELECT 1").empty();
    } catch (const std::exception&) {
      return false;
    }
  }
  ::pid_t run(std::vector<std::string> words) const {
    const std::string program = programs_ / words[0];
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const ::pid_t pid = ::fork();
    if (pid != 0) return pid;
    const bool is_dropped = ::geteuid() != 0 || (::setgid(kNobody) == 0 && ::setuid(kNobody) == 0);
    const int log = ::open((folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(log, 1);
    ::dup2(log, 2);
    if (is_dropped && ::chdir(folder_.c_str()) == 0) ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  static int wait_for(::pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return status;
  }

  const fs::path programs_, folder_;
  std::optional<::pid_t> pid_;
};

// Whether the server has got the write at which it is killed.
enum class Write { kIsLost, kIsAnsweredInVain };

// Passes on what a client and a server say to each other, until the client's write number `at`:
// there the server is killed, and the client loses its connection. What comes later is passed on.
class DeadlyPoint {
 public:
  DeadlyPoint(const fs::path& folder, Server& server, int at, Write write)
      : server_{server}, at_{at}, write_{write} {
    fs::create_directories(folder);
    fs::remove(folder / kSocket);
    listening_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const ::sockaddr_un address = address_of(folder / kSocket);
    EXPECT_EQ(::bind(listening_, as_any(address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_, 8), 0);
    thread_ = std::jthread{[this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        if (is_readable(listening_)) serve(::accept(listening_, nullptr, nullptr), stop);
      }
    }};
  }
  ~DeadlyPoint() {
    thread_.request_stop();
    thread_.join();
    ::close(listening_);
  }
  DeadlyPoint(const DeadlyPoint&) = delete;
  DeadlyPoint& operator=(const DeadlyPoint&) = delete;

  bool was_reached() const { return was_reached_; }
  // Passes on everything from now on, such as the last word of a client that goes.
  void disarm() { is_armed_ = false; }

 private:
  static ::sockaddr_un address_of(const fs::path& path) {
    ::sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
    path.string().copy(address.sun_path, sizeof address.sun_path - 1);
    return address;
  }
  static const ::sockaddr* as_any(const ::sockaddr_un& address) {
    return reinterpret_cast<const ::sockaddr*>(&address);
  }
  static bool is_readable(int socket) {
    ::pollfd one{.fd = socket, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 20) == 1;
  }
  // Returns false if there is nothing more.
  bool pass_on(int from, int to, bool is_write) {
    std::array<char, 1 << 16> buffer;
    const ::ssize_t size = ::read(from, buffer.data(), buffer.size());
    if (size <= 0) return false;
    const bool is_deadly = is_write && ++writes_ == at_ && is_armed_;
    if (!is_deadly || write_ == Write::kIsAnsweredInVain) {
      if (::send(to, buffer.data(), static_cast<std::size_t>(size), MSG_NOSIGNAL) != size)
        return false;
    }
    if (!is_deadly) return true;
    while (write_ == Write::kIsAnsweredInVain && !is_readable(to)) {
    }
    server_.kill();
    was_reached_ = true;
    return false;
  }
  void serve(int client, const std::stop_token& stop) {
    const int server = ::socket(AF_UNIX, SOCK_STREAM, 0);
    const ::sockaddr_un address = address_of(server_.socket());
    bool is_open = ::connect(server, as_any(address), sizeof address) == 0;
    while (is_open && !stop.stop_requested()) {
      std::array<::pollfd, 2> both{{{client, POLLIN, 0}, {server, POLLIN, 0}}};
      ::poll(both.data(), both.size(), 20);
      if (both[0].revents != 0) is_open = pass_on(client, server, true);
      if (is_open && both[1].revents != 0) is_open = pass_on(server, client, false);
    }
    ::close(client);
    ::close(server);
  }

  Server& server_;
  const int at_;
  const Write write_;
  int listening_ = -1;
  int writes_ = 0;
  std::atomic<bool> is_armed_ = true, was_reached_ = false;
  std::jthread thread_;
};

class PostgresqlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto programs = find_programs();
    if (!programs) GTEST_SKIP() << "postgresql is not installed (make records-postgresql)";
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path{::testing::TempDir()} / (std::string{"postgresql_"} + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    server_.emplace(*programs, folder_ / "server");
    server_->start();
    open_database();
  }
  void TearDown() override {
    server_.reset();
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  std::string file() const { return folder_ / "records.db"; }
  void open_database() {
    auto writer = Writer::open(file(), at(0));
    ASSERT_TRUE(writer.ok());
    writer_.emplace(std::move(*writer));
  }
  void write(const kube::Job& job) {
    EXPECT_TRUE(writer_->write(changes_of(nullptr, job, kCluster, at(0))).ok());
  }
  void write_running(int number) {
    kube::Job job = job_named("j" + std::to_string(number), number);
    job.status.state = kube::JobState::kRunning;
    job.status.allocation = on("n[1-2]");
    job.status.start_time = at(10);
    write(job);
  }
  void write_ended(int number) {
    kube::Job job = job_named("j" + std::to_string(number), number);
    job.status.state = kube::JobState::kCompleted;
    job.status.allocation = on("n[1-2]");
    job.status.start_time = at(10);
    job.status.end_time = at(20 + number);
    job.status.run_time =
        kube::RunTime{.elapsed = std::chrono::seconds{10 + number}, .as_of = *job.status.end_time};
    job.status.exit_code = 0;
    write(job);
  }

  Feeder feeder() {
    return {*Reader::open(file()), clock_,
            [this]() -> base::Result<std::string> { return server_->url(); },
            [this](const base::Error& error) { last_error_ = error; }};
  }
  // Until there is nothing to do; false: it failed.
  static bool feed_all(Feeder& feeder) {
    while (feeder.step() == base::Duration{}) {
    }
    return feeder.counters().failures == 0;
  }

  // Jobs begin, then some end and others begin, while the server is killed at one write of the
  // copy. Returns false if there was no such write.
  bool survives_a_kill_at(int at, Write write) {
    schema_ = "killed_" + std::to_string(at) + (write == Write::kIsLost ? "_lost" : "_answered");
    server_->ask("CREATE SCHEMA " + schema_);
    writer_.reset();
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(file() + end);
    open_database();
    const fs::path folder = folder_ / "point";
    DeadlyPoint point{folder, *server_, at, write};
    const std::string url = Server::url_at(folder) + " options='-c search_path=" + schema_ + "'";
    Feeder feeds{*Reader::open(file()), clock_, [&]() -> base::Result<std::string> { return url; },
                 [](const base::Error&) {}};
    bool was_killed = false;
    const auto feed_all_of_it = [&] {
      for (base::Duration rest{}; rest != std::chrono::seconds{2};) {
        rest = feeds.step();
        if (point.was_reached() && !std::exchange(was_killed, true)) server_->start();
      }
    };
    for (int i = 0; i < 3; ++i) write_running(i);
    feed_all_of_it();
    write_ended(1);
    write_running(4);
    feed_all_of_it();
    point.disarm();
    EXPECT_EQ(there(), here()) << schema_;
    EXPECT_EQ(feeds.counters().failures, was_killed ? 1 : 0) << schema_;
    return was_killed;
  }

  // Returns both tables as text, in one order.
  std::vector<std::string> here() const {
    std::vector<std::string> rows;
    const auto reader = Reader::open(file());
    const auto page = reader->find({.cluster = kCluster, .limit = 100'000});
    for (const Record& one : page->records) {
      const auto micros = [](const auto& time) {
        return time ? std::to_string(base::micros_since_epoch(*time)) : "-";
      };
      rows.push_back(one.job_uid + " " + std::to_string(one.restart) + " " +
                     std::string{kube::to_string(one.state)} + " " + micros(one.start_time) + " " +
                     micros(one.end_time) + " " + one.hostlist);
    }
    std::ranges::sort(rows);
    return rows;
  }
  std::vector<std::string> there() const {
    std::vector<std::string> rows;
    for (const auto& row : server_->ask(
             "SELECT concat_ws(' ', jobUID, restart, state, coalesce(startTime::text, '-'), "
             "coalesce(endTime::text, '-'), hostlist) FROM " +
             schema_ + ".record")) {
      rows.emplace_back(row[0].c_str());
    }
    std::ranges::sort(rows);
    return rows;
  }

  fs::path folder_;
  kube::ManualClock clock_{at(0)};
  std::optional<Server> server_;
  std::optional<Writer> writer_;
  base::Error last_error_;
  std::string schema_ = "public";
};

TEST_F(PostgresqlTest, HasWhatSqliteHas) {
  for (int i = 0; i < 30; ++i) write_running(i);
  for (int i = 0; i < 20; ++i) write_ended(i);
  Feeder first = feeder();
  EXPECT_TRUE(feed_all(first)) << last_error_.message;
  EXPECT_EQ(there(), here());
  EXPECT_EQ(first.counters().rows, 30);
  // Only what has changed since.
  write_ended(25);
  EXPECT_TRUE(feed_all(first));
  EXPECT_EQ(first.counters().rows, 31);
  EXPECT_EQ(there(), here());
  // The next process goes on where this one was.
  write_ended(26);
  Feeder second = feeder();
  EXPECT_TRUE(feed_all(second));
  EXPECT_EQ(second.counters().rows, 1);
  EXPECT_EQ(there(), here());
}

// While jobs go on, the server is killed again and again, in the middle of whatever it does.
TEST_F(PostgresqlTest, LosesNothingAndHasNothingTwiceThoughItIsKilled) {
  constexpr int kJobs = 1'500;
  constexpr int kKills = 6;
  std::atomic<bool> is_over = false;
  Feeder feeds = feeder();
  std::thread feeding{[&] {
    while (!is_over) {
      // Waits less than the program, for the sake of the test's length.
      if (feeds.step() > base::Duration{})
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
  }};
  for (int i = 0; i < kJobs; ++i) {
    write_running(i);
    if (i % 3 == 0) write_ended(i / 2);
    if (i % (kJobs / kKills) == kJobs / kKills / 2) {
      server_->kill();
      for (int down = 0; down < 20; ++down) write_ended(i - down);
      server_->start();
    }
  }
  while (feeds.counters().rows == 0) std::this_thread::sleep_for(std::chrono::milliseconds{5});
  is_over = true;
  feeding.join();
  while (feeds.step() != std::chrono::seconds{2}) {
  }
  EXPECT_GE(feeds.counters().failures, 1) << "the kills were not noticed";
  EXPECT_EQ(there(), here());
}

// At every write of the copy in turn, from the first word to the last commit: once before the
// server has got it, and once when its answer is lost.
TEST_F(PostgresqlTest, LosesNothingAndHasNothingTwiceWhicheverWriteItIsKilledAt) {
  for (const Write write : {Write::kIsLost, Write::kIsAnsweredInVain}) {
    int at = 1;
    while (survives_a_kill_at(at, write)) ++at;
    // Login, tables, prepared statements, and two transactions of several writes each.
    EXPECT_GT(at, 25) << "the writes do not pass the point";
  }
}

// PostgreSQL is restored from a backup: its own word says where it was.
TEST_F(PostgresqlTest, GoesOnFromWhereItWasSetBackTo) {
  for (int i = 0; i < 5; ++i) write_ended(i);
  Feeder before = feeder();
  EXPECT_TRUE(feed_all(before));
  server_->ask("CREATE TABLE backup AS TABLE record_source");
  for (int i = 5; i < 9; ++i) write_ended(i);
  EXPECT_TRUE(feed_all(before));
  server_->ask(
      "DELETE FROM record WHERE jobID >= 5; DELETE FROM record_source; "
      "INSERT INTO record_source TABLE backup");
  Feeder after = feeder();
  EXPECT_TRUE(feed_all(after));
  EXPECT_EQ(after.counters().rows, 4);
  EXPECT_EQ(there(), here());
}

// The claim was lost: what is in PostgreSQL stays, and the new database is copied from its
// beginning.
TEST_F(PostgresqlTest, TakesAnotherDatabaseFromItsBeginning) {
  for (int i = 0; i < 5; ++i) write_ended(i);
  Feeder before = feeder();
  EXPECT_TRUE(feed_all(before));
  writer_.reset();
  for (const char* end : {"", "-wal", "-shm"}) fs::remove(file() + end);
  open_database();
  write_ended(7);
  Feeder after = feeder();
  EXPECT_TRUE(feed_all(after));
  EXPECT_EQ(there().size(), 6U);
}

// A user may give a job any name, and none holds up the others.
TEST_F(PostgresqlTest, TakesEveryText) {
  kube::Job job = job_named("strange", 1);
  for (const std::string& name :
       {std::string{"a\0b", 3}, std::string{"\xff\xfe"}, std::string{"'); DROP TABLE record; --"},
        std::string{"\\u0000\n\"ä"}}) {
    job.metadata.annotations["kubegang.io/name"] = name;
    job.metadata.uid += "x";
    write(job);
  }
  Feeder feeds = feeder();
  EXPECT_TRUE(feed_all(feeds)) << last_error_.message;
  EXPECT_EQ(server_->ask("SELECT name FROM record WHERE name LIKE '%ROP TABLE%'").size(), 1U);
  EXPECT_EQ(there().size(), 4U);
}

TEST_F(PostgresqlTest, TheViewHasTimesAndSums) {
  write_ended(4);
  Feeder feeds = feeder();
  EXPECT_TRUE(feed_all(feeds));
  const pqxx::result row = server_->ask(
      "SET TIME ZONE 'UTC'; SELECT \"user\", cpuSeconds, endTime - startTime, askedCPUs FROM job");
  ASSERT_EQ(row.size(), 1U);
  EXPECT_STREQ(row[0][0].c_str(), "team-a") << "of a job that names no user its namespace";
  EXPECT_EQ(row[0][1].as<int>(), 14 * 8);
  EXPECT_STREQ(row[0][2].c_str(), "00:00:14");
  EXPECT_EQ(row[0][3].as<int>(), 1);
}

TEST_F(PostgresqlTest, RefusesTablesOfALaterVersion) {
  Feeder feeds = feeder();
  EXPECT_TRUE(feed_all(feeds));
  server_->ask("UPDATE record_about SET version = 99");
  Feeder later = feeder();
  EXPECT_FALSE(feed_all(later));
  EXPECT_EQ(last_error_.message, "PostgreSQL has tables of version 99, and this program knows 1");
  // An earlier one gets what it lacks.
  server_->ask(
      "DROP VIEW job; ALTER TABLE record DROP COLUMN steps; "
      "UPDATE record_about SET version = 0");
  write_ended(1);
  Feeder earlier = feeder();
  EXPECT_TRUE(feed_all(earlier)) << last_error_.message;
  EXPECT_EQ(there(), here());
}

}  // namespace
}  // namespace records
