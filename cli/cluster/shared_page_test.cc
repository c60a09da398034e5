// The page for several users against the in-memory API server, to which reviews of tokens and
// rights are added: who sees which rows, for how long, and what readers cost.
#include <gmock/gmock.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "cli/cluster/dashboard.h"
#include "cli/cluster/page_objects.h"
#include "cli/testing/program_fixture.h"
#include "dashboard/testing/connection.h"

namespace cli {
namespace {

using dashboard::testing::connect_to;
using dashboard::testing::read_until;
using dashboard::testing::request_text;
using dashboard::testing::send_text;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// An API server that reviews tokens and rights, too.
class Reviews final : public kube::Transport {
 public:
  explicit Reviews(kube::Transport& api) : api_{api} {}

  base::Result<kube::Response> send(const kube::Request& request) override {
    const std::lock_guard lock{mu_};
    if (request.path.ends_with("/tokenreviews")) {
      tokens_asked++;
      if (is_away) return base::Error{base::Code::kUnavailable, "connection refused"};
      const std::string token = nlohmann::json::parse(request.body)["spec"]["token"];
      nlohmann::json status = {{"authenticated", users.contains(token)}};
      if (users.contains(token)) status["user"] = {{"username", users[token]}};
      return answer(status);
    }
    if (request.path.ends_with("/subjectaccessreviews")) {
      rights_asked++;
      const auto spec = nlohmann::json::parse(request.body)["spec"];
      const auto& asked = spec["resourceAttributes"];
      const std::string ns = asked["namespace"];
      const std::string right = std::string{spec["user"]} + " " + std::string{asked["verb"]} + " " +
                                std::string{asked["resource"]} + (ns.empty() ? "" : " " + ns);
      return answer({{"allowed", rights.contains(right)}});
    }
    return api_.send(request);
  }
  base::Status stream(const kube::Request& request,
                      const std::function<bool(std::string_view)>& on_line,
                      std::stop_token stop) override {
    return api_.stream(request, on_line, std::move(stop));
  }

  std::map<std::string, std::string> users;  // by token
  std::set<std::string> rights;              // "ann list jobs team-a"
  bool is_away = false;
  int tokens_asked = 0;
  int rights_asked = 0;

 private:
  static kube::Response answer(const nlohmann::json& status) {
    return {.status = 201, .body = nlohmann::json{{"status", status}}.dump()};
  }

  kube::Transport& api_;
  std::mutex mu_;
};

class SharedPageTest : public ProgramTest {
 protected:
  SharedPageTest() {
    reviews_.users = {{"token-ann", "ann"}, {"token-root", "root"}};
    reviews_.rights = {"ann list jobs team-a", "root list jobs", "root list nodetimetables",
                       "root list partitions"};
    for (const char* ns : {"team-a", "team-b"}) {
      add_job(ns, std::string{"of-"} + ns, {}, {.state = kube::JobState::kPending, .job_id = 1});
    }
  }

  void start(const std::vector<std::string>& hosts = {}) {
    auto page = SharedPage::create(
        own_, {.hosts = hosts},
        [this](const std::string& token, const auto& act) -> base::Result<std::string> {
          acted_as_.push_back(token);
          return act(own_);
        });
    ASSERT_TRUE(page) << page.error().message;
    page_ = std::move(*page);
    while (!page_->has_synced()) std::this_thread::yield();
    thread_ = std::jthread{[this](std::stop_token stop) { page_->serve(std::move(stop)); }};
  }

  os::FileDescriptor send(const std::string& line, const std::string& headers,
                          const std::string& body = "", const std::string& host = "") const {
    os::FileDescriptor socket = connect_to(page_->port());
    send_text(socket, request_text(line, host.empty() ? here() : host, headers, body));
    return socket;
  }
  std::string ask(const std::string& line, const std::string& headers, const std::string& body = "",
                  const std::string& host = "") const {
    return read_until(send(line, headers, body, host), "");
  }
  std::string here() const { return "127.0.0.1:" + std::to_string(page_->port()); }
  std::string origin() const { return "Origin: http://" + here() + "\r\n"; }
  static std::string bearer(const std::string& token) {
    return "Authorization: Bearer " + token + "\r\n";
  }
  // Returns what a reader's page gets first.
  std::string picture(const std::string& headers) const {
    const auto socket = send("GET /events", headers);
    return read_until(socket, "\"gone\":{");
  }

  Reviews reviews_{transport_};
  kube::Client own_client_{reviews_, clock_, sleeper_, {.call = {.attempts_max = 1}}};
  const Session own_{
      .client = own_client_, .clock = clock_, .sleeper = *session_sleeper_, .ns = "system"};
  std::vector<std::string> acted_as_;
  std::unique_ptr<SharedPage> page_;
  std::jthread thread_;  // ends before the page
};

TEST_F(SharedPageTest, AReaderSeesTheRowsThatTheyMayList) {
  start();
  const std::string few = picture(bearer("token-ann"));
  EXPECT_THAT(few, HasSubstr("of-team-a"));
  EXPECT_THAT(few, Not(HasSubstr("of-team-b")));
  EXPECT_THAT(few, Not(HasSubstr("team-b")));
  const std::string all = picture(bearer("token-root"));
  EXPECT_THAT(all, HasSubstr("of-team-a"));
  EXPECT_THAT(all, HasSubstr("of-team-b"));
}

TEST_F(SharedPageTest, WithoutAGoodTokenThereIsNothing) {
  start();
  for (const std::string& headers :
       {std::string{}, bearer("wrong"), bearer(""), std::string{"Authorization: Basic YTpi\r\n"},
        std::string{"Cookie: kubegang_1=1\r\n"}}) {
    for (const char* path : {"/events", "/session", "/job?ns=team-a&name=of-team-a"}) {
      const bool goes_on = headers.find("wrong") != std::string::npos && path[1] == 'j';
      if (goes_on) continue;  // to the API server, which refuses it
      const std::string answer = ask(std::string{"GET "} + path, headers);
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 401")) << path << " " << headers;
      EXPECT_THAT(answer, HasSubstr("WWW-Authenticate: Bearer"));
      EXPECT_THAT(answer, Not(HasSubstr("team-a")));
    }
  }
  EXPECT_TRUE(acted_as_.empty());
}

// Goal: a token that is given at sign-in becomes a cookie, and is in no answer.
TEST_F(SharedPageTest, ATokenBecomesACookie) {
  start();
  EXPECT_THAT(ask("POST /session", origin(), "wrong"), StartsWith("HTTP/1.1 401"));
  const std::string answer = ask("POST /session", origin(), "token-ann");
  ASSERT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("; Path=/; HttpOnly; SameSite=Strict"));
  EXPECT_THAT(answer, Not(HasSubstr("token-ann")));
  const auto begin = answer.find("Set-Cookie: ") + 12;
  const std::string cookie =
      "Cookie: " + answer.substr(begin, answer.find(';', begin) - begin) + "\r\n";
  EXPECT_THAT(ask("GET /session", cookie), HasSubstr(R"("user":"ann")"));
  EXPECT_THAT(picture(cookie), HasSubstr("of-team-a"));
  EXPECT_THAT(ask("POST /sign-out", cookie + origin()), HasSubstr("Max-Age=0"));
  EXPECT_THAT(ask("GET /session", cookie), StartsWith("HTTP/1.1 401"));
}

// Goal: what a reader asks for goes out with that reader's token, and for no page of another site.
TEST_F(SharedPageTest, ActsWithTheReadersToken) {
  start();
  const auto job = client_.get<kube::Job>({.ns = "team-a", .name = "of-team-a"});
  const std::string wish = nlohmann::json{
      {"verb", "hold"},
      {"ns", "team-a"},
      {"name", "of-team-a"},
      {"uid",
       job->metadata.uid}}.dump();
  EXPECT_THAT(ask("POST /control", bearer("token-ann"), wish), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("POST /control", bearer("token-ann") + "Origin: http://evil.example\r\n", wish),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("POST /control", origin(), wish), StartsWith("HTTP/1.1 401"));
  EXPECT_TRUE(acted_as_.empty());
  EXPECT_THAT(ask("POST /control", bearer("token-ann") + origin(), wish),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(acted_as_, std::vector<std::string>{"token-ann"});
  EXPECT_EQ(client_.get<kube::Job>({.ns = "team-a", .name = "of-team-a"})->spec.control.hold, true);
}

// Names of the page are given; over https by those, and by this machine's own over http.
TEST_F(SharedPageTest, IsServedByItsNamesAlone) {
  start({"gang.example.org"});
  const std::string cookie =
      ask("POST /session", "Origin: https://gang.example.org\r\n", "token-ann", "gang.example.org");
  EXPECT_THAT(cookie, HasSubstr("Set-Cookie: __Host-kubegang="));
  EXPECT_THAT(cookie, HasSubstr("; Secure"));
  for (const char* from : {"http://gang.example.org", "https://evil.example",
                           "https://gang.example.org.evil.example"}) {
    EXPECT_THAT(ask("POST /session", std::string{"Origin: "} + from + "\r\n", "token-ann",
                    "gang.example.org"),
                StartsWith("HTTP/1.1 403"))
        << from;
  }
  EXPECT_THAT(ask("GET /session", bearer("token-ann"), "", "evil.example"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(ask("GET /healthz", "", "", "10.0.0.1:8080"), StartsWith("HTTP/1.1 200"));
}

// Goal: lists and watches are those of one program. Method: one reader, then 50.
TEST_F(SharedPageTest, ManyReadersCostTheApiServerWhatOneDoes) {
  start();
  (void)picture(bearer("token-ann"));
  const auto counts = server_.request_counts();
  const auto watches = server_.open_watches_count();
  std::vector<os::FileDescriptor> open;
  for (int i = 0; i < 50; ++i) {
    open.push_back(send("GET /events", bearer(i % 2 == 0 ? "token-ann" : "token-root")));
    EXPECT_THAT(read_until(open.back(), "\"gone\":{"), HasSubstr("of-team-a"));
  }
  EXPECT_EQ(server_.request_counts(), counts);
  EXPECT_EQ(server_.open_watches_count(), watches);
  EXPECT_EQ(reviews_.tokens_asked, 2) << "once a minute for each token";
}

class Readers : public SharedPageTest {
 protected:
  Readers() {
    board_.set("jobs", "a", "1", page_scope("jobs", "team-a"));
    board_.set("jobs", "b", "1", page_scope("jobs", "team-b"));
    board_.set("nodes", "n1", "1", page_scope("nodetimetables"));
  }
  dashboard::Sight sight_of(const std::string& token) {
    const auto sight = readers_.sight(token);
    return sight ? *sight : dashboard::Sight{"nothing"};
  }

  dashboard::Board board_;
  PageReaders readers_{own_, board_};
};

TEST_F(Readers, AreAskedAboutAgainEachMinute) {
  EXPECT_EQ(readers_.sight("token-ann"), nullptr);
  ASSERT_TRUE(readers_.admit("token-ann"));
  EXPECT_EQ(sight_of("token-ann"), dashboard::Sight{"jobs/team-a"});
  const auto before = readers_.sight("token-ann");
  clock_.advance(seconds{59});
  (void)readers_.step();
  EXPECT_EQ(reviews_.tokens_asked, 1);
  // A right that has gone, and one that has come.
  reviews_.rights = {"ann list jobs team-b"};
  clock_.advance(seconds{1});
  (void)readers_.step();
  EXPECT_EQ(reviews_.tokens_asked, 2);
  EXPECT_EQ(sight_of("token-ann"), dashboard::Sight{"jobs/team-b"});
  EXPECT_NE(readers_.sight("token-ann"), before);
}

TEST_F(Readers, WithATokenThatHasExpiredAreSentAway) {
  ASSERT_TRUE(readers_.admit("token-ann"));
  reviews_.users.clear();
  EXPECT_NE(readers_.sight("token-ann"), nullptr);
  clock_.advance(minutes{1});
  (void)readers_.step();
  EXPECT_EQ(readers_.sight("token-ann"), nullptr);
  EXPECT_EQ(readers_.admit("token-ann").error().code, base::Code::kUnauthenticated);
}

// Without an answer what was known holds for five minutes.
TEST_F(Readers, AreTrustedForAWhileIfNobodyAnswers) {
  ASSERT_TRUE(readers_.admit("token-ann"));
  reviews_.is_away = true;
  for (int i = 0; i < 4; ++i) {
    clock_.advance(minutes{1});
    (void)readers_.step();
    EXPECT_NE(readers_.sight("token-ann"), nullptr) << i;
  }
  clock_.advance(minutes{1});
  EXPECT_EQ(readers_.sight("token-ann"), nullptr);
}

TEST_F(Readers, SeeANamespaceThatIsNewSoon) {
  ASSERT_TRUE(readers_.admit("token-root"));
  board_.set("jobs", "c", "1", page_scope("jobs", "team-c"));
  clock_.advance(seconds{3});
  (void)readers_.step();
  EXPECT_TRUE(sight_of("token-root").contains("jobs/team-c"));
}

// Goal: tokens of readers who have gone are forgotten.
TEST_F(Readers, WhoHaveGoneAreNotAskedAbout) {
  ASSERT_TRUE(readers_.admit("token-ann"));
  clock_.advance(minutes{2});
  (void)readers_.step();
  EXPECT_EQ(reviews_.tokens_asked, 1);
  EXPECT_EQ(readers_.sight("token-ann"), nullptr);
}

}  // namespace
}  // namespace cli
