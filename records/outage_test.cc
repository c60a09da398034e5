// kubegang-records is away for a while: what its database has afterwards of the jobs of a cluster,
// with the operator's part of it. In virtual time, on one thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "operator/testing/world.h"
#include "records/acknowledger.h"
#include "records/recorder.h"
#include "records/testing/history.h"

namespace records {
namespace {

namespace fs = std::filesystem;
using control::World;
using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::kCluster;

const kube::ObjectKey kLease{"kubegang-system", "kubegang-records"};

// The program's parts, from its start until it is killed.
class Program {
 public:
  Program(World& world, const std::string& file)
      : follower_{world.client(), world.clock(), kCluster, queue_, [](const base::Error&) {}},
        recorder_{std::move(*Writer::open(file, world.clock().wall())), queue_, follower_, kCluster,
                  world.clock()},
        acknowledger_{world.client(), kLease, [this] { return recorder_.stored(); },
                      [](const base::Error& error) { FAIL() << error.message; }} {}

  // Stores and acknowledges all changes so far.
  void pump() {
    for (int i = 0; i < 3; ++i) {
      (void)follower_.step({});
      while (queue_.size() > 0 || !recorder_.is_up_to_date()) ASSERT_TRUE(recorder_.step().ok());
      ASSERT_TRUE(recorder_.step().ok());
    }
    (void)acknowledger_.step();
  }
  const RecorderCounters& counters() const { return recorder_.counters(); }

 private:
  kube::Waker waker_;
  ChangeQueue queue_{waker_};
  JobFollower follower_;
  Recorder recorder_;
  Acknowledger acknowledger_;
};

class OutageTest : public ::testing::Test {
 protected:
  OutageTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path{::testing::TempDir()} / (std::string{"outage_"} + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    world_.process().loop().wait_for_records(kLease);
    kube::Lease lease;
    lease.metadata.ns = kLease.ns;
    lease.metadata.name = kLease.name;
    EXPECT_TRUE(world_.client().create(lease).ok());
    world_.apply(control::linear_config());
    world_.apply(control::partition("batch", control::force()));
  }
  ~OutageTest() override { fs::remove_all(folder_); }

  void begin() { program_ = std::make_unique<Program>(world_, folder_ / "records.db"); }
  void kill() { program_.reset(); }
  void run_for(base::Duration time) {
    for (base::Duration passed{}; passed < time; passed += seconds{1}) {
      world_.run_for(seconds{1});
      if (program_) program_->pump();
    }
  }
  std::vector<Record> all() const {
    auto reader = Reader::open(folder_ / "records.db");
    EXPECT_TRUE(reader.ok());
    return reader->find({.cluster = kCluster})->records;
  }
  // Counts tasks of this array whose record has all facts of one that has ended.
  int whole_ends(const std::string& array) const {
    int count = 0;
    for (const Record& record : all()) {
      const bool is_whole = record.object == array && record.end_time && record.start_time &&
                            !record.hostlist.empty() && record.exit_code == 0 &&
                            record.elapsed > seconds{5};
      count += is_whole ? 1 : 0;
    }
    return count;
  }
  kube::ArrayStatus array(const std::string& name) const {
    return world_.job(name).status.array.value_or(kube::ArrayStatus{});
  }
  std::int64_t unseen() { return world_.process().loop().counters().unseen_jobs; }

  fs::path folder_;
  World world_{{}};
  std::unique_ptr<Program> program_;
};

// Ten of its tasks begin and end without a recorder, over a change of leaders. Afterwards each
// has its nodes, its times and its exit code.
TEST_F(OutageTest, EndsOfTasksWaitForTheRecords) {
  begin();
  world_.apply(control::gang_job("sweep", 1, "20s", {{"array", {{"tasks", "0-39"}}}}));
  run_for(seconds{30});
  const int before = array("sweep").counts.succeeded;
  kill();
  ASSERT_TRUE(
      world_.run_until([&] { return array("sweep").counts.succeeded >= before + 10; }, minutes{10}))
      << world_.log_tail();
  world_.restart_operator();
  world_.process().loop().wait_for_records(kLease);
  run_for(seconds{10});
  const int meanwhile = array("sweep").counts.succeeded;
  ASSERT_GE(array("sweep").ended.size(), 10U);
  ASSERT_LT(meanwhile, 40);
  begin();
  program_->pump();
  EXPECT_EQ(whole_ends("sweep"), meanwhile);
  ASSERT_TRUE(
      world_.run_until([&] { return array("sweep").counts.succeeded > meanwhile; }, minutes{10}));
  run_for(minutes{10});
  EXPECT_EQ(world_.state("sweep"), "Completed") << world_.log_tail();
  EXPECT_EQ(whole_ends("sweep"), 40);
  EXPECT_EQ(all().size(), 40U) << "each is there once";
  EXPECT_EQ(program_->counters().bare_ends, 0);
}

// While they are recorded at once, the status keeps the ends of a few seconds.
TEST_F(OutageTest, EndsThatAreRecordedAreDropped) {
  begin();
  world_.apply(control::gang_job("sweep", 1, "10s", {{"array", {{"tasks", "0-99"}}}}));
  std::size_t most = 0;
  for (int i = 0; i < 300; ++i) {
    run_for(seconds{1});
    most = std::max(most, array("sweep").ended.size());
  }
  EXPECT_GT(array("sweep").counts.succeeded, 60) << world_.log_tail();
  EXPECT_LE(most, 40U);
}

// Jobs made and deleted meanwhile are lost, and counted: by the operator if there is no row.
TEST_F(OutageTest, WhatIsMadeAndDeletedMeanwhileIsCounted) {
  begin();
  world_.apply(control::gang_job("known", 1, ""));
  run_for(seconds{10});
  kill();
  for (const char* name : {"unseen", "unseen-too", "stays"}) {
    world_.apply(control::gang_job(name, 1, ""));
  }
  run_for(seconds{10});
  for (const char* name : {"known", "unseen", "unseen-too"}) world_.remove_job(name);
  run_for(minutes{5});
  EXPECT_EQ(unseen(), 0) << "nobody knows yet";
  begin();
  run_for(seconds{20});
  EXPECT_EQ(unseen(), 2);
  EXPECT_EQ(program_->counters().lost_jobs, 1) << "the one that has a row";
  EXPECT_EQ(all().size(), 2U);
  // With records up none is counted, however short it lives.
  world_.apply(control::gang_job("short", 1, ""));
  run_for(seconds{2});
  world_.remove_job("short");
  run_for(seconds{20});
  EXPECT_EQ(unseen(), 2);
  EXPECT_EQ(all().size(), 3U);
}

}  // namespace
}  // namespace records
