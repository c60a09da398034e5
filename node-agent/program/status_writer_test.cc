// When the agent writes its half of the NodeTimetable, against the in-memory API server: the watch
// runs on threads of its own, everything else here.
#include "node-agent/program/status_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "kube/sleeper.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/manual_clock.h"
#include "node-agent/testing/real_cgroups.h"

namespace agent::testing {
namespace {

using std::chrono::seconds;

class StatusWriterTest : public ::testing::Test {
 protected:
  // A timetable without a status, as the operator has just created it; the agent's watch has seen
  // it.
  StatusWriterTest() {
    const base::Status loaded = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    kube::NodeTimetable table;
    table.metadata.name = "n1";
    table.spec.term = 1;
    table.spec.revision = 1;
    table.spec.timetable.slice = seconds{30};
    const auto created = client_.create(table);
    EXPECT_TRUE(created.ok()) << (created.ok() ? "" : created.error().message);
    without_status_ = server_.back_up();
    watch_.start(loops_);
    EXPECT_TRUE(eventually([&] { return watch_.timetable() != nullptr; }));
  }
  ~StatusWriterTest() override {
    loops_.request_stop();
    loops_.join();
  }
  // Offers the report of an agent that obeys, or has the kill switch.
  void offer(bool kill_switch) {
    writer_.offer({.kill_switch = kill_switch,
                   .clock = {.synchronised = true, .error_max = base::Duration{1}}});
  }
  // How often the status was written since the last call.
  std::int64_t writes() {
    std::int64_t count = 0;
    for (const auto& [kind, requests] : server_.request_counts()) {
      if (kind.verb == "patch" && kind.resource == "nodetimetables") count += requests;
    }
    server_.clear_request_log();
    return count;
  }
  std::string ready() const {
    const auto stored = client_.get<kube::NodeTimetable>({"", "n1"});
    const kube::Condition* found =
        stored.ok() ? kube::find_condition(stored->status.conditions, "Ready") : nullptr;
    return found == nullptr ? ""
                            : std::string{kube::to_string(found->status)} + " " + found->reason;
  }
  // Waits until the watch has brought the object with a status, or without one.
  bool watch_shows_a_status(bool wanted) {
    return eventually([&] {
      const auto seen = watch_.timetable();
      return seen != nullptr && seen->status.conditions.empty() != wanted;
    });
  }

  kube::ManualClock clock_;
  kube::ThreadSleeper sleeper_;
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_, "test"};
  kube::Client client_{transport_, clock_, sleeper_, {}};
  kube::Waker waker_;
  NodeWatch watch_{client_, clock_, {.node = "n1", .lease = {"ns", "lease"}}, [] {}};
  StatusWriter writer_{client_, clock_, watch_, waker_};
  std::shared_ptr<const devcluster::ApiServer::Backup> without_status_;
  kube::RunLoop loops_;
};

// Until the first report the operator counts the node as without an agent and gives it no jobs.
// Later reports come with each step of the loop, on thousands of nodes: only a change is worth a
// write.
TEST_F(StatusWriterTest, WritesTheFirstReportAtOnceAndTheSameOneNeverAgain) {
  writer_.step();
  EXPECT_EQ(writes(), 0) << "nothing was offered";
  offer(false);
  writer_.step();
  EXPECT_EQ(writes(), 1);
  EXPECT_NE(ready(), "");
  for (int i = 0; i < 3; ++i) {
    clock_.advance(seconds{60});
    offer(false);
    writer_.step();
  }
  EXPECT_EQ(writes(), 0);
  ASSERT_TRUE(watch_shows_a_status(true));
  offer(false);
  writer_.step();
  EXPECT_EQ(writes(), 0) << "what the watch brings is what was written";
}

// A state that flips would otherwise be a write at each step, on thousands of nodes. The step says
// when it wants to be called again, so that the last state is not left unwritten.
TEST_F(StatusWriterTest, WritesAChangeNoSoonerThanTheIntervalAllows) {
  offer(false);
  writer_.step();
  clock_.advance(seconds{2});
  offer(true);
  EXPECT_EQ(writer_.step(), kStatusWriteInterval - seconds{2});
  EXPECT_EQ(writes(), 1);
  clock_.advance(seconds{3});
  writer_.step();
  EXPECT_EQ(writes(), 1);
}

// etcd is restored to an instant before the write: without a status the node would count as without
// an agent forever.
TEST_F(StatusWriterTest, WritesAgainWhatARestoreHasForgotten) {
  offer(false);
  writer_.step();
  ASSERT_TRUE(watch_shows_a_status(true));
  server_.restore(*without_status_);
  ASSERT_EQ(ready(), "");
  ASSERT_TRUE(watch_shows_a_status(false));
  clock_.advance(seconds{5});
  writer_.step();
  EXPECT_NE(ready(), "");
}

// A later report of the loop must not take it back while the process ends. The operator would take
// the node for one that still switches pods.
TEST_F(StatusWriterTest, ItsLastWordIsThatItHasStopped) {
  offer(false);
  writer_.step();
  writer_.say_stopped(client_, seconds{1});
  EXPECT_EQ(ready(), "False Stopped");
  clock_.advance(seconds{60});
  offer(true);
  writer_.step();
  EXPECT_EQ(ready(), "False Stopped");
}

}  // namespace
}  // namespace agent::testing
