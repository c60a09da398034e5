// Client, informer, leader election and events against the in-memory API server: each test runs
// without a network and over HTTPS on the loopback, with the configuration that a kubeconfig gives.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/job.h"
#include "api/partition.h"
#include "base/prng.h"
#include "kube/api/event.h"
#include "kube/api/namespace.h"
#include "kube/client.h"
#include "kube/event_recorder.h"
#include "kube/http_transport.h"
#include "kube/informer.h"
#include "kube/leader_elector.h"
#include "kube/run_loop.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/https_front_end.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/manual_sleeper.h"

namespace kube {
namespace {

using base::Code;
using devcluster::Fault;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

// In process, a failure is our code's; over HTTPS it may also be the wire's (connections, TLS,
// chunks). A test that fails on one of them alone tells where to look.
enum class Wire { kInProcess, kHttps };

// True as soon as the predicate is; false after 20 s, which is a hang.
template <typename Predicate>
bool eventually(Predicate&& predicate) {
  const SystemClock clock;
  ThreadSleeper sleeper;
  const base::Duration deadline = clock.monotonic() + seconds{20};
  while (!predicate()) {
    if (clock.monotonic() > deadline) return false;
    (void)sleeper.sleep(milliseconds{1}, {});
  }
  return true;
}

// A server with our kinds and one namespace, and a client without a limit of its rate that a test
// could notice.
class IntegrationTest : public testing::TestWithParam<Wire> {
 protected:
  void SetUp() override {
    const auto loaded = server_.load_crds(KUBEGANG_SOURCE_DIR "/crds");
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    transport_ = make_transport();
    ASSERT_NE(transport_, nullptr);
    client_ =
        std::make_unique<Client>(*transport_, clock_, sleeper_,
                                 ClientOptions{.rate = {.per_second = 100000, .burst = 100000}});
    Namespace ns;
    ns.metadata.name = "team-a";
    const auto created = client_->create(ns);
    ASSERT_TRUE(created.ok() || created.error().code == Code::kAlreadyExists)
        << created.error().message;
  }

  // By the way that a user's program takes: the server's kubeconfig, which has its authority and a
  // certificate.
  std::unique_ptr<Transport> make_transport() {
    if (GetParam() == Wire::kInProcess) {
      return std::make_unique<devcluster::InProcessTransport>(server_);
    }
    if (front_end_ == nullptr) {
      auto started = devcluster::HttpsFrontEnd::start(server_, system_clock_);
      if (!started.ok()) return nullptr;
      front_end_ = std::move(*started);
    }
    const auto config =
        parse_kubeconfig(front_end_->kubeconfig().value(), "kubeconfig", "").value();
    auto transport = HttpTransport::create(config, system_clock_);
    return transport.ok() ? std::move(*transport) : nullptr;
  }

  // Returns a small one of our kinds, with a spec, a status, and a default.
  static Partition partition(const std::string& name, std::int32_t tier = 1) {
    Partition out;
    out.metadata.name = name;
    out.spec.nodes.hostlist = "n[1-4]";
    out.spec.priority_tier = tier;
    return out;
  }
  Partition create(const std::string& name) {
    auto created = client_->create(partition(name));
    EXPECT_TRUE(created.ok()) << created.error().message;
    return created.ok() ? *created : Partition{};
  }

  // The server and the informers live by the machine's clock; retries and leases by one that tests
  // move, so that no test sleeps.
  SystemClock system_clock_;
  ManualClock clock_;
  ManualSleeper sleeper_{clock_};
  devcluster::ApiServer server_{system_clock_};
  std::unique_ptr<devcluster::HttpsFrontEnd> front_end_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Client> client_;
};

INSTANTIATE_TEST_SUITE_P(Wires, IntegrationTest, testing::Values(Wire::kInProcess, Wire::kHttps),
                         [](const auto& wire) {
                           return wire.param == Wire::kInProcess ? "InProcess" : "Https";
                         });

// The generation rises with the spec (to 2) and not with the status.
TEST_P(IntegrationTest, WritesAndReadsTypedObjects) {
  const Partition created = create("batch");
  EXPECT_EQ(created.metadata.generation, 1);
  EXPECT_FALSE(created.metadata.uid.empty());

  const auto patched =
      client_->patch<Partition>({"", "batch"}, json{{"spec", {{"priorityTier", 7}}}},
                                {.resource_version = created.metadata.resource_version});
  ASSERT_TRUE(patched.ok()) << patched.error().message;
  EXPECT_EQ(patched->spec.priority_tier, 7);
  EXPECT_EQ(patched->metadata.generation, 2);

  Partition with_status = *patched;
  with_status.status.nodes = 4;
  (void)set_condition(with_status.status.conditions,
                      {.type = "Accepted", .status = ConditionStatus::kTrue, .reason = "Legal"},
                      clock_.wall());
  const auto written = client_->patch_status_from(*patched, with_status);
  ASSERT_TRUE(written.ok()) << written.error().message;
  EXPECT_EQ(written->status, with_status.status);
  EXPECT_EQ(written->metadata.generation, 2);
  // The answer to a write is what a read gives, so callers go on with it instead of reading again.
  EXPECT_EQ(*client_->get<Partition>({"", "batch"}), *written);

  Partition replaced = *written;
  replaced.spec.priority_tier.reset();
  const auto updated = client_->update(replaced);
  ASSERT_TRUE(updated.ok()) << updated.error().message;
  EXPECT_EQ(updated->spec.priority_tier, 1);  // the CRD's default
}

// A version that is not the newest and a UID of another object are both conflicts, for patches,
// replacements and deletions alike.
TEST_P(IntegrationTest, PreconditionsProtect) {
  const Partition first = create("batch");
  const auto patched =
      client_->patch<Partition>({"", "batch"}, json{{"spec", {{"priorityTier", 7}}}});
  ASSERT_TRUE(patched.ok());

  const json patch{{"spec", {{"priorityTier", 8}}}};
  const auto stale = client_->patch<Partition>(
      {"", "batch"}, patch, {.resource_version = first.metadata.resource_version});
  EXPECT_EQ(stale.error().code, Code::kConflict);
  EXPECT_EQ(client_->update(first).error().code, Code::kConflict);
  const auto other = client_->patch<Partition>({"", "batch"}, patch, {.uid = "another"});
  EXPECT_EQ(other.error().code, Code::kConflict);
  const auto removed = client_->remove<Partition>({"", "batch"}, {.uid = "another"});
  EXPECT_EQ(removed.error().code, Code::kConflict);
  EXPECT_EQ(client_->get<Partition>({"", "batch"})->spec.priority_tier, 7);

  EXPECT_TRUE(client_->remove<Partition>({"", "batch"}, {.uid = first.metadata.uid}).ok());
  EXPECT_EQ(client_->get<Partition>({"", "batch"}).error().code, Code::kNotFound);
  EXPECT_EQ(client_->remove<Partition>({"", "batch"}).error().code, Code::kNotFound);
}

// `--dry-run=server` asks what the server would say. If it stored the object, a user who only
// wanted to look would have made it.
TEST_P(IntegrationTest, DryRunStoresNothing) {
  EXPECT_TRUE(client_->create(partition("batch"), {.dry_run = true}).ok());
  EXPECT_EQ(client_->get<Partition>({"", "batch"}).error().code, Code::kNotFound);
}

// The server's sentence names the field, the client's context the object.
TEST_P(IntegrationTest, InvalidObjectNamesTheField) {
  const json bad{{"metadata", {{"name", "batch"}}},
                 {"apiVersion", "kubegang.io/v1alpha1"},
                 {"kind", "Partition"},
                 {"spec", {{"nodes", {{"hostlist", "n1"}}}, {"state", "Sideways"}}}};
  const auto created = client_->create_json<Partition>("", bad);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().code, Code::kInvalidArgument);
  EXPECT_NE(created.error().message.find("spec.state"), std::string::npos)
      << created.error().message;
  EXPECT_NE(created.error().message.find("create Partition batch: "), std::string::npos);
}

// Seven objects in pages of two: four requests, the last with one object.
TEST_P(IntegrationTest, ListsInPages) {
  for (int i = 0; i < 7; ++i) (void)create("p" + std::to_string(i));
  const auto list = client_->list<Partition>({.page_items_max = 2});
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_EQ(list->items.size(), 7U);
  EXPECT_EQ(list->items[6].metadata.name, "p6");
}

// ResetAfter: the object was made and the answer lost. The client does not repeat the create, and
// the caller finds out by AlreadyExists.
TEST_P(IntegrationTest, ReadsSurviveFailuresAndCreatesAreNotRepeated) {
  (void)create("batch");
  // One failure that the client waits a time of its own for, and one for which the server says how
  // long.
  server_.fail_next("get", "partitions", 503);
  server_.fail_next("get", "partitions", 429, 3);
  EXPECT_TRUE(client_->get<Partition>({"", "batch"}).ok());
  ASSERT_EQ(sleeper_.slept().size(), 2U);
  EXPECT_EQ(sleeper_.slept()[1], seconds{3});

  server_.inject({.kind = Fault::Kind::kResetBefore, .verb = "get", .resource = "partitions"});
  EXPECT_TRUE(client_->get<Partition>({"", "batch"}).ok());

  server_.inject({.kind = Fault::Kind::kResetAfter, .verb = "create", .resource = "partitions"});
  const auto lost = client_->create(partition("other"));
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code, Code::kUnavailable) << lost.error().message;
  EXPECT_EQ(client_->create(partition("other")).error().code, Code::kAlreadyExists);
}

// 300 ms of delay against a time-out of 50 ms, so a slow machine does not decide the outcome.
TEST_P(IntegrationTest, SlowServerIsATimeout) {
  (void)create("batch");
  server_.inject({.kind = Fault::Kind::kSlow,
                  .verb = "get",
                  .resource = "partitions",
                  .delay = milliseconds{300}});
  const auto got = client_->with({.timeout = milliseconds{50}, .attempts_max = 1, .backoff = {}})
                       .get<Partition>({"", "batch"});
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Code::kTimeout) << got.error().message;
}

// 4 threads, 20 objects each, each of which is read back by its name.
TEST_P(IntegrationTest, ThreadsShareAClient) {
  std::atomic<int> good{0};
  // Copies of a client share its rate and its transport.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Client mine = *client_;
      for (int j = 0; j < 20; ++j) {
        const std::string name = "p" + std::to_string(i) + "-" + std::to_string(j);
        good += mine.create(partition(name)).ok() && mine.get<Partition>({"", name}).ok() ? 1 : 0;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 80);
}

// Follows a server with an informer of its own thread and checks the handlers' story: the events
// they got, replayed, give what the informer has.
class FollowedInformer {
 public:
  FollowedInformer(Client client, const Clock& clock)
      : informer_{std::move(client), clock,
                  InformerOptions{.page_items_max = 3,
                                  .backoff = {.first = milliseconds{1}, .max = milliseconds{20}},
                                  .watch_timeout = seconds{30},
                                  .watch_idle_timeout = seconds{10}},
                  Informer<Partition>::Handlers{
                      .on_add = [this](const auto& now) { added(*now); },
                      .on_update = [this](const auto& before,
                                          const auto& now) { updated(*before, *now); },
                      .on_delete = [this](const auto& last) { deleted(*last); }}} {
    loop_.start("informer", [this](std::stop_token stop) { return informer_.step(stop); });
  }

  const Informer<Partition>& operator*() const { return informer_; }

  bool agrees_with(const ObjectList<Partition>& list) const {
    std::map<std::string, Partition> want;
    for (const Partition& one : list.items) want[one.metadata.name] = one;
    std::map<std::string, Partition> cached;
    for (const auto& one : informer_.snapshot()) cached[one->metadata.name] = *one;
    const std::lock_guard lock{mu_};
    return informer_.has_synced() && cached == want && told_ == want;
  }
  // Calls of handlers that cannot follow from the ones before.
  std::vector<std::string> contradictions() const {
    const std::lock_guard lock{mu_};
    return contradictions_;
  }

 private:
  void added(const Partition& now) {
    const std::lock_guard lock{mu_};
    if (!told_.emplace(now.metadata.name, now).second) {
      contradictions_.push_back("add of a known " + now.metadata.name);
    }
  }
  void updated(const Partition& before, const Partition& now) {
    const std::lock_guard lock{mu_};
    const auto found = told_.find(now.metadata.name);
    if (found == told_.end() || found->second != before) {
      contradictions_.push_back("update from an unknown " + now.metadata.name);
    }
    told_[now.metadata.name] = now;
  }
  void deleted(const Partition& last) {
    const std::lock_guard lock{mu_};
    if (told_.erase(last.metadata.name) != 1) {
      contradictions_.push_back("delete of an unknown " + last.metadata.name);
    }
  }

  mutable std::mutex mu_;
  std::map<std::string, Partition> told_;
  std::vector<std::string> contradictions_;
  Informer<Partition> informer_;
  RunLoop loop_;  // stops first
};

// Goal: whatever happens to the watch, the cache ends as the server is, and the handlers' story is
// whole. Method: seeded random writes, with watches dropped, reset, refused and compacted away.
TEST_P(IntegrationTest, InformerFollowsThroughFailures) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    base::Prng prng{seed};
    Client writer = *client_;
    // A new informer for each seed begins with a list of what the seeds before it have left.
    FollowedInformer followed{*client_, system_clock_};
    // Twelve names, so that creations, changes and deletions of one name follow each other, also
    // with new UIDs.
    for (int step = 0; step < 150; ++step) {
      const std::string name = "p" + std::to_string(prng.below(12));
      switch (prng.below(8)) {
        case 0:
        case 1:
        case 2:
          (void)writer.create(partition(name));
          break;
        case 3:
        case 4:
          (void)writer.patch<Partition>({"", name},
                                        json{{"spec", {{"priorityTier", prng.below(100) + 1}}}});
          break;
        case 5:
          (void)writer.remove<Partition>({"", name});
          break;
        case 6: {
          const auto which = prng.below(4);
          if (which == 0) server_.drop_watches("partitions");
          if (which == 1) server_.reset_watches("partitions");
          if (which == 2) server_.compact();
          if (which == 3) server_.fail_next("watch", "partitions", 500);
          break;
        }
        default:
          server_.fail_next("list", "partitions", 503);
          server_.compact();
          server_.reset_watches("partitions");
      }
    }
    // From here on nothing fails, so the informer must come to an end.
    server_.clear_faults();
    EXPECT_TRUE(eventually([&] { return followed.agrees_with(writer.list<Partition>().value()); }))
        << "seed " << seed;
    EXPECT_EQ(followed.contradictions(), std::vector<std::string>{}) << "seed " << seed;
  }
}

// An event that the server loses (a bug of its cache) cannot be noticed by a watch. The next list
// mends it; until then the deleted object is still there.
TEST_P(IntegrationTest, InformerLearnsAfterAListWhatItMissed) {
  const Partition doomed = create("doomed");
  FollowedInformer followed{*client_, system_clock_};
  ASSERT_TRUE(
      eventually([&] { return (*followed).has_synced() && server_.open_watches_count() == 1; }));
  server_.lose_next_event("partitions");
  ASSERT_TRUE(client_->remove<Partition>({"", "doomed"}).ok());
  (void)create("other");
  ASSERT_TRUE(eventually([&] { return (*followed).find({"", "other"}) != nullptr; }));
  EXPECT_NE((*followed).find({"", "doomed"}), nullptr);  // it cannot know
  // "Gone" makes it list again.
  server_.fail_next("watch", "partitions", 410);
  server_.drop_watches("partitions");
  EXPECT_TRUE(eventually([&] { return followed.agrees_with(client_->list<Partition>().value()); }));
  EXPECT_EQ(followed.contradictions(), std::vector<std::string>{});
}

// The watch has 30 s or more to live; only a stop ends it within the 20 s of eventually(). The
// server notices that its reader has gone.
TEST_P(IntegrationTest, StopEndsAWatchThatWaits) {
  auto followed = std::make_unique<FollowedInformer>(*client_, system_clock_);
  ASSERT_TRUE(eventually([&] { return server_.open_watches_count() == 1; }));
  followed.reset();  // joins the thread
  EXPECT_TRUE(eventually([&] { return server_.open_watches_count() == 0; }));
}

// 1. a creates the Lease and leads, b follows
// 2. a releases it, b leads: one transition
// 3. b is paused for longer than its Lease; a takes over; b finds out
TEST_P(IntegrationTest, OneOfTwoCandidatesLeadsAndTheOtherFollowsIt) {
  const auto elector = [&](const char* name) {
    return std::make_unique<LeaderElector>(
        *client_, clock_, LeaderElectionOptions{.lease = {"team-a", "operator"}, .identity = name},
        LeaderElector::Callbacks{});
  };
  const auto a = elector("a");
  const auto b = elector("b");
  (void)a->step();
  (void)b->step();
  EXPECT_TRUE(a->is_leader());
  EXPECT_FALSE(b->is_leader());
  clock_.advance(seconds{2});
  (void)a->step();
  EXPECT_TRUE(a->is_leader());
  a->release();
  (void)b->step();
  EXPECT_TRUE(b->is_leader());
  // From a to b; the creation by a was the number 0.
  EXPECT_EQ(client_->get<Lease>({"team-a", "operator"})->spec.lease_transitions, 1);
  // b is paused; a takes over; b finds out and may not write.
  clock_.advance(seconds{15});
  (void)a->step();  // observes b's renewal
  clock_.advance(seconds{15});
  (void)a->step();
  EXPECT_TRUE(a->is_leader());
  EXPECT_FALSE(b->is_leader());
  (void)b->step();
  EXPECT_FALSE(b->is_leader());
}

// Three equal records are one event with a count of three.
TEST_P(IntegrationTest, EventsAreWrittenAndCounted) {
  EventRecorder recorder{*client_, clock_, {.component = "kubegang-operator"}};
  const Partition batch = create("batch");
  for (int i = 0; i < 3; ++i) {
    recorder.record(reference_to(batch), EventType::kWarning, "Rejected", "two defaults");
  }
  (void)recorder.step();
  const auto events = client_->list<Event>({.ns = "default"});
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events->items.size(), 1U);
  EXPECT_EQ(events->items[0].count, 3);
  EXPECT_EQ(events->items[0].involved_object.uid, batch.metadata.uid);
  EXPECT_EQ(recorder.dropped_count(), 0U);
}

// Tests of tokens, which the in-process transport does not have.
class HttpsTest : public IntegrationTest {};
INSTANTIATE_TEST_SUITE_P(Wires, HttpsTest, testing::Values(Wire::kHttps),
                         [](const auto&) { return "Https"; });

// As the death of the server's process looks to its clients, and its return at the same address:
// connections that the client has kept are dead, and must not be taken for the server.
TEST_P(HttpsTest, AServerThatWasClosedHasEverythingWhenItIsOpenAgain) {
  (void)create("batch");
  front_end_->close();
  EXPECT_EQ(client_->get<Partition>({"", "batch"}).error().code, Code::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(front_end_->open_again().ok());
    EXPECT_TRUE(client_->get<Partition>({"", "batch"}).ok());
    front_end_->close();
  }
  EXPECT_EQ(client_->get<Partition>({"", "batch"}).error().code, Code::kUnavailable);
}

// The server knows only "new". The first request reads "old" and finds nothing newer after the 401;
// the second reads the file once more, within the minute in which the token would otherwise be
// kept.
TEST_P(HttpsTest, TokenFromAFileIsReadAgainWhenRefused) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("kube-integration-token-" + std::to_string(getpid()));
  std::ofstream{file} << "old";
  front_end_->add_token("new", {});
  auto transport = HttpTransport::create({.server = front_end_->url(),
                                          .ca_pem = front_end_->authority().certificate_pem(),
                                          .token_file = file.string()},
                                         system_clock_);
  ASSERT_TRUE(transport.ok()) << transport.error().message;
  Client client{**transport, clock_, sleeper_, {}};
  EXPECT_EQ(client.get<Namespace>({"", "team-a"}).error().code, Code::kUnauthenticated);
  std::ofstream{file} << "new";
  EXPECT_TRUE(client.get<Namespace>({"", "team-a"}).ok());
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace kube
