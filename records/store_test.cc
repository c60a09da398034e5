#include "records/store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "api/annotations.h"
#include "base/prng.h"
#include "records/testing/history.h"

namespace records {
namespace {

namespace fs = std::filesystem;
using testing::at;
using testing::job_named;
using testing::kCluster;
using testing::on;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path{::testing::TempDir()} / (std::string{"records_"} + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~StoreTest() override { fs::remove_all(folder_); }

  std::string file(const std::string& name = "records.db") const { return folder_ / name; }

  static Writer writer_of(const std::string& path) {
    auto writer = Writer::open(path, at(0));
    EXPECT_TRUE(writer.ok()) << writer.error().message;
    return std::move(*writer);
  }
  static std::vector<Record> find(const std::string& path, Query query) {
    query.cluster = kCluster;
    auto reader = Reader::open(path);
    EXPECT_TRUE(reader.ok()) << reader.error().message;
    std::vector<Record> all;
    for (;;) {
      auto page = reader->find(query);
      EXPECT_TRUE(page.ok()) << page.error().message;
      all.insert(all.end(), page->records.begin(), page->records.end());
      if (!page->next) return all;
      query.after = page->next;
    }
  }
  static std::vector<Record> all_in(const std::string& path) {
    return find(path, {.limit = 100'000});
  }

  fs::path folder_;
};

Written written(const kube::Job& job) {
  return std::get<Written>(changes_of(nullptr, job, kCluster, at(0)).at(0));
}

kube::Job running(kube::Job job, base::Instant since) {
  job.status.state = kube::JobState::kRunning;
  job.status.allocation = on("n1");
  job.status.start_time = since;
  return job;
}

kube::Job ended(kube::Job job, base::Instant when) {
  job.status.state = kube::JobState::kCompleted;
  job.status.end_time = when;
  job.status.run_time = kube::RunTime{.elapsed = when - *job.status.start_time, .as_of = when};
  return job;
}

kube::Job requeued(kube::Job job, base::Instant when) {
  const std::int64_t restarts = job.status.restarts.value_or(0) + 1;
  job.status = job_named("", *job.status.job_id).status;
  job.status.restarts = restarts;
  job.status.submit_time = when;
  return job;
}

TEST_F(StoreTest, ARecordThatHasEndedDoesNotChange) {
  Writer writer = writer_of(file());
  const kube::Job first = running(job_named("a", 1), at(10));
  const kube::Job last = ended(first, at(50));
  ASSERT_TRUE(writer.write(std::vector<Change>{written(first), written(last)}).ok());
  const std::vector<Record> once = all_in(file());
  ASSERT_EQ(once, std::vector{written(last).record});
  ASSERT_TRUE(writer
                  .write(std::vector<Change>{
                      written(first), written(last),
                      JobGone{.cluster = kCluster, .job_uid = "uid-a", .at = at(99)}})
                  .ok());
  EXPECT_EQ(all_in(file()), once);
}

TEST_F(StoreTest, ARequeueEndsTheRunBefore) {
  Writer writer = writer_of(file());
  kube::Job job = running(job_named("a", 1), at(10));
  job.status.run_time = kube::RunTime{.elapsed = std::chrono::seconds{20}, .as_of = at(30)};
  const kube::Job again = requeued(job, at(40));
  ASSERT_TRUE(writer.write(std::vector<Change>{written(job), written(again)}).ok());
  const std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].state, RecordState::kRequeued);
  EXPECT_EQ(records[0].end_time, at(40));
  EXPECT_EQ(records[0].elapsed, std::chrono::seconds{30});
  EXPECT_EQ(records[1], written(again).record);
}

TEST_F(StoreTest, AStartThatIsUndoneLeavesNoNodes) {
  Writer writer = writer_of(file());
  const kube::Job waits = job_named("a", 1);
  ASSERT_TRUE(
      writer.write(std::vector<Change>{written(running(waits, at(5))), written(waits)}).ok());
  EXPECT_EQ(all_in(file()), std::vector{written(waits).record});
}

TEST_F(StoreTest, AJobThatIsDeletedIsCanceledAndOneThatVanishedUnseenIsLost) {
  Writer writer = writer_of(file());
  const kube::Job job = running(job_named("a", 1), at(10));
  kube::Job other = running(job_named("b", 2), at(10));
  ASSERT_TRUE(writer.write(std::vector<Change>{written(job), written(other)}).ok());
  EXPECT_EQ(*writer.open_jobs(kCluster), (std::vector<std::string>{"uid-a", "uid-b"}));
  ASSERT_TRUE(
      writer
          .write(std::vector<Change>{
              JobGone{.cluster = kCluster, .job_uid = "uid-a", .at = at(40)},
              JobGone{.cluster = kCluster, .job_uid = "uid-b", .is_seen = false, .at = at(50)}})
          .ok());
  const std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].state, RecordState::kCancelled);
  EXPECT_EQ(records[0].reason, "Deleted");
  EXPECT_EQ(records[0].elapsed, std::chrono::seconds{30});
  EXPECT_EQ(records[1].state, RecordState::kLost);
  EXPECT_EQ(records[1].end_time, at(50));
  EXPECT_EQ(records[1].elapsed, base::Duration{});
  EXPECT_TRUE(writer.open_jobs(kCluster)->empty());
}

// The status with the end no longer names the preemptor.
TEST_F(StoreTest, OneThatWasPreemptedKeepsByWhom) {
  Writer writer = writer_of(file());
  kube::Job job = running(job_named("a", 1), at(10));
  job.status.ending =
      kube::JobEnding{.verdict = kube::EndingVerdict::kPreempted,
                      .by = kube::JobReference{.ns = "team-b", .name = "urgent", .uid = "u"}};
  kube::Job last = ended(job, at(50));
  last.status.state = kube::JobState::kPreempted;
  last.status.ending.reset();
  ASSERT_TRUE(writer.write(std::vector<Change>{written(job), written(last)}).ok());
  EXPECT_EQ(all_in(file()).at(0).preempted_by, "team-b/urgent");
}

TEST_F(StoreTest, CountsTasksOfWhichOnlyTheOutcomeIsKnown) {
  Writer writer = writer_of(file());
  Record record = written(running(job_named("a", 1), at(10))).record;
  const auto task = [&](int number, RecordState state) {
    Record one = record;
    one.task = number;
    one.state = state;
    if (state != RecordState::kRunning) one.end_time = at(25);
    return one;
  };
  ASSERT_TRUE(writer
                  .write(std::vector<Change>{Written{task(1, RecordState::kRunning)},
                                             Written{task(2, RecordState::kCompleted)},
                                             TaskEnded{task(1, RecordState::kCancelled)},
                                             TaskEnded{task(2, RecordState::kCompleted)},
                                             TaskEnded{task(3, RecordState::kFailed)},
                                             TaskEnded{task(4, RecordState::kCancelled)}})
                  .ok());
  EXPECT_EQ(writer.bare_ends(), 2) << "1 and 3: 2 was known, and 4 may never have begun";
}

TEST_F(StoreTest, ATaskEndsWhereItRan) {
  Writer writer = writer_of(file());
  kube::Job array = running(job_named("a", 1), at(10));
  Record record = written(array).record;
  record.task = 4;
  Record end = record;
  end.hostlist.clear();
  end.start_time.reset();
  end.end_time = at(25);
  end.state = RecordState::kFailed;
  ASSERT_TRUE(
      writer.write(std::vector<Change>{Written{record}, TaskEnded{end}, TaskEnded{end}}).ok());
  std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].hostlist, "n1");
  EXPECT_EQ(records[0].state, RecordState::kFailed);
  EXPECT_EQ(records[0].elapsed, std::chrono::seconds{15});
  end.task = 5;
  ASSERT_TRUE(writer.write(std::vector<Change>{TaskEnded{end}}).ok());
  EXPECT_EQ(all_in(file()).size(), 2U) << "one that was never seen while it ran";
}

TEST_F(StoreTest, FindsByWindowUserNamespaceAndNumber) {
  Writer writer = writer_of(file());
  std::vector<Change> changes;
  for (int i = 0; i < 20; ++i) {
    kube::Job job = job_named("j" + std::to_string(i), i);
    job.metadata.ns = i % 4 == 0 ? "team-b" : "team-a";
    job.metadata.annotations[std::string{kube::kAnnotationUser}] = i % 2 == 0 ? "ann" : "bob";
    job.status.submit_time = at(100 * i);
    job = running(job, at(100 * i + 10));
    changes.emplace_back(written(i < 18 ? ended(job, at(100 * i + 50)) : job));
  }
  ASSERT_TRUE(writer.write(changes).ok());
  const auto ids = [&](const Query& query) {
    std::vector<std::int64_t> found;
    for (const Record& record : find(file(), query)) found.push_back(*record.job_id);
    return found;
  };
  using Ids = std::vector<std::int64_t>;
  EXPECT_EQ(ids({.from = at(210), .until = at(400)}), (Ids{2, 3, 4}));
  EXPECT_EQ(ids({.from = at(1'760)}), (Ids{18, 19})) << "those that run have no end";
  EXPECT_EQ(ids({.user = "ann", .from = at(210), .until = at(600)}), (Ids{2, 4, 6}));
  EXPECT_EQ(ids({.ns = "team-b", .user = "ann", .until = at(800)}), (Ids{0, 4, 8}));
  EXPECT_EQ(ids({.jobs = {3, 18, 77}}), (Ids{3, 18}));
  EXPECT_EQ(ids({.limit = 3}), ids({})) << "page by page";
  EXPECT_EQ(ids({}).size(), 20U);
}

// The truth is a list of runs; what the store is given are the objects that a watch may show of it:
// states are skipped, and after a restart of the program everything comes again.
TEST_F(StoreTest, RandomHistoriesLeaveTheRunsThatTheJobsHad) {
  constexpr std::uint64_t kSeed = 20'261'129;
  base::Prng prng{kSeed};
  Writer writer = writer_of(file());
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + " round " + std::to_string(round));
    kube::Job job = job_named("r" + std::to_string(round), round);
    job.metadata.uid = "uid-" + std::to_string(round);
    std::int64_t now = 0;
    const auto later = [&] { return at(now += 1 + static_cast<std::int64_t>(prng.below(50))); };
    std::vector<Record> truth;
    std::optional<kube::Job> seen;
    const auto show = [&](const kube::Job& state) {
      const bool restarts = prng.below(4) == 0;
      const auto changes =
          changes_of(seen && !restarts ? &*seen : nullptr, state, kCluster, at(now));
      ASSERT_TRUE(writer.write(changes).ok());
      const std::uint64_t repeats = prng.below(3);
      for (std::uint64_t i = 0; i < repeats; ++i) ASSERT_TRUE(writer.write(changes).ok());
      seen = state;
    };
    for (std::uint64_t runs = 1 + prng.below(3); runs > 0; --runs) {
      if (prng.below(2) == 0) show(job);
      const kube::Job waits = job;
      job = running(job, later());
      if (prng.below(3) == 0) {  // undone
        show(job);
        job = waits;
        show(job);
        job = running(job, later());
      }
      show(job);
      Record record = written(job).record;
      if (prng.below(5) == 0) {
        record.state = RecordState::kCancelled;
        record.end_time = later();
        const JobGone gone{
            .cluster = kCluster, .job_uid = job.metadata.uid, .at = *record.end_time};
        ASSERT_TRUE(writer.write(std::vector<Change>{gone}).ok());
        runs = 1;
      } else if (runs == 1) {
        job = ended(job, later());
        record = written(job).record;
        show(job);
      } else {
        job = requeued(job, later());
        record.state = RecordState::kRequeued;
        record.end_time = at(now);
        show(job);
      }
      truth.push_back(record);
    }
    const auto found = find(file(), {.jobs = {round}});
    ASSERT_EQ(found.size(), truth.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].restart, truth[i].restart);
      EXPECT_EQ(found[i].state, truth[i].state);
      EXPECT_EQ(found[i].start_time, truth[i].start_time);
      EXPECT_EQ(found[i].end_time, truth[i].end_time);
      EXPECT_EQ(found[i].hostlist, truth[i].hostlist);
      EXPECT_EQ(found[i].elapsed, *truth[i].end_time - *truth[i].start_time);
    }
  }
}

std::string read_file(const fs::path& path) {
  std::ifstream in{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}
void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream{path, std::ios::binary} << bytes;
}

// A crash at any write leaves a log of any length. It then holds what one of the batches has left,
// and writing everything again gives the same as without a crash.
TEST_F(StoreTest, ACrashAtAnyWriteLosesNoBatchAndRepeatsNone) {
  std::vector<std::vector<Change>> batches;
  for (int i = 0; i < 6; ++i) {
    const kube::Job job = running(job_named("j" + std::to_string(i), i), at(i));
    batches.push_back(
        {written(job), written(i % 2 == 0 ? ended(job, at(100 + i)) : requeued(job, at(100 + i)))});
  }
  std::vector<std::vector<Record>> states;
  std::string database, log;
  {
    Writer writer = writer_of(file());
    states.push_back(all_in(file()));
    for (const auto& batch : batches) {
      ASSERT_TRUE(writer.write(batch).ok());
      states.push_back(all_in(file()));
    }
    database = read_file(file());
    log = read_file(file() + "-wal");  // still there: the writer is open
  }
  ASSERT_GT(log.size(), 10'000U);
  std::size_t state_before = 0;
  bool has_tables = false;
  for (std::size_t size = 0; size <= log.size(); size += 1'031) {
    SCOPED_TRACE("log of " + std::to_string(size) + " bytes");
    fs::remove(file("crash.db-shm"));
    write_file(file("crash.db"), database);
    write_file(file("crash.db-wal"), log.substr(0, size));
    Writer writer = writer_of(file("crash.db"));
    const std::vector<Record> found = all_in(file("crash.db"));
    const auto state = std::ranges::find(states, found);
    ASSERT_NE(state, states.end());
    const auto index = static_cast<std::size_t>(state - states.begin());
    EXPECT_GE(index, state_before) << "more of the log is there, and less is found";
    state_before = index;
    has_tables = has_tables || index > 0;
    for (const auto& batch : batches) ASSERT_TRUE(writer.write(batch).ok());
    EXPECT_EQ(all_in(file("crash.db")), states.back());
  }
  EXPECT_TRUE(has_tables);
}

TEST_F(StoreTest, WhatARunHasUsedIsInItsRecordAlone) {
  Writer writer = writer_of(file());
  const kube::Job first = running(job_named("a", 1), at(10));
  kube::Job again = requeued(first, at(40));
  again.status.usage = kube::JobUsage{.user_cpu = std::chrono::seconds{7},
                                      .max_rss = kube::Bytes{4'096},
                                      .steps = {{.id = "batch"}}};
  kube::Job second = running(again, at(50));
  second.status.usage.reset();
  kube::Job last = ended(second, at(90));
  last.status.usage = kube::JobUsage{.user_cpu = std::chrono::seconds{9}};
  ASSERT_TRUE(writer
                  .write(std::vector<Change>{written(first), written(again), written(second),
                                             written(last)})
                  .ok());
  const std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].user_cpu, std::chrono::seconds{7});
  EXPECT_EQ(records[0].max_rss, kube::Bytes{4'096});
  EXPECT_FALSE(records[0].memory_peak);
  EXPECT_EQ(job_of(records[0]).status.usage->steps.size(), 1U);
  EXPECT_EQ(records[1].user_cpu, std::chrono::seconds{9});
  EXPECT_EQ(records[1].steps, "");
  EXPECT_EQ(job_of(records[1]).status.usage, last.status.usage);
}

// The requeue was not seen: what the first run has used is unknown.
TEST_F(StoreTest, ARunBeforeIsNotChargedWithTheLast) {
  Writer writer = writer_of(file());
  const kube::Job first = running(job_named("a", 1), at(10));
  kube::Job last = ended(running(requeued(first, at(40)), at(50)), at(90));
  last.status.usage = kube::JobUsage{.user_cpu = std::chrono::seconds{9}};
  ASSERT_TRUE(writer.write(std::vector<Change>{written(first), written(last)}).ok());
  const std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_FALSE(records[0].user_cpu);
  EXPECT_EQ(records[1].user_cpu, std::chrono::seconds{9});
}

// The text of each.
std::vector<std::string> indexes_of(const Database& database) {
  auto rows = database.prepare(
      "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name");
  std::vector<std::string> all;
  for (auto has_row = rows->step(); has_row && *has_row; has_row = rows->step()) {
    all.push_back(rows->text(0));
  }
  return all;
}

TEST_F(StoreTest, ADatabaseOfAnEarlierVersionGetsTheNewColumns) {
  std::ifstream text{KUBEGANG_SOURCE_DIR "/records/testing/version_1.sql"};
  const std::string sql{std::istreambuf_iterator<char>{text}, {}};
  ASSERT_FALSE(sql.empty());
  {
    auto database = Database::open(file(), Database::Access::kWrite);
    ASSERT_TRUE(database.ok());
    const base::Status made = database->run(sql);
    ASSERT_TRUE(made.ok()) << made.error().message;
  }
  EXPECT_FALSE(Reader::open(file()).ok());
  Writer writer = writer_of(file());
  kube::Job job = ended(running(job_named("a", 2), at(10)), at(90));
  job.status.usage = kube::JobUsage{.user_cpu = std::chrono::seconds{9}};
  ASSERT_TRUE(writer.write(std::vector<Change>{written(job)}).ok());
  const std::vector<Record> records = all_in(file());
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].object, "old");
  EXPECT_EQ(records[0].state, RecordState::kCompleted);
  EXPECT_EQ(records[0].elapsed, std::chrono::seconds{40});
  EXPECT_FALSE(records[0].user_cpu);
  EXPECT_EQ(records[0].steps, "");
  EXPECT_EQ(records[1], written(job).record);
  auto database = Database::open(file(), Database::Access::kRead);
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(*database->integer("SELECT usedCPUSeconds FROM job WHERE jobID = 2"), 9);
  // A new table and a migrated one have the same columns.
  (void)writer_of(file("new.db"));
  auto fresh = Database::open(file("new.db"), Database::Access::kRead);
  ASSERT_TRUE(fresh.ok());
  const char* const count = "SELECT count(*) FROM pragma_table_info('record')";
  EXPECT_EQ(*database->integer(count), *fresh->integer(count));
  EXPECT_EQ(indexes_of(*database), indexes_of(*fresh));
}

// The index by which SQLite finds the rows of a question does not depend on what is in the table.
TEST_F(StoreTest, AQuestionReadsTheIndexOfWhatItNames) {
  { writer_of(file()); }
  auto database = Database::open(file(), Database::Access::kRead);
  ASSERT_TRUE(database.ok());
  const auto plan = [&](const Query& query) {
    auto rows = database->prepare("EXPLAIN QUERY PLAN " + sql_of(query));
    EXPECT_TRUE(rows.ok());
    EXPECT_TRUE(*rows->step());
    const std::string text = rows->text(3);
    return text.substr(text.find("USING ") + 6, text.find(" (") - text.find("USING ") - 6);
  };
  for (const auto& after : {std::optional<Place>{}, std::optional{Place{}}}) {
    EXPECT_EQ(plan({.after = after}), "INDEX record_end");
    EXPECT_EQ(plan({.user = "ann", .after = after}), "INDEX record_user");
    EXPECT_EQ(plan({.ns = "a", .after = after}), "INDEX record_namespace");
    EXPECT_EQ(plan({.ns = "a", .user = "ann", .after = after}), "INDEX record_namespace");
    for (const char* const ns : {"", "a"}) {
      EXPECT_EQ(plan({.ns = ns, .jobs = {7}, .after = after}), "INTEGER PRIMARY KEY");
      EXPECT_EQ(plan({.ns = ns, .user = "ann", .jobs = {7}, .after = after}),
                "INTEGER PRIMARY KEY");
    }
  }
}

TEST_F(StoreTest, ADatabaseOfANewerVersionIsRefused) {
  { writer_of(file()); }
  {
    auto database = Database::open(file(), Database::Access::kWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->run("PRAGMA user_version = 9").ok());
  }
  EXPECT_EQ(Writer::open(file(), at(0)).error().code, base::Code::kInvalidArgument);
  EXPECT_FALSE(Reader::open(file()).ok());
}

}  // namespace
}  // namespace records
