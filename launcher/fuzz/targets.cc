#include "launcher/fuzz/targets.h"

#include <algorithm>
#include <array>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "launcher/ledger.h"
#include "launcher/message.h"
#include "launcher/pmix_exchange.h"
#include "launcher/step_environment.h"
#include "launcher/step_layout.h"

namespace launcher {
namespace {

// Larger steps only take longer.
constexpr std::uint32_t kTasksTried = 512;
// More than twice as many messages as an acknowledgment is for; more only take longer.
constexpr std::size_t kKeptMax = 4'096;

std::vector<Message> read_in_pieces(std::string_view bytes, std::size_t piece, bool& is_broken) {
  MessageReader reader;
  std::vector<Message> all;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.add(bytes.substr(at, piece));
    while (const auto message = reader.next()) all.push_back(*message);
  }
  is_broken = reader.is_broken();
  return all;
}

void check_placement(const StepRequest& request, const StepPlacement& placement,
                     const std::vector<NodeRoom>& rooms) {
  const StepLayout& layout = placement.layout;
  CHECK(layout.places.size() == request.tasks);
  CHECK(layout.nodes.size() >= request.nodes);
  CHECK(std::ranges::is_sorted(layout.nodes));
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    const NodeRoom& room = rooms[layout.nodes[i]];
    CHECK(placement.cpus[i] + (request.overlaps ? 0 : room.used) <= room.cpus);
  }
  for (const std::uint32_t node : request.required) {
    CHECK(std::ranges::find(layout.nodes, node) != layout.nodes.end());
  }
  const JobNodes nodes{.names = {"n1", "n2", "n3"}, .cpus = {4, 2, 1}};
  std::size_t tasks = 0;
  for (std::size_t place = 0; place < layout.nodes.size(); ++place) {
    if (placement.tasks[place] == 0) continue;
    const TaskSet set = task_set(request, placement, place, 0, nodes);
    tasks += set.ranks.size();
    // Each launcher must take what the other sends.
    MessageReader reader;
    reader.add(encode({.kind = Kind::kRun, .tasks = set}));
    const auto message = reader.next();
    CHECK(message && message->tasks == set);
  }
  CHECK(tasks == request.tasks);
}

// Whatever nodes say, each of them hears no more answers than it has asked for.
void check_exchange(const std::vector<Message>& messages) {
  const std::vector<std::uint32_t> places{0, 0, 1, 2};
  constexpr std::uint32_t kPlaces = 3;
  PmixExchange exchange{places};
  std::vector<std::uint32_t> unanswered(kPlaces);
  for (const Message& message : messages) {
    if (message.kind != Kind::kPmix) continue;
    const std::uint32_t place = message.rank % kPlaces;
    std::vector<PmixExchange::Reply> replies;
    const bool is_good = exchange.add(place, *message.pmix, replies);
    const PmixKind kind = message.pmix->kind;
    if (is_good && (kind == PmixKind::kFence || kind == PmixKind::kAsk)) ++unanswered[place];
    if (message.number == 1) exchange.lose(place, replies);
    for (const PmixExchange::Reply& reply : replies) {
      CHECK(reply.place < kPlaces);
      if (reply.message.kind == PmixKind::kAsk) continue;
      CHECK(unanswered[reply.place] > 0);
      --unanswered[reply.place];
    }
  }
}

// One end, which says messages of 1 to 61 bytes. What is in them is nothing to a ledger.
struct End {
  struct Coming {
    bool is_acknowledgment = false;
    std::uint32_t number = 0;  // which of the other's messages; or how many have come
  };
  Ledger ledger;
  std::size_t weight = 1;     // of a byte, so that bytes make acknowledgments due, too
  std::deque<Coming> coming;  // to it, by the connection that is there
  std::string all;            // that it has said
  std::vector<std::size_t> begins{0};
  std::uint32_t next_heard = 0;

  std::uint32_t said() const { return static_cast<std::uint32_t>(begins.size() - 1); }
  void say(End& other) {
    const std::string message(1 + said() % 61, static_cast<char>(said()));
    other.coming.push_back({.number = said()});
    all += message;
    begins.push_back(all.size());
    ledger.said(message);
  }
  void hear(End& other) {
    if (coming.empty()) return;
    const Coming what = coming.front();
    coming.pop_front();
    if (what.is_acknowledgment) {
      CHECK(ledger.has_come(what.number));
      return;
    }
    CHECK(what.number == next_heard++);
    ledger.heard();
    const std::size_t size = other.begins[what.number + 1] - other.begins[what.number];
    if (const auto count = ledger.to_acknowledge(size * weight)) {
      other.coming.push_back({.is_acknowledgment = true, .number = *count});
    }
    CHECK(other.ledger.kept_bytes() >= size);
  }
  void resume(End& other) {
    coming.clear();
    const std::uint32_t come = ledger.acknowledged();
    CHECK(come == next_heard && other.ledger.has_come(come));
    const std::string again = other.ledger.kept();
    CHECK(again.size() == other.ledger.kept_bytes());
    CHECK(again == std::string_view{other.all}.substr(other.begins[come]));
    for (std::uint32_t i = come; i < other.said(); ++i) coming.push_back({.number = i});
  }
};

}  // namespace

void fuzz_ledger(std::string_view bytes) {
  std::array<End, 2> ends;
  ends[1].weight = 4'096;
  for (const char byte : bytes) {
    const auto what = static_cast<unsigned char>(byte);
    End& one = ends[what & 1U];
    End& other = ends[1 - (what & 1U)];
    // Many messages at once, so that acknowledgments are on the way, too.
    for (unsigned i = what >> 3U; i > 0; --i) {
      const bool says = (what & 2U) != 0 && one.ledger.kept_bytes() < kKeptMax;
      says ? one.say(other) : one.hear(other);
    }
    if ((what & 4U) == 0) continue;
    one.resume(other);
    other.resume(one);
  }
  for (const std::size_t i : {0U, 1U}) {
    ends[i].resume(ends[1 - i]);
    while (!ends[i].coming.empty()) ends[i].hear(ends[1 - i]);
    CHECK(ends[i].next_heard == ends[1 - i].said());
    // Acknowledgments of this end are lost with the connection.
    ends[1 - i].coming.clear();
  }
}

void fuzz_message(std::string_view bytes) {
  bool is_broken = false;
  bool is_broken_in_pieces = false;
  const std::vector<Message> all =
      read_in_pieces(bytes, std::max<std::size_t>(bytes.size(), 1), is_broken);
  CHECK(read_in_pieces(bytes, 7, is_broken_in_pieces) == all);
  CHECK(is_broken == is_broken_in_pieces);
  check_exchange(all);
  for (const Message& message : all) {
    MessageReader reader;
    reader.add(encode(message));
    const auto again = reader.next();
    CHECK(again && *again == message);
    if (!message.step || message.step->tasks > kTasksTried) continue;
    const std::vector<NodeRoom> rooms{{.cpus = 4, .used = 1}, {.cpus = 2}, {.cpus = 1}};
    const StepDecision decision = place_step(*message.step, rooms);
    const auto* const placement = std::get_if<StepPlacement>(&decision);
    if (placement != nullptr) check_placement(*message.step, *placement, rooms);
  }
}

}  // namespace launcher
