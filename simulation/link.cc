#include "simulation/link.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "kube/api_error.h"
#include "kube/clock_watch.h"
#include "kube/testing/api_server/api_error.h"
#include "kube/testing/manual_clock.h"
#include "simulation/paths.h"
#include "simulation/plan.h"

namespace simulation {
namespace {

using nlohmann::json;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// One link stands for the network between one process and the API server. How a watch works in
// virtual time:
//
// 1. `look()` is called after each step in which something was written. It takes what the server
//    has put on the process's streams and draws when that arrives: `Feed::due`.
// 2. The world lets time pass until the earliest `due`, and `run_feeds()` steps the informer of
//    that feed.
// 3. The informer lists (`send()`) or watches (`stream()`). A real transport would block in
//    `stream()`; here it delivers what has arrived and returns success, which an informer takes for
//    a watch that the server has closed. The informer then watches again from the version that it
//    has seen, and the link gives it the same stream: nothing is lost or repeated.
// 4. Faults change steps 1 and 3 only, by the `Weather` of the link.
//
// Calls take no virtual time. A write that takes time is the matter of OperatorHost::SlowWriter.

constexpr std::uint64_t kLatencyMaxMicros = 20'000;
constexpr int kStepsMax = 8;  // of one feed at one time: list, watch, list after 410, watch

base::Error unreachable() {
  return {base::Code::kUnavailable, "connection refused"};
}

// Makes an answer as the API server itself writes it, with the header that says when to try again.
kube::Response refusal(int code, int retry_after_seconds) {
  kube::Response response;
  response.status = code;
  response.headers["content-type"] = "application/json";
  if (retry_after_seconds > 0) {
    response.headers["retry-after"] = std::to_string(retry_after_seconds);
  }
  response.body = to_json(devcluster::error_of_code(code, retry_after_seconds)).dump();
  return response;
}

// Returns the path without its query and without /status.
std::string object_path(const std::string& path) {
  std::string object = path.substr(0, path.find('?'));
  if (object.ends_with("/status")) object.resize(object.size() - 7);
  return object;
}

bool is_of_timetables(const std::string& path) {
  return path.find("/nodetimetables") != std::string::npos;
}

// 0 if the object says nothing of a term.
std::int64_t term_of(const json& object, const char* part) {
  const auto found = object.find(part);
  if (found == object.end() || !found->is_object()) return 0;
  return found->value("term", std::int64_t{0});
}

}  // namespace

Link::Link(devcluster::ApiServer& server, const Time& now, const Breaks& breaks, Tally& tally,
           std::string name, std::uint64_t seed)
    : server_{server},
      now_{now},
      breaks_{breaks},
      tally_{tally},
      name_{std::move(name)},
      prng_{seed} {}

base::Result<kube::Response> Link::send(const kube::Request& request) {
  // A list begins the feed again: whatever its last watch still had on the way is in it.
  if (feed_ != nullptr) {  // a list
    feed_->stream.reset();
    feed_->lines.clear();
    feed_->ended = false;
    feed_->path = request.path;
    // When the stale cache ends, the watch that was begun from it ends with 410, so that the agent
    // lists from a server that is up to date.
    const bool stale = now_ < weather.stale_until && is_of_timetables(request.path);
    feed_->gone_at = stale ? weather.stale_until : kNoTime;
  }
  if (is_partitioned()) {
    ++tally_.faults["request into a partition"];
    return unreachable();
  }
  if (now_ < weather.bad_until && prng_.below(1000) < weather.bad_per_mille) {
    return go_wrong(request);
  }
  if (now_ < weather.proxy_until && prng_.below(1000) < weather.bad_per_mille) {
    return answer_of_proxy();
  }
  return transmit(request);
}

// Draws an answer of a load balancer that fails over, or of an API server that does not serve the
// group for a moment. None says anything of the object; nothing is carried out. With the break the
// 404 is the API server's own.
kube::Response Link::answer_of_proxy() {
  struct Answer {
    int status;
    const char* type;
    const char* body;
  };
  constexpr std::array kAnswers{
      Answer{404, "text/plain", "404 page not found\n"},
      Answer{410, "text/html", "<html><body>410 Gone</body></html>"},
      Answer{429, "text/plain", "Too many requests, please try again later.\n"},
      Answer{502, "text/html", "<html><body>502 Bad Gateway</body></html>"},
  };
  const Answer& answer = kAnswers[prng_.below(kAnswers.size())];
  ++tally_.faults["answer " + std::to_string(answer.status) + " of a proxy"];
  const bool is_believed = breaks_.is(Break::kProxyBelieved) && !name_.starts_with("kubelet");
  if (is_believed && answer.status == 404) return refusal(404, 0);
  kube::Response response;
  response.status = answer.status;
  response.headers["content-type"] = answer.type;
  response.body = answer.body;
  return response;
}

// Draws one of seven outcomes, four for reads. In four nothing is carried out, and the program
// hears so; one is a conflict; in two the write is carried out and its answer lost, with which a
// retry must cope.
base::Result<kube::Response> Link::go_wrong(const kube::Request& request) {
  const bool writes = request.method != kube::Method::kGet;
  switch (prng_.below(writes ? 7 : 4)) {
    case 0:
      ++tally_.faults["answer 429"];
      return refusal(429, 1);
    case 1:
      ++tally_.faults["answer 500"];
      return refusal(500, 0);
    case 2:
      ++tally_.faults["answer 503"];
      return refusal(503, 1);
    case 3:
      ++tally_.faults["connection broken before"];
      return unreachable();
    // Only writes can conflict, and only the answer to a write is worth losing: it was carried out,
    // and the program does not know.
    case 4:
      ++tally_.faults["answer 409"];
      return refusal(409, 0);
    default:
      ++tally_.faults["answer lost"];
      (void)transmit(request);
      return base::Error{base::Code::kUnavailable, "connection reset"};
  }
}

// Returns where a list or a watch of that path goes.
devcluster::ApiServer& Link::server_of(const std::string& path) {
  const bool stale = now_ < weather.stale_until && feed_ != nullptr && is_of_timetables(path);
  return stale ? *stale_ : server_;
}

// Passes the request to the server. Two things are added that this server lacks or a break needs:
// the CEL rule of terms, and dry runs of writes that are only said to be stored.
base::Result<kube::Response> Link::transmit(kube::Request request) {
  ++tally_.requests;
  if (breaks_.is(Break::kSaidAgain) && name_.starts_with("agent")) say_again(request);
  if (lowers_term(request)) {
    ++tally_.faults["write of an old term refused"];
    return refusal(422, 0);
  }
  // Checked and answered like any other, so that the program sees nothing of the break.
  const bool dry = dry_run_ && request.method != kube::Method::kGet;
  if (dry)
    request.path += request.path.find('?') == std::string::npos ? "?dryRun=All" : "&dryRun=All";
  devcluster::ApiServer& server = server_of(request.path);
  devcluster::ApiRequest api;
  api.http = std::move(request);
  api.user_agent = name_;
  kube::Response response = server.handle(api).response;
  response.body = as_seen(std::move(response.body));
  // The API server's clock is right. Breaks that hide it from an operator leave its time out.
  if (!breaks_.is(Break::kClockBelieved)) {
    response.headers["date"] = kube::http_date(kube::ManualClock::kStart + now_);
  }
  return response;
}

// Carries out the breaks that hide a field of a Job from the operator: under another name it is not
// read.
std::string Link::as_seen(std::string text) {
  if (!name_.starts_with("operator")) return text;
  if (breaks_.is(Break::kUncordonNotSeen)) return still_cordoned(std::move(text));
  if (breaks_.is(Break::kDevicesDoubled)) return with_twice_the_devices(std::move(text));
  std::string_view field;
  if (breaks_.is(Break::kTimeoutNotSeen)) field = "\"startTimeout\"";
  if (breaks_.is(Break::kSelectorNotSeen)) field = "\"nodeSelector\"";
  if (breaks_.is(Break::kDependencyNotSeen)) field = "\"dependency\"";
  if (breaks_.is(Break::kDevicesNotSeen)) field = "\"devices\"";
  if (breaks_.is(Break::kProbeNotSeen)) field = "\"livenessProbe\"";
  if (breaks_.is(Break::kHoldNotSeen)) field = "\"hold\"";
  if (breaks_.is(Break::kTestOnlyNotSeen)) field = "\"testOnly\"";
  // Returns true for text about arrays.
  if (text.find("\"array\"") != std::string::npos) {
    if (breaks_.is(Break::kThrottleNotSeen)) field = "\"parallelism\"";
    if (breaks_.is(Break::kOutcomesNotSeen)) field = "\"succeeded\"";
    if (breaks_.is(Break::kExitCodeNotSeen)) field = "\"exitCode\"";
    if (breaks_.is(Break::kTaskHoldNotSeen)) field = "\"hold\"";
    if (breaks_.is(Break::kTaskCancelNotSeen)) field = "\"cancel\"";
  }
  if (field.empty()) return text;
  for (std::size_t at = text.find(field); at != std::string::npos; at = text.find(field, at + 1)) {
    text[at + 1] = 'x';
  }
  return text;
}

// Repeats an agent's status whenever it reads the Lease.
void Link::say_again(const kube::Request& request) {
  if (request.method == kube::Method::kPatch) {
    said_ = request;
  } else if (said_ && request.path.find("/leases/") != std::string::npos) {
    devcluster::ApiRequest api;
    api.http = *said_;
    api.user_agent = name_;
    (void)server_.handle(api);
  }
}

// A node has fewer than ten devices.
std::string Link::with_twice_the_devices(std::string text) {
  const std::string key = "\"" + std::string{paths::kDevice} + "\":\"";
  for (std::size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + 1)) {
    text[at + key.size()] = static_cast<char>('0' + 2 * kDevices);
  }
  return text;
}

// A node that was cordoned once stays so, as this process sees it: in a list, and in the event of a
// watch.
std::string Link::still_cordoned(std::string text) {
  json body = json::parse(text, nullptr, false);
  if (!body.is_object()) return text;
  const auto look = [this](json& node) {
    const std::string name = node["metadata"].value("name", "");
    if (node["spec"].value("unschedulable", false)) cordoned_.insert(name);
    if (cordoned_.contains(name)) node["spec"]["unschedulable"] = true;
  };
  const bool is_event = body.contains("object") && body["object"].value("kind", "") == "Node";
  if (is_event) look(body["object"]);
  if (body.value("kind", "") == "NodeList") {
    for (json& node : body["items"]) look(node);
  }
  return body.dump();
}

// The CEL rules of the Job's status and the NodeTimetable's spec, which this API server does not
// evaluate: the term never falls.
bool Link::lowers_term(const kube::Request& request) {
  if (request.method != kube::Method::kPatch && request.method != kube::Method::kPut) return false;
  const bool job = request.path.find("/jobs/") != std::string::npos;
  const bool table = request.path.find("/nodetimetables/") != std::string::npos;
  if ((!job && !table) || request.body.find("\"term\"") == std::string::npos) return false;
  // The rule compares with what is stored, as CEL's oldSelf does. A write that says nothing of the
  // term keeps it.
  const char* part = job ? "status" : "spec";
  const std::int64_t wanted = term_of(json::parse(request.body, nullptr, false), part);
  devcluster::ApiRequest get;
  get.http.path = object_path(request.path);
  const kube::Response stored = server_.handle(get).response;
  if (stored.status != 200) return false;
  return wanted < term_of(json::parse(stored.body, nullptr, false), part);
}

// Due at once, because an informer begins with a list.
void Link::add_feed(std::function<base::Duration()> step) {
  feeds_.emplace_back().step = std::move(step);
  feeds_.back().due = now_;
}

// From now on lists and watches of timetables come from `cache`, an older state, as from an API
// server behind a load balancer that lags. The watch that stands ends with 410, so that the program
// lists again.
void Link::read_timetables_from(std::shared_ptr<devcluster::ApiServer> cache, Time until) {
  stale_ = std::move(cache);
  weather.stale_until = until;
  for (Feed& feed : feeds_) {
    if (is_of_timetables(feed.path)) feed.gone_at = now_;
  }
}

// Takes the lines that have arrived off the stream, without delivering them.
void Link::pull(Feed& feed) {
  if (!feed.stream || feed.ended) return;
  for (;;) {
    std::string data;
    const auto state = feed.stream->read(data, base::Duration{0});
    for (std::size_t begin = 0; begin < data.size();) {
      const std::size_t end = std::min(data.find('\n', begin), data.size());
      if (end > begin) feed.lines.push_back(data.substr(begin, end - begin));
      begin = end + 1;
    }
    if (state != devcluster::StreamState::kOpen) feed.ended = true;
    if (data.empty() || feed.ended) return;
  }
}

// Takes what the server has sent off the streams and decides when the program hears of it.
void Link::look() {
  for (Feed& feed : feeds_) {
    pull(feed);
    if (feed.lines.empty() && !feed.ended) continue;
    // The delay is drawn once for what has come together; an earlier delivery that is due sooner
    // takes it along, since a stream keeps its order.
    const bool late = now_ < weather.delayed_until;
    const auto latency_max =
        late ? static_cast<std::uint64_t>(weather.delay_max.count()) : kLatencyMaxMicros;
    const Time due =
        now_ + microseconds{1 + static_cast<std::int64_t>(prng_.below(latency_max + 1))};
    if (late && feed.due > due) ++tally_.faults["watch delayed"];
    feed.due = std::min(feed.due, due);
  }
}

Time Link::next_feed() const {
  Time next = kNoTime;
  for (const Feed& feed : feeds_) next = std::min({next, feed.due, feed.gone_at});
  return next;
}

// Runs the feeds that are due; true if there were any.
bool Link::run_feeds() {
  bool any = false;
  for (Feed& feed : feeds_) {
    if (std::min(feed.due, feed.gone_at) > now_) continue;
    run(feed);
    any = true;
  }
  return any;
}

void Link::run(Feed& feed) {
  // While a feed runs, send() and stream() are called by it.
  feed_ = &feed;
  feed.due = kNoTime;
  for (int i = 0; i < kStepsMax; ++i) {
    const base::Duration wait = feed.step();
    // An informer lists, watches, and after a 410 lists again, all at one instant; only then it
    // waits.
    if (feed.stream) break;  // it stands, and has nothing more
    if (wait > base::Duration{0} || i + 1 == kStepsMax) {
      feed.due = now_ + std::max<base::Duration>(wait, milliseconds{1});
      break;
    }
  }
  feed_ = nullptr;
}

// Called by the informer for its watch. It returns at once with what has arrived, and the stream
// stays open until the next call: so one thread can run all informers in virtual time.
base::Status Link::stream(const kube::Request& request,
                          const std::function<bool(std::string_view)>& on_line, std::stop_token) {
  Feed& feed = *feed_;
  if (feed.gone_at <= now_) {
    feed.gone_at = kNoTime;
    feed.stream.reset();
    feed.lines.clear();
    feed.ended = false;
    return base::Error{base::Code::kGone, "too old resource version"};
  }
  // Messages on their way are lost with the connection.
  if (is_partitioned()) {
    feed.stream.reset();
    feed.lines.clear();
    feed.ended = false;
    return unreachable();
  }
  if (!feed.stream) {
    if (now_ < weather.proxy_until && prng_.below(1000) < weather.bad_per_mille) {
      return kube::error_from_response(answer_of_proxy(), request.path);
    }
    devcluster::ApiRequest api;
    api.http = request;
    api.user_agent = name_;
    const devcluster::ApiAnswer answer = server_of(request.path).handle(api);
    if (answer.response.status != 200)
      return kube::error_from_response(answer.response, request.path);
    feed.stream = answer.stream;
  }
  pull(feed);
  return deliver(feed, on_line);
}

// 1. the connection may break off within what is on its way
// 2. an error line (410) ends the watch, unless that rule is broken on purpose
// 3. any other line may come twice
base::Status Link::deliver(Feed& feed, const std::function<bool(std::string_view)>& on_line) {
  const auto close = [&] {
    feed.stream.reset();
    feed.lines.clear();
    feed.ended = false;
  };
  const bool breaks_off = weather.breaks_off > 0 && !feed.lines.empty();
  // The connection ends somewhere in what was on its way: the rest is never delivered, and the
  // informer must go on from the version that it has seen.
  const std::size_t rest = breaks_off ? prng_.below(feed.lines.size() + 1) : 0;
  while (feed.lines.size() > rest) {
    const std::string line = as_seen(std::move(feed.lines.front()));
    feed.lines.pop_front();
    const bool error = line.find(R"("type":"ERROR")") != std::string::npos;
    if (error) ++tally_.faults["watch gone (410)"];
    if (error && breaks_.is(Break::kGoneNotListed)) continue;
    if (breaks_.is(Break::kPodNewsLost) && is_lost_news(feed, line)) continue;
    bool more = on_line(line);
    if (more && !error && now_ < weather.duplicated_until) {
      ++tally_.faults["watch event duplicated"];
      // As after a watch that is resumed a little too early.
      more = on_line(line);
    }
    if (!more) {
      close();
      return {};
    }
  }
  if (breaks_off) {
    --weather.breaks_off;
    weather.broke_off_at = now_;
    broke_off_ = true;
    ++tally_.faults["watch broken off"];
    close();
    return base::Error{base::Code::kUnavailable, "connection reset"};
  }
  if (feed.ended && !breaks_.is(Break::kGoneNotListed)) close();
  return {};
}

// Returns true for some of the changes of pods of which an operator should hear.
bool Link::is_lost_news(const Feed& feed, const std::string& line) {
  return name_.starts_with("operator") && feed.path.starts_with(paths::kAllPods) &&
         line.find(R"("type":"MODIFIED")") != std::string::npos && prng_.below(8) == 0;
}

bool Link::is_up_to_date() const {
  return std::all_of(feeds_.begin(), feeds_.end(), [](const Feed& feed) {
    return feed.stream && feed.lines.empty() && !feed.ended;
  });
}

// Returns when the last fault of this link ends or has ended. Each watch that breaks off is a fault
// of its own: it may come long after the event that ordered it, and the informer's pause doubles
// while nothing is delivered.
Time Link::last_trouble() const {
  return std::max({weather.partitioned_until, weather.bad_until, weather.proxy_until,
                   weather.delayed_until, weather.duplicated_until, weather.stale_until,
                   weather.broke_off_at});
}

}  // namespace simulation
