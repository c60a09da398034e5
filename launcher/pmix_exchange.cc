#include "launcher/pmix_exchange.h"

#include <algorithm>
#include <utility>

namespace launcher {
namespace {

// Bytes that a part takes beside its data.
constexpr std::size_t kPartBytes = 64;

}  // namespace

PmixExchange::PmixExchange(std::vector<std::uint32_t> places)
    : places_{std::move(places)}, all_{places_.begin(), places_.end()} {}

bool PmixExchange::add(std::uint32_t place, const PmixMessage& message,
                       std::vector<Reply>& replies) {
  const bool is_good = take(place, message, replies);
  forget_lost(replies);
  return is_good;
}

void PmixExchange::lose(std::uint32_t place, std::vector<Reply>& replies) {
  lost_.insert(place);
  for (auto fence = fences_.begin(); fence != fences_.end();) {
    const auto now = fence++;
    if (places_of(now->first).contains(place)) refuse(now, replies);
  }
  // The launcher's own questions are kept: their answers may be on the way.
  std::erase_if(questions_, [&](const auto& entry) {
    const Question& question = entry.second;
    if (question.to != place) return false;
    replies.push_back({question.from,
                       {.kind = PmixKind::kAnswer, .id = question.id, .status = kPmixFailed}});
    return true;
  });
  forget_lost(replies);
}

void PmixExchange::forget_lost(std::vector<Reply>& replies) const {
  std::erase_if(replies, [&](const Reply& reply) { return lost_.contains(reply.place); });
}

bool PmixExchange::take(std::uint32_t place, const PmixMessage& message,
                        std::vector<Reply>& replies) {
  switch (message.kind) {
    case PmixKind::kFence:
      return enter(place, message, replies);
    case PmixKind::kAsk:
      return ask(place, message, replies);
    case PmixKind::kAnswer:
      return answer(place, message, replies);
    case PmixKind::kAbort:
    case PmixKind::kLeft:
      return finish(place, message);
    case PmixKind::kEnvironment:
    case PmixKind::kFenced:
      return false;
  }
  return false;
}

std::set<std::uint32_t> PmixExchange::places_of(const Ranks& ranks) const {
  if (ranks.empty()) return all_;
  std::set<std::uint32_t> places;
  for (const std::uint32_t rank : ranks) places.insert(places_[rank]);
  return places;
}

bool PmixExchange::enter(std::uint32_t place, const PmixMessage& message,
                         std::vector<Reply>& replies) {
  if (!message.ranks.empty() && message.ranks.back() >= places_.size()) return false;
  const std::set<std::uint32_t> places = places_of(message.ranks);
  if (!places.contains(place)) return false;
  const auto fence = fences_.try_emplace(message.ranks).first;
  fence->second[place].push_back({message.id, message.data});
  waiting_bytes_ += message.data.size() + kPartBytes;
  const bool has_lost = std::ranges::any_of(places, [&](auto p) { return lost_.contains(p); });
  if (has_lost || waiting_bytes_ > kPmixBytesMax) {
    refuse(fence, replies);
  } else if (fence->second.size() == places.size()) {
    complete(fence, replies);
  }
  return true;
}

// All have come: each gets the data of all, in whatever order.
void PmixExchange::complete(Fences::iterator fence, std::vector<Reply>& replies) {
  Parts& parts = fence->second;
  std::string all;
  for (const auto& [place, waiting] : parts) all += waiting.front().data;
  waiting_bytes_ -= all.size() + parts.size() * kPartBytes;
  for (auto& [place, waiting] : parts) {
    replies.push_back({place, {.kind = PmixKind::kFenced, .id = waiting.front().id, .data = all}});
    waiting.pop_front();
  }
  std::erase_if(parts, [](const auto& part) { return part.second.empty(); });
  if (parts.empty()) fences_.erase(fence);
}

void PmixExchange::refuse(Fences::iterator fence, std::vector<Reply>& replies) {
  for (const auto& [place, waiting] : fence->second) {
    for (const Part& part : waiting) {
      waiting_bytes_ -= part.data.size() + kPartBytes;
      replies.push_back({place, {.kind = PmixKind::kFenced, .id = part.id, .status = kPmixFailed}});
    }
  }
  fences_.erase(fence);
}

// SOURCE: PMIx standard 4.1, pmix_server_dmodex_req_fn_t.
bool PmixExchange::ask(std::uint32_t place, const PmixMessage& message,
                       std::vector<Reply>& replies) {
  if (message.rank >= places_.size()) return false;
  const std::uint32_t to = places_[message.rank];
  // A node asks once for each rank until it has the answer; more would be memory without a bound.
  const std::size_t limit = places_.size() * all_.size();
  if (lost_.contains(to) || questions_.size() >= limit) {
    replies.push_back(
        {place, {.kind = PmixKind::kAnswer, .id = message.id, .status = kPmixFailed}});
    return true;
  }
  const std::uint32_t id = next_question_++;
  questions_[id] = {.from = place, .id = message.id, .to = to};
  replies.push_back({to, {.kind = PmixKind::kAsk, .id = id, .rank = message.rank}});
  return true;
}

bool PmixExchange::answer(std::uint32_t place, const PmixMessage& message,
                          std::vector<Reply>& replies) {
  const auto question = questions_.find(message.id);
  if (question == questions_.end() || question->second.to != place) return false;
  PmixMessage passed{.kind = PmixKind::kAnswer,
                     .id = question->second.id,
                     .status = message.status,
                     .data = message.data};
  replies.push_back({question->second.from, std::move(passed)});
  questions_.erase(question);
  return true;
}

// The first end counts.
bool PmixExchange::finish(std::uint32_t place, const PmixMessage& message) {
  if (message.rank >= places_.size() || places_[message.rank] != place) return false;
  if (end_) return true;
  end_ = End{.rank = message.rank};
  if (message.kind == PmixKind::kAbort) end_->exit_code = message.status;
  return true;
}

}  // namespace launcher
