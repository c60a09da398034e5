// What srun and the launcher say to each other over a stream: a type, a length, and fields.
//
//   srun      Create, Input, InputEnd, Signal
//   launcher  Busy, Created, Refused, Output, Exited, Done
//
// Both run on one machine, so numbers are in its own byte order. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace launcher {

// The environment and the programs of a step; Linux takes 2 MiB of both for one program, and a step
// with --multi-prog has several.
inline constexpr std::size_t kMessageBytesMax = 64U << 20U;
inline constexpr std::size_t kChunkBytesMax = 64U << 10U;  // of Input and Output
inline constexpr std::uint32_t kTasksMax = 65'536;         // of a step on one node
inline constexpr std::uint32_t kAllTasks = 0xFFFFFFFFU;    // as the rank of Input

enum class Kind : std::uint32_t {
  kCreate = 1,
  kInput,
  kInputEnd,
  kSignal,
  kBusy,
  kCreated,
  kRefused,
  kOutput,
  kExited,
  kDone,
};

// A step, as srun asks for it.
struct StepRequest {
  std::string secret;  // of the job: who knows it may start tasks
  std::uint32_t tasks = 1;
  std::uint32_t cpus = 0;     // that it takes of the node's; 0: none, it overlaps with others
  bool is_immediate = false;  // refused instead of waiting for room
  std::string directory;
  std::vector<std::vector<std::string>> programs;  // one for all tasks, or one for each
  std::vector<std::string> environment;            // NAME=value, but for what is each task's own
  friend bool operator==(const StepRequest&, const StepRequest&) = default;
};

struct Message {
  Kind kind = Kind::kDone;
  std::uint32_t rank = 0;    // of Input, InputEnd, Output, Exited
  std::uint32_t number = 0;  // Signal: signal; Created: step; Output: 1 or 2; Exited: wait status
  std::string text{};        // Input, Output, Refused: bytes
  std::optional<StepRequest> step{};
  friend bool operator==(const Message&, const Message&) = default;
};

std::string encode(const Message& message);

// Takes a stream apart.
class MessageReader {
 public:
  void add(std::string_view bytes) { pending_.append(bytes); }
  // nullopt: not all of the next one has come. After a message that is not one, is_broken() is true
  // and no more come.
  std::optional<Message> next();
  bool is_broken() const { return is_broken_; }
  std::size_t pending_bytes() const { return pending_.size(); }

 private:
  std::string pending_;
  bool is_broken_ = false;
};

}  // namespace launcher
