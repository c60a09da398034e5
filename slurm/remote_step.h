// Messages of a program outside of a job to `kubegang-launcher join` in one of its pods, over its
// standard input: how srun is called there, then input and signals; and what it hears on join's
// standard output. A type, a length of four bytes (little-endian), bytes. Pure.
//
// join reads always, so that no signal stands behind unread input; it says Hold when it
// has enough input. The first message says the version of all this: join begins nothing without its
// own, and says on its standard error, where every version reads text, why.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace slurm {

inline constexpr std::size_t kRemoteBytesMax = 1U << 20U;  // of one
// Counts on when one end cannot understand the other as it was.
inline constexpr std::string_view kRemoteVersion = "2";

enum class RemoteKind : char {
  kVersion = 'V',    // the first
  kArgument = 'A',   // of srun, in order
  kVariable = 'E',   // NAME=VALUE
  kDirectory = 'D',  // where srun is called
  kRun = 'R',        // that was all: begin
  kInput = 'I',
  kInputEnd = 'Z',
  kSignal = 'S',    // its number
  kTerminal = 'T',  // before kRun: there is one, "24 80"; later: its new size
  kNothing = 'N',   // the connection is in use: ones that say nothing for hours are cut
  // Messages of join.
  kOutput = 'O',
  kErrorOutput = 'F',
  kHold = 'H',  // "1": no more kInput; "0": go on
  kEnd = 'X',   // the last: srun's exit code
};

struct RemoteMessage {
  RemoteKind kind = RemoteKind::kRun;
  std::string text{};
  friend bool operator==(const RemoteMessage&, const RemoteMessage&) = default;
};

std::string encode(const RemoteMessage& message);

// Takes a stream apart.
class RemoteReader {
 public:
  void add(std::string_view bytes) { pending_.append(bytes); }
  // nullopt: not all of the next one has come. After bytes that are not a message is_broken() is
  // true and no more come.
  std::optional<RemoteMessage> next();
  bool is_broken() const { return is_broken_; }

 private:
  std::string pending_;
  bool is_broken_ = false;
};

}  // namespace slurm
