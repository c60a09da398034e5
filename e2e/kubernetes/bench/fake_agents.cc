#include "e2e/kubernetes/bench/fake_agents.h"

#include <nlohmann/json.hpp>

namespace kubernetes_bench {
namespace {

// Real agents write from their own nodes; eight connections keep up with what one operator
// publishes.
constexpr int kWritersCount = 8;
constexpr std::chrono::milliseconds kPauseAfterFailure{100};

// By the informer's cache.
bool is_acknowledged(const kube::NodeTimetable& timetable) {
  return timetable.status.observed_revision == timetable.spec.revision &&
         kube::is_true(timetable.status.conditions, "Ready");
}

}  // namespace

// The rate limit of the client is out of the way: what is measured is the operator, and its agents
// must not be the brake.
FakeAgents::FakeAgents(kube::Transport& transport, const kube::Clock& clock, int cores)
    : cores_{cores},
      client_{transport, clock, sleeper_, {.rate = {.per_second = 10'000, .burst = 10'000}}},
      informer_{client_,
                clock,
                {},
                // The queue holds each node once, however often its timetable changes meanwhile:
                // only the newest is acknowledged, as by a real agent that was busy.
                {.on_add = [this](const auto& object) { queue_.add(object->metadata.name); },
                 .on_update = [this](const auto&,
                                     const auto& object) { queue_.add(object->metadata.name); }}} {
  loops_.start("timetables",
               [this](std::stop_token stop) { return informer_.step(std::move(stop)); });
  for (int i = 0; i < kWritersCount; ++i) {
    loops_.start("agents", [this](std::stop_token stop) {
      // Absent when the loops are to stop.
      const auto node = queue_.get(std::move(stop));
      if (!node) return base::Duration{};
      const base::Duration pause = acknowledge(*node);
      queue_.done(*node);
      return pause;
    });
  }
}

FakeAgents::~FakeAgents() {
  loops_.request_stop();
  loops_.join();
}

std::size_t FakeAgents::ready_nodes() const {
  std::size_t count = 0;
  for (const auto& timetable : informer_.snapshot()) {
    if (is_acknowledged(*timetable)) ++count;
  }
  return count;
}

// The first acknowledgement also says what the node is like, as a real agent's first report does.
// Returns how long this writer rests before its next node.
base::Duration FakeAgents::acknowledge(const std::string& node) {
  const auto timetable = informer_.find({.ns = "", .name = node});
  if (timetable == nullptr || is_acknowledged(*timetable)) return {};
  nlohmann::json status{{"observedRevision", timetable->spec.revision}};
  if (!kube::is_true(timetable->status.conditions, "Ready")) {
    const auto condition = [](const char* type) {
      return nlohmann::json{{"type", type},
                            {"status", "True"},
                            {"reason", "Fake"},
                            {"message", "acknowledged by the benchmark"},
                            {"lastTransitionTime", "2020-01-01T00:00:00Z"}};
    };
    status["agentVersion"] = "fake";
    status["topology"] = {{"sockets", 1},
                          {"coresPerSocket", cores_},
                          {"threadsPerCore", 1},
                          {"cpuIDs", "0-" + std::to_string(cores_ - 1)}};
    status["conditions"] = {condition("Ready"), condition("ClockSynchronized")};
  }
  const auto written =
      client_.patch_status<kube::NodeTimetable>({.ns = "", .name = node}, {{"status", status}});
  // The informer shows it a moment later. Until then the node may be acknowledged twice, which does
  // no harm.
  if (written.ok()) {
    ++acknowledgements_;
  } else if (written.error().code != base::Code::kNotFound) {
    queue_.add(node);
    return kPauseAfterFailure;
  }
  return {};
}

}  // namespace kubernetes_bench
