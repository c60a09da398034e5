// How the tasks of a step of `srun --mpi=pmix` find each other: joins what the kubegang-pmix of all
// nodes say, in the first pod. Pure: messages of nodes in, messages to nodes out.
//
// SOURCE: PMIx standard 4.1, chapters "Data Access and Sharing" and "Server-Specific Interfaces".
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/message.h"

namespace launcher {

// The most data that tasks may put into one fence, or that waits in all of them: fits a message.
inline constexpr std::size_t kPmixBytesMax = 48U << 20U;

class PmixExchange {
 public:
  struct Reply {
    std::uint32_t place = 0;
    PmixMessage message;
    friend bool operator==(const Reply&, const Reply&) = default;
  };
  struct End {
    std::uint32_t rank = 0;
    std::optional<std::int32_t> exit_code;  // none: the task has ended without a word
    friend bool operator==(const End&, const End&) = default;
  };

  // `places`: the place of each rank's node. REQUIRES: not empty.
  explicit PmixExchange(std::vector<std::uint32_t> places);

  // Takes what the node says; adds what is to be sent. False: it breaks a rule, and changes
  // nothing.
  bool add(std::uint32_t place, const PmixMessage& message, std::vector<Reply>& replies);
  // Removes a node that is gone: no fence waits for its tasks any longer.
  void lose(std::uint32_t place, std::vector<Reply>& replies);
  // Some task has asked for the end of the step, or is gone without having left it.
  const std::optional<End>& end() const { return end_; }

 private:
  using Ranks = std::vector<std::uint32_t>;
  struct Part {
    std::uint32_t id = 0;
    std::string data;
  };
  // Parts that have come to the fences of these ranks: by place, the next one in order first.
  using Parts = std::map<std::uint32_t, std::deque<Part>>;
  using Fences = std::map<Ranks, Parts>;
  struct Question {
    std::uint32_t from = 0;  // place
    std::uint32_t id = 0;    // there
    std::uint32_t to = 0;    // place
  };

  bool take(std::uint32_t place, const PmixMessage& message, std::vector<Reply>& replies);
  std::set<std::uint32_t> places_of(const Ranks& ranks) const;
  bool enter(std::uint32_t place, const PmixMessage& message, std::vector<Reply>& replies);
  void complete(Fences::iterator fence, std::vector<Reply>& replies);
  void refuse(Fences::iterator fence, std::vector<Reply>& replies);
  bool ask(std::uint32_t place, const PmixMessage& message, std::vector<Reply>& replies);
  bool answer(std::uint32_t place, const PmixMessage& message, std::vector<Reply>& replies);
  bool finish(std::uint32_t place, const PmixMessage& message);
  void forget_lost(std::vector<Reply>& replies) const;

  const std::vector<std::uint32_t> places_;
  const std::set<std::uint32_t> all_;  // places
  std::set<std::uint32_t> lost_;
  Fences fences_;
  std::size_t waiting_bytes_ = 0;
  std::map<std::uint32_t, Question> questions_;  // by the id that the asked node knows
  std::uint32_t next_question_ = 0;
  std::optional<End> end_;
};

}  // namespace launcher
