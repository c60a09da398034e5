// A Lease in memory with optimistic locking, two candidates, and clocks that tests move.
#include "kube/leader_elector.h"

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "kube/testing/fake_transport.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using base::Code;
using nlohmann::json;
using std::chrono::seconds;

// One Lease behind the three calls that an elector makes (get, create, update). Versions rise with
// each write, and a PUT under an old one is refused: all that leader election needs of an API
// server.
class LeaseServer {
 public:
  explicit LeaseServer(FakeTransport& transport) {
    transport.set_handler([this](const Request& request) { return handle(request); });
  }
  bool down = false;
  int answers_lost = 0;  // of the next writes: they are carried out, the answers do not arrive
  json lease;            // null: none
  std::function<void(const Request&)> before{};  // each answer

 private:
  base::Result<Response> handle(const Request& request) {
    if (down) return base::Error{Code::kUnavailable, "connection refused"};
    if (before) before(request);
    const auto status = [](int code, const char* reason) {
      return Response{
          code, {}, json{{"kind", "Status"}, {"reason", reason}, {"message", reason}}.dump()};
    };
    if (request.method == Method::kPost) {
      if (!lease.is_null()) return status(409, "AlreadyExists");
      lease = json::parse(request.body);
    } else if (lease.is_null()) {
      return status(404, "NotFound");
    } else if (request.method == Method::kPut) {
      const json wanted = json::parse(request.body);
      if (wanted["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]) {
        return status(409, "Conflict");
      }
      lease = wanted;
    }
    if (request.method != Method::kGet) {
      lease["metadata"]["resourceVersion"] = std::to_string(++version_);
      if (answers_lost > 0) {
        --answers_lost;
        return base::Error{Code::kUnavailable, "connection reset"};
      }
    }
    return Response{200, {}, lease.dump()};
  }
  int version_ = 0;
};

// A process that takes part, with all the arguments of its callbacks.
struct Candidate {
  Candidate(FakeTransport& transport, ManualClock& clock, ManualSleeper& sleeper, std::string name)
      : elector{Client{transport, clock, sleeper, {}},
                clock,
                LeaderElectionOptions{.lease = {"kubegang-system", "operator"},
                                      .identity = std::move(name)},
                {.on_started = [this](std::int32_t count) { started.push_back(count); },
                 .on_lost = [this] { ++lost_count; },
                 .may_hold = [this](base::Duration free_for) { return is_fit(free_for); },
                 .on_new_leader = [this](const std::string& who) { leaders.push_back(who); }}} {}
  std::function<bool(base::Duration free_for)> is_fit = [](base::Duration) { return true; };
  std::vector<std::int32_t> started;
  std::vector<std::string> leaders;
  int lost_count = 0;
  LeaderElector elector;
};

// Each step() is one look at the Lease, by hand: no thread runs, and the order of the two
// candidates is the test's.
class LeaderElectorTest : public testing::Test {
 protected:
  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  FakeTransport transport_;
  LeaseServer server_{transport_};
  Candidate a_{transport_, clock_, sleeper_, "a"};
  Candidate b_{transport_, clock_, sleeper_, "b"};
};

// A leader looks again after the retry period of 2 s; the Lease is for the 15 s that client-go uses
// too.
TEST_F(LeaderElectorTest, FirstCandidateCreatesTheLease) {
  EXPECT_EQ(a_.elector.step(), seconds{2});
  EXPECT_TRUE(a_.elector.is_leader());
  EXPECT_EQ(a_.started, std::vector<std::int32_t>{0});
  EXPECT_EQ(server_.lease["spec"]["holderIdentity"], "a");
  EXPECT_EQ(server_.lease["spec"]["leaseDurationSeconds"], 15);
  b_.elector.step();
  EXPECT_FALSE(b_.elector.is_leader());
  EXPECT_EQ(b_.leaders, std::vector<std::string>{"a"});
}

// 40 s are more than two Lease durations. A renewal changes renewTime only.
TEST_F(LeaderElectorTest, RenewedLeaseStaysWithItsHolder) {
  a_.elector.step();
  const json acquired = server_.lease["spec"]["acquireTime"];
  for (int i = 0; i < 20; ++i) {
    clock_.advance(seconds{2});
    a_.elector.step();
    b_.elector.step();
  }
  EXPECT_TRUE(a_.elector.is_leader());
  EXPECT_FALSE(b_.elector.is_leader());
  EXPECT_EQ(server_.lease["spec"]["acquireTime"], acquired);
  EXPECT_NE(server_.lease["spec"]["renewTime"], acquired);
  EXPECT_EQ(server_.lease["spec"]["leaseTransitions"], 0);
}

// A leader whose loop stands still must not keep others from leading. It loses at its deadline, as
// if the API server were away, and stays leader if it is fit again before.
TEST_F(LeaderElectorTest, LeaderThatIsNotFitLosesAtItsDeadline) {
  a_.elector.step();
  b_.elector.step();
  bool is_fit = false;
  a_.is_fit = [&](base::Duration) { return is_fit; };
  clock_.advance(seconds{8});
  a_.elector.step();
  EXPECT_TRUE(a_.elector.is_leader());
  is_fit = true;
  a_.elector.step();
  is_fit = false;
  clock_.advance(seconds{8});
  a_.elector.step();
  EXPECT_TRUE(a_.elector.is_leader()) << "renewed 8 s ago";
  clock_.advance(seconds{2});
  a_.elector.step();
  EXPECT_EQ(a_.lost_count, 1);
  b_.elector.step();
  clock_.advance(seconds{15});
  b_.elector.step();
  EXPECT_TRUE(b_.elector.is_leader());
}

// It is asked with the time without a leader, by its own clock: an unfit one may be better
// than none.
TEST_F(LeaderElectorTest, CandidateThatIsNotFitTakesNoLease) {
  std::vector<base::Duration> asked;
  b_.is_fit = [&](base::Duration free_for) {
    asked.push_back(free_for);
    return free_for >= seconds{60};
  };
  b_.elector.step();
  EXPECT_TRUE(server_.lease.is_null());
  a_.elector.step();
  b_.elector.step();
  EXPECT_EQ(asked, std::vector<base::Duration>{{}}) << "not of a Lease that is held";
  clock_.advance(seconds{15});
  b_.elector.step();
  clock_.advance(seconds{59});
  b_.elector.step();
  EXPECT_FALSE(b_.elector.is_leader());
  clock_.advance(seconds{1});
  b_.elector.step();
  EXPECT_EQ(asked, (std::vector<base::Duration>{{}, {}, seconds{59}, seconds{60}}));
  EXPECT_TRUE(b_.elector.is_leader());
}

// The 15 s count from when b first saw this Lease, by b's own clock, to the microsecond.
TEST_F(LeaderElectorTest, LeaseThatIsNotRenewedIsTakenAfterItsDuration) {
  a_.elector.step();
  b_.elector.step();  // observes it now
  clock_.advance(seconds{15} - base::Duration{1});
  b_.elector.step();
  EXPECT_FALSE(b_.elector.is_leader());
  clock_.advance(base::Duration{1});
  b_.elector.step();
  EXPECT_TRUE(b_.elector.is_leader());
  EXPECT_EQ(b_.started, std::vector<std::int32_t>{1});
  // By its clock alone: it has not asked the server again.
  EXPECT_FALSE(a_.elector.is_leader());
  a_.elector.step();
  EXPECT_EQ(a_.lost_count, 1);
}

// Ten hours later by the wall clock the Lease looks expired; the monotonic clock says that no time
// has passed.
TEST_F(LeaderElectorTest, StepOfTheWallClockTakesNoLease) {
  a_.elector.step();
  b_.elector.step();
  clock_.step_wall(std::chrono::hours{10});
  b_.elector.step();
  EXPECT_FALSE(b_.elector.is_leader());
  EXPECT_TRUE(a_.elector.is_leader());
}

// The renew deadline is 10 s: below the 15 s after which others may take over.
TEST_F(LeaderElectorTest, LeaderThatCannotRenewInTimeLoses) {
  a_.elector.step();
  server_.down = true;
  clock_.advance(seconds{9});
  a_.elector.step();
  EXPECT_TRUE(a_.elector.is_leader());
  clock_.advance(seconds{1});
  EXPECT_FALSE(a_.elector.is_leader());  // before step() notices
  a_.elector.step();
  EXPECT_EQ(a_.lost_count, 1);
}

// Between the deadline and a renewal that comes a little later, the writers of the process have
// dropped what they were to write. If it led on, these writes would be lost.
TEST_F(LeaderElectorTest, RenewalBehindTheDeadlineComesTooLate) {
  a_.elector.step();
  clock_.advance(seconds{10});
  a_.elector.step();
  EXPECT_EQ(a_.lost_count, 1);
  EXPECT_FALSE(a_.elector.is_leader());
}

TEST_F(LeaderElectorTest, RenewalWhoseAnswerComesBehindTheDeadlineIsTooLate) {
  a_.elector.step();
  clock_.advance(seconds{2});
  bool was_leader = true;
  // Reading and writing take 4 s each.
  server_.before = [&](const Request&) {
    clock_.advance(seconds{4});
    was_leader = a_.elector.is_leader();
  };
  a_.elector.step();
  ASSERT_FALSE(was_leader);
  EXPECT_EQ(a_.lost_count, 1);
  EXPECT_FALSE(a_.elector.is_leader());
}

// A process that ends in order gives the Lease back, so its successor need not wait for 15 s. The
// end is in order, so this does not count as a loss.
TEST_F(LeaderElectorTest, ReleasedLeaseIsFreeAtOnce) {
  a_.elector.step();
  b_.elector.step();
  a_.elector.release();
  EXPECT_FALSE(a_.elector.is_leader());
  EXPECT_EQ(a_.lost_count, 0);
  b_.elector.step();
  EXPECT_TRUE(b_.elector.is_leader());
  EXPECT_EQ(b_.started, std::vector<std::int32_t>{1});
}

// Two tries: the first one's read is answered from the queue, with version 1, while version 2 is
// stored. So its update is refused. The second try takes over, and four transitions become five.
TEST_F(LeaderElectorTest, OfTwoThatReadTheSameLeaseOnlyOneWins) {
  // a's update meets a Lease that changed after a read it.
  server_.lease = json::parse(R"({"metadata": {"name": "operator", "namespace": "kubegang-system",
      "resourceVersion": "1"}, "spec": {"leaseTransitions": 4}})");
  transport_.answer(200, server_.lease.dump());
  server_.lease["metadata"]["resourceVersion"] = "2";
  a_.elector.step();
  EXPECT_FALSE(a_.elector.is_leader());
  a_.elector.step();
  EXPECT_EQ(a_.started, std::vector<std::int32_t>{5});
}

// etcd was restored: what the leader knows is newer than what is stored.
TEST_F(LeaderElectorTest, LeaderWhoseLeaseIsSetBackStopsAndReleasesIt) {
  a_.elector.step();
  clock_.advance(seconds{2});
  a_.elector.step();
  const json older = server_.lease;
  clock_.advance(seconds{2});
  a_.elector.step();
  b_.elector.step();
  // b has seen the newest state and finds, with a's release, a Lease without a holder.
  server_.lease = older;
  clock_.advance(seconds{2});
  a_.elector.step();
  EXPECT_FALSE(a_.elector.is_leader());
  EXPECT_EQ(a_.lost_count, 1);
  b_.elector.step();
  EXPECT_TRUE(b_.elector.is_leader()) << "it need not wait until the Lease expires";
}

// The stored Lease is newer than the leader's knowledge, but it is its own: the leader remembers
// the times of renewals that were not answered. Comparing by age would fail here, since the wall
// clock went back.
TEST_F(LeaderElectorTest, RenewalWhoseAnswerWasLostIsNoReasonToStop) {
  a_.elector.step();
  clock_.advance(seconds{2});
  server_.answers_lost = 1;
  a_.elector.step();
  EXPECT_EQ(server_.answers_lost, 0);
  clock_.step_wall(-std::chrono::hours{1});  // the next renewTime is older than the last
  clock_.advance(seconds{2});
  a_.elector.step();
  clock_.advance(seconds{2});
  a_.elector.step();
  EXPECT_TRUE(a_.elector.is_leader());
  EXPECT_EQ(a_.lost_count, 0);
}

// It could create the Lease again, but another candidate may have done so and lost it since: what
// holds now is unknown.
TEST_F(LeaderElectorTest, LeaderWhoseLeaseIsDeletedStops) {
  a_.elector.step();
  server_.lease = nullptr;
  clock_.advance(seconds{2});
  a_.elector.step();
  EXPECT_FALSE(a_.elector.is_leader());
  EXPECT_EQ(a_.lost_count, 1);
}

}  // namespace
}  // namespace kube
