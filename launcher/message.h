// The messages between srun, the launcher of the first pod and those of the other pods, over a
// stream: a type, a length, and fields.
//
//   srun              Create, Input, InputEnd, Signal, Resize
//   from outside      SignalJob, Release, which are answered by Done or Refused
//   first launcher    to srun: Busy, Created, Refused, Hold, Output, Exited, Lost, Aborted, Done
//                     to another launcher: Run, Input, InputEnd, Signal, Resize, Pmi, Pmix
//   other launcher    Hello, then, once it has been asked to run tasks, Hold, Output, Exited, Pmi
//                     and Pmix; or Relay, then what a srun on its node says and hears; or Resume
//   both launchers    Ack. After a connection was lost, Resume on the next one, which the first
//                     launcher answers with Resume or Refused; then what has not come
//   any launcher      to its kubegang-pmix: Run, Pmix; which says Pmix
//
// Input waits where it comes from: a side that has too much of it that a task has not read says
// Hold, and everything else is read on, so a signal never waits behind input that is not read.
//
// Numbers are little-endian, whatever the machine is. Pure.
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
inline constexpr std::uint32_t kTasksMax = 65'536;         // of a step
inline constexpr std::uint32_t kNodesMax = 65'536;         // of a job
inline constexpr std::uint32_t kAllTasks = 0xFFFFFFFFU;    // as the rank of Input
// Used as the rank of SignalJob, which is the number of a step otherwise.
inline constexpr std::uint32_t kAllSteps = 0xFFFFFFFFU;
inline constexpr std::uint32_t kScriptAlone = 0xFFFFFFFEU;  // its shell
inline constexpr std::uint32_t kWholeJob = 0xFFFFFFFDU;  // all steps, and all that the script runs

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
  kHello,
  kRun,
  kLost,
  kPmi,
  kSignalJob,
  kRelease,
  kRelay,
  kResize,
  kHold,
  kPmix,
  kAborted,
  kAck,
  kResume,
  kRequeue,
};

// srun --mpi: who serves the tasks. kPmi2: the first launcher, PMI-1 and PMI-2; kPmix: a
// kubegang-pmix on each node.
enum class Mpi : std::uint32_t { kNone, kPmi2, kPmix };
inline constexpr std::uint32_t kMpisCount = 3;

enum class Distribution : std::uint32_t { kDefault, kBlock, kCyclic, kPlane, kArbitrary };
inline constexpr std::uint32_t kDistributionsCount = 5;

// -m pack and nopack: nodes as full as they go, without -N as few of them as hold the tasks; or
// evenly, which is the default.
enum class Packing : std::uint32_t { kDefault, kFewest, kPack, kNoPack };
inline constexpr std::uint32_t kPackingsCount = 4;

// The size of a terminal; no rows: there is none.
struct Window {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  friend bool operator==(const Window&, const Window&) = default;
};

inline std::uint32_t pack_window(const Window& window) {
  return window.rows << 16U | (window.columns & 0xFFFFU);
}
inline Window unpack_window(std::uint32_t number) {
  return {.rows = number >> 16U, .columns = number & 0xFFFFU};
}

// A step, as srun asks for it.
struct StepRequest {
  std::string secret;  // of the pod: who knows it may start tasks
  std::uint32_t tasks = 1;
  std::uint32_t nodes = 1;
  std::uint32_t cpus_per_task = 1;
  std::uint32_t tasks_per_node = 0;     // 0: whatever comes out
  std::uint32_t relative = 0;           // index of the first node that it may be on
  std::vector<std::uint32_t> required;  // indexes of nodes that it must be on
  std::vector<std::uint32_t> excluded;  // and of those that it must not be on
  Distribution distribution = Distribution::kDefault;
  std::uint32_t plane = 1;              // tasks in a row, for kPlane
  std::vector<std::uint32_t> arranged;  // the node of each rank, for kArbitrary
  std::string distribution_within;      // of -m, behind the nodes: ":cyclic:block"; only for tasks
  Packing packing = Packing::kDefault;
  bool is_exact = false;      // takes what its tasks need, not all of its nodes
  bool overlaps = false;      // takes nothing
  bool overcommits = false;   // may have more tasks than CPUs
  bool is_immediate = false;  // refused instead of waiting for room
  Mpi mpi = Mpi::kNone;
  bool is_unbuffered = false;  // -u: the standard output of its tasks is a terminal
  Window window{};             // --pty: of the terminal that task 0 has
  std::string directory;
  std::vector<std::vector<std::string>> programs;  // one for all tasks, or one for each
  std::vector<std::string> environment;            // NAME=value, but for what is each task's own
  std::string name;                                // srun -J; "" = that of its program
  friend bool operator==(const StepRequest&, const StepRequest&) = default;
};

// All of the step that the tasks of PMIx hear about.
struct PmixJob {
  std::string name;                   // PMIx's namespace
  std::vector<std::string> nodes;     // their names, by place
  std::vector<std::uint32_t> places;  // by rank
  std::uint32_t place = 0;            // of this node
  friend bool operator==(const PmixJob&, const PmixJob&) = default;
};

// The tasks of a step on one node.
struct TaskSet {
  std::vector<std::uint32_t> ranks;  // of the step, ascending
  Mpi mpi = Mpi::kNone;
  PmixJob pmix{};  // of kPmix
  bool is_unbuffered = false;
  Window window{};  // of the terminal of task 0
  std::string directory;
  std::vector<std::vector<std::string>> programs;  // one for all tasks, or one for each of `ranks`
  std::vector<std::string> environment;            // NAME=value, but for what is each task's own
  friend bool operator==(const TaskSet&, const TaskSet&) = default;
};

// The places of the tasks of a step.
struct StepLayout {
  std::vector<std::uint32_t> nodes;   // indexes of nodes of the job
  std::vector<std::uint32_t> places;  // by rank: index into `nodes`
  friend bool operator==(const StepLayout&, const StepLayout&) = default;
};

// Between kubegang-pmix and the first launcher. The asking side gives an id, which comes back with
// the answer.
enum class PmixKind : std::uint32_t {
  kEnvironment = 1,  // a task may start, with these `words` as variables; stays on the node
  kFence,            // all tasks of the node among `ranks` have come, with `data`
  kFenced,           // all of `ranks` have, and this is the data of all
  kAsk,              // for the data of the task `rank`
  kAnswer,
  kAbort,  // the task `rank` asks for the end of the step
  kLeft,   // it has ended without a word
};
inline constexpr std::uint32_t kPmixKindsEnd = 8;
// PMIX_ERROR of <pmix_common.h>, as a status.
inline constexpr std::int32_t kPmixFailed = -1;

struct PmixMessage {
  PmixKind kind = PmixKind::kEnvironment;
  std::uint32_t id = 0;
  std::uint32_t rank = 0;
  std::int32_t status = 0;           // PMIx's: 0 is success, others are negative; Abort: exit code
  std::vector<std::uint32_t> ranks;  // ascending; none: all of the step
  std::vector<std::string> words;
  std::string data;
  friend bool operator==(const PmixMessage&, const PmixMessage&) = default;
};

// The end of a task.
struct TaskEnd {
  std::uint32_t rank = 0;
  std::uint32_t wait_status = 0;
  std::string used{};  // usage.h; "": not known
  friend bool operator==(const TaskEnd&, const TaskEnd&) = default;
};

struct Message {
  Kind kind = Kind::kDone;
  std::uint32_t rank = 0;    // Input, InputEnd, Output, Pmi, Aborted; SignalJob: target;
                             // Hello, Relay, Resume: which connection of that launcher
  std::uint32_t number = 0;  // Signal, SignalJob: signal; Created: step; Output: 1 or 2;
                             // Hello, Lost: index of the node; Release: exit code;
                             // Ack, Resume: how many messages have come
                             // Resize: rows * 65,536 + columns; Hold: 1 = no more Input, 0 = go on;
                             // Aborted: exit code of the step
  std::string text{};        // Input, Output, Refused, Pmi: bytes. Pmi to a task without any: the
                             // end of its connection. SignalJob, Release: the secret of the pod.
                             // Hello, Relay, Resume: what names this run of the launcher
  std::optional<StepRequest> step{};   // of Create
  std::optional<TaskSet> tasks{};      // of Run
  std::optional<StepLayout> layout{};  // of Created
  std::optional<PmixMessage> pmix{};   // of Pmix
  std::vector<TaskEnd> ends{};         // of Exited: at least one, by ascending ranks
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
