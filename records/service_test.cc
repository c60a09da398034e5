// The service against the in-memory API server: from a Job's status to the row, and from a request
// to the answer.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/annotations.h"
#include "api/records_lease.h"
#include "kube/client.h"
#include "kube/clock.h"
#include "kube/http_transport.h"
#include "kube/login.h"
#include "kube/run_loop.h"
#include "kube/sleeper.h"
#include "kube/testing/api_server/api_server.h"
#include "kube/testing/api_server/in_process_transport.h"
#include "kube/testing/test_certificates.h"
#include "records/acknowledger.h"
#include "records/answers.h"
#include "records/api_port.h"
#include "records/options.h"
#include "records/recorder.h"
#include "records/testing/history.h"

namespace records {
namespace {

namespace fs = std::filesystem;
using testing::at;
using testing::job_named;
using testing::kCluster;
using testing::on;

class ServiceTest : public ::testing::Test {
 protected:
  ServiceTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path{::testing::TempDir()} / (std::string{"records_"} + test->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    EXPECT_TRUE(server_.load_crds(KUBEGANG_SOURCE_DIR "/crds").ok());
  }
  ~ServiceTest() override { fs::remove_all(folder_); }

  std::string file() const { return folder_ / "records.db"; }
  std::vector<Record> all() const {
    auto reader = Reader::open(file());
    EXPECT_TRUE(reader.ok());
    return reader->find({.cluster = kCluster})->records;
  }

  kube::Job add_job(const std::string& name, std::int64_t id) {
    kube::Job job;
    job.metadata.ns = "default";
    job.metadata.name = name;
    job.spec.pod_template = *kube::RawJson::parse_text(
        R"({"spec": {"containers": [{"name": "main", "image": "busybox"}]}})");
    auto created = client_.create(job);
    EXPECT_TRUE(created.ok()) << created.error().message;
    return set_status(*created, job_named("", id).status);
  }
  kube::Job set_status(const kube::Job& job, const kube::JobStatus& status) {
    kube::Job changed = job;
    changed.status = status;
    auto written = client_.patch_status_from(job, changed);
    EXPECT_TRUE(written.ok()) << written.error().message;
    return *written;
  }
  void remove(const kube::Job& job) {
    const auto gone = client_.remove<kube::Job>({job.metadata.ns, job.metadata.name});
    EXPECT_TRUE(gone.ok());
  }

  // A process from its start until `is_enough`; false: that was not so within a minute.
  bool record_until(const std::function<bool()>& is_enough) {
    kube::Waker waker;
    ChangeQueue queue{waker};
    JobFollower follower{client_, clock_, kCluster, queue, [](const base::Error&) {}};
    auto writer = Writer::open(file(), clock_.wall());
    EXPECT_TRUE(writer.ok());
    Recorder recorder{std::move(*writer), queue, follower, kCluster, clock_};
    kube::RunLoop loop;
    loop.start("jobs", [&](std::stop_token stop) { return follower.step(std::move(stop)); });
    const base::Duration give_up = clock_.monotonic() + std::chrono::minutes{1};
    bool is_done = false;
    while (!is_done && clock_.monotonic() < give_up) {
      EXPECT_TRUE(recorder.step().ok());
      stored_ = recorder.stored();
      is_done = recorder.is_up_to_date() && queue.size() == 0 && is_enough();
      if (!is_done) waker.wait_for(std::chrono::milliseconds{10}, {});
    }
    loop.request_stop();
    loop.join();
    return is_done;
  }

  kube::RecordedVersions stored_;  // how far the process has stored
  fs::path folder_;
  kube::SystemClock clock_;
  kube::ThreadSleeper sleeper_;
  devcluster::ApiServer server_{clock_};
  devcluster::InProcessTransport transport_{server_};
  kube::Client client_{transport_, clock_, sleeper_, {}};
};

TEST_F(ServiceTest, AJobIsRememberedAfterItsObjectIsGone) {
  const kube::Job first = add_job("first", 1);
  kube::JobStatus ended = first.status;
  ended.state = kube::JobState::kCompleted;
  ended.allocation = on("n1");
  ended.start_time = at(10);
  ended.end_time = at(30);
  bool is_ended = false;
  EXPECT_TRUE(record_until([&] {
    const std::vector<Record> records = all();
    if (records.size() == 1 && !is_ended) {
      remove(set_status(first, ended));
      is_ended = true;
    }
    return records.size() == 1 && records[0].end_time && client_.list<kube::Job>()->items.empty();
  }));
  ASSERT_EQ(all().size(), 1U);
  EXPECT_EQ(all()[0].state, RecordState::kCompleted);
  EXPECT_EQ(all()[0].hostlist, "n1");
}

TEST_F(ServiceTest, WhatIsDeletedWhileItIsDownIsLostAndTheRestIsNot) {
  const kube::Job first = add_job("first", 1);
  const kube::Job second = add_job("second", 2);
  EXPECT_TRUE(record_until([&] { return all().size() == 2; }));
  remove(first);
  kube::JobStatus ended = second.status;
  ended.state = kube::JobState::kFailed;
  ended.start_time = at(10);
  ended.end_time = at(30);
  set_status(second, ended);
  EXPECT_TRUE(record_until([] { return true; }));
  const std::vector<Record> records = all();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].job_id, 2);
  EXPECT_EQ(records[0].state, RecordState::kFailed);
  EXPECT_EQ(records[1].job_id, 1);
  EXPECT_EQ(records[1].state, RecordState::kLost);
}

// The disk has what the Lease says, whenever the process was killed: a Job whose version is not
// above it has its row.
TEST_F(ServiceTest, SaysHowFarItHasStored) {
  const kube::ObjectKey key{"default", "kubegang-records"};
  kube::Lease lease;
  lease.metadata.ns = key.ns;
  lease.metadata.name = key.name;
  ASSERT_TRUE(client_.create(lease).ok());
  const std::int64_t& stored = stored_.version;
  Acknowledger acknowledger{client_, key, [&] { return stored_; },
                            [](const base::Error& error) { FAIL() << error.message; }};
  const auto said = [&] {
    acknowledger.step();
    return kube::recorded_versions(*client_.get<kube::Lease>(key));
  };
  EXPECT_EQ(said(), kube::RecordedVersions{}) << "before the first list";
  const kube::Job job = add_job("first", 1);
  const std::int64_t version = *kube::version_number(job.metadata.resource_version);
  EXPECT_TRUE(record_until([&] { return stored >= version; }));
  EXPECT_EQ(all().size(), 1U);
  EXPECT_EQ(said(), stored_);
  EXPECT_EQ(said().since, stored) << "there was nothing but the list";
  // The next process begins with a list. It takes back nothing, and goes on.
  const std::int64_t before = stored;
  std::int64_t lowest = before;
  std::optional<std::int64_t> end_version;
  EXPECT_TRUE(record_until([&] {
    lowest = stored < 0 ? lowest : std::min(lowest, stored);
    if (!end_version && stored >= before) {
      kube::JobStatus ended = job.status;
      ended.state = kube::JobState::kCompleted;
      ended.end_time = at(30);
      end_version = kube::version_number(set_status(job, ended).metadata.resource_version);
    }
    return end_version && stored >= *end_version;
  }));
  EXPECT_EQ(lowest, before);
  EXPECT_TRUE(all()[0].end_time) << "told and not stored";
  EXPECT_GE(said().since, before) << "its own list";
  EXPECT_LT(said().since, *end_version);
  EXPECT_EQ(said(), stored_);
}

// A version is not reached while a change of it waits, or before all of a list is there.
TEST(ChangeQueue, AVersionIsReachedWithItsLastChange) {
  kube::Waker waker;
  ChangeQueue queue{waker};
  queue.reach(4);
  EXPECT_FALSE(queue.take(10).version) << "no Job has changed";
  queue.add({JobGone{}, JobGone{}});
  EXPECT_FALSE(queue.take(1).version);
  EXPECT_FALSE(queue.take(10).version) << "not reached";
  queue.reach(7);
  queue.reach(8);
  EXPECT_EQ(queue.take(10).version, 8) << "its changes were taken before";
  queue.reach(9);
  EXPECT_FALSE(queue.take(10).version) << "a bookmark";
  queue.list(10);
  queue.reach(10);
  const ChangeQueue::Taken listed = queue.take(10);
  EXPECT_EQ(listed.version, 10) << "nobody watched before: that has to be said";
  EXPECT_EQ(listed.since, 10);
  queue.add({});
  queue.reach(12);
  queue.add({JobGone{}, JobGone{}});
  EXPECT_FALSE(queue.take(1).version) << "a change may be of 12";
}

class AnswersTest : public ServiceTest {
 protected:
  AnswersTest() {
    auto writer = Writer::open(file(), at(-5));
    std::vector<Change> changes;
    for (int i = 0; i < 5; ++i) {
      kube::Job job = job_named("j" + std::to_string(i), i);
      job.metadata.ns = i % 2 == 0 ? "team-a" : "team-b";
      job.metadata.annotations[std::string{kube::kAnnotationUser}] = "ann";
      job.status.state = kube::JobState::kCompleted;
      job.status.end_time = at(10 * i);
      for (Change& change : changes_of(nullptr, job, kCluster, at(0))) changes.push_back(change);
    }
    EXPECT_TRUE(writer->write(changes).ok());
    reader_.emplace(std::move(*Reader::open(file())));
  }

  nlohmann::json get(const std::string& path, std::map<std::string, std::string> query = {},
                     int status = 200) {
    const ApiAnswer answer =
        answer_of({.method = "GET", .path = path, .query = std::move(query)}, *reader_, kCluster);
    EXPECT_EQ(answer.status, status) << path << ": " << answer.body;
    return nlohmann::json::parse(answer.body);
  }

  std::optional<Reader> reader_;
};

constexpr const char* kRoot = "/apis/records.kubegang.io/v1alpha1";

TEST_F(AnswersTest, OnlyWhatTheApiServerHasAuthorizedIsAPath) {
  const std::string root = kRoot;
  EXPECT_EQ(get(root)["resources"][0]["name"], "records");
  EXPECT_EQ(get("/apis/records.kubegang.io")["kind"], "APIGroup");
  EXPECT_EQ(get("/openapi/v2")["swagger"], "2.0");
  EXPECT_EQ(get(root + "/records")["items"].size(), 5U);
  EXPECT_EQ(get(root + "/namespaces/team-b/records")["items"].size(), 2U);
  EXPECT_EQ(get(root + "/namespaces/team-c/records")["items"].size(), 0U);
  for (const char* path :
       {"", "/", "/records/", "//records", "/records/a", "/namespaces/records",
        "/namespaces//records", "/namespaces/a/b/records", "/namespaces/team-a/records/..",
        "/namespaces/team-a/../records", "/namespaces/team-a", "/namespaces"}) {
    if (*path != '\0') get(root + path, {}, 404);
  }
  get(root + "/records", {{"watch", "true"}}, 400);
  get(root + "/records", {{"from", "yesterday"}}, 400);
  get(root + "/records", {{"continue", "7"}}, 400);
  EXPECT_EQ(answer_of({.method = "DELETE", .path = root + "/records"}, *reader_, kCluster).status,
            405);
}

TEST_F(AnswersTest, PagesHaveAllRecords) {
  const std::string path = std::string{kRoot} + "/records";
  std::vector<int> found;
  std::string next;
  do {
    const nlohmann::json page = get(path, {{"limit", "2"}, {"continue", next}});
    for (const auto& item : page["items"]) found.push_back(item["record"]["jobID"]);
    next = page["metadata"].value("continue", "");
    EXPECT_EQ(page["metadata"]["recordedSince"], "2023-11-14T22:13:15.000000Z");
  } while (!next.empty());
  EXPECT_EQ(found, (std::vector{0, 1, 2, 3, 4}));
}

// The test's client cannot send X-Remote-User, but can another header.
TEST_F(AnswersTest, OnlyTheApiServerIsAnswered) {
  const kube::TestAuthority servers, askers;
  const kube::PemPair own = servers.issue({});
  auto port = ApiPort::create({.address = "127.0.0.1",
                               .certificate = own.certificate,
                               .key = own.key,
                               .trust = {.authorities = askers.certificate(),
                                         .allowed_names = {"front-proxy"},
                                         .user_headers = {"Impersonate-User"}},
                               .cluster = kCluster},
                              std::move(*Reader::open(file())));
  ASSERT_TRUE(port.ok()) << port.error().message;
  std::thread serves{[&] { (*port)->serve(); }};
  const auto ask = [&](const kube::PemPair& pair, const std::string& user) {
    kube::TransportConfig config;
    config.server = "https://127.0.0.1:" + std::to_string((*port)->port());
    config.ca_pem = servers.certificate();
    config.client_certificate_pem = pair.certificate;
    config.client_key_pem = pair.key;
    config.impersonate.user = user;
    config.login = kube::personal_login();
    auto transport = kube::HttpTransport::create(config, clock_);
    EXPECT_TRUE(transport.ok());
    const auto response = (*transport)->send({.path = std::string{kRoot} + "/records"});
    return response ? response->status : 0;
  };
  const kube::PemPair proxy = askers.issue({.common_name = "front-proxy"});
  EXPECT_EQ(ask(proxy, "ann"), 200);
  EXPECT_EQ(ask(proxy, "ann"), 200) << "again";
  EXPECT_EQ(ask(proxy, ""), 401) << "for nobody";
  EXPECT_EQ(ask(askers.issue({.common_name = "kubelet"}), "ann"), 401);
  EXPECT_EQ(ask(servers.issue({.common_name = "front-proxy"}), "ann"), 0) << "another authority";
  EXPECT_EQ(ask({}, "ann"), 0) << "no certificate";
  (*port)->stop();
  serves.join();
}

TEST(RecordsOptions, ALeaseHasANamespace) {
  EXPECT_EQ(parse_options({"--lease", "a/b"}).options.lease, (kube::ObjectKey{"a", "b"}));
  for (const char* wrong : {"a", "/a", "a/", "a/b/c"}) {
    EXPECT_EQ(parse_options({"--lease", wrong}).exit_code, 2) << wrong;
  }
}

TEST(RecordsOptions, AnApiPortNeedsACertificate) {
  EXPECT_EQ(parse_options({"--api-port", "6443"}).exit_code, 2);
  EXPECT_FALSE(parse_options({"--api-port", "6443", "--tls-certificate", "a", "--tls-key", "b"})
                   .exit_code.has_value());
  EXPECT_EQ(parse_options({"--metrics-address", "x"}).exit_code, 2);
  EXPECT_EQ(parse_options({"--metrics-address", "[::]:9"}).options.metrics_host, "::");
}

}  // namespace
}  // namespace records
