#include "e2e/probe/stamp_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace probe {
namespace {

using base::Code;
using base::Error;

// The text at the head of the file, in little endian as both supported machines are: a name and the
// version 1.
constexpr std::uint64_t kMagic = 0x31504d5453474bULL;  // "KGSTMP1"

// One run. Atomic, because another process reads it while it is written.
struct Slot {
  std::atomic<std::int64_t> begin;
  std::atomic<std::int64_t> end;
  std::atomic<std::int64_t> progress;
  std::int64_t unused;
};
// Memory that two processes share cannot hold a lock of one of them.
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(sizeof(Slot) == 32);

// A file that is missing is told apart: a probe that has not begun yet has none.
Error system_error(const std::string& what) {
  const int error_number = errno;
  return {error_number == ENOENT ? Code::kNotFound : Code::kInternal,
          what + ": " + std::generic_category().message(error_number)};
}

}  // namespace

// The file as it is mapped. The array of slots is a ring: run number n is in slot n % kRunsMax. The
// count never goes back, so a reader can tell how many runs were overwritten.
struct StampWriter::Memory {
  std::atomic<std::uint64_t> magic;
  std::atomic<std::int64_t> runs_count;  // ever begun; the current one is number runs_count - 1
  std::array<std::int64_t, 2> unused;
  std::array<Slot, kRunsMax> slots;
};

base::Result<StampWriter> StampWriter::create(const std::string& path) {
  // A new inode: a reader that has mapped the file of an earlier probe keeps a whole picture of it.
  ::unlink(path.c_str());
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return system_error("create " + path);
  // The file is sparse and reads as zeros: no runs yet.
  if (::ftruncate(fd, sizeof(Memory)) != 0) {
    Error error = system_error("size " + path);
    ::close(fd);
    return error;
  }
  void* address = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (address == MAP_FAILED) return system_error("map " + path);
  auto* memory = static_cast<Memory*>(address);
  // Last: a reader that maps the file before that sees no stamp file, and tries again later.
  memory->magic.store(kMagic);
  return StampWriter{memory};
}

StampWriter::StampWriter(StampWriter&& other) noexcept
    : memory_{std::exchange(other.memory_, nullptr)}, last_{other.last_} {}

StampWriter::~StampWriter() {
  if (memory_ != nullptr) ::munmap(memory_, sizeof(Memory));
}

// A run goes on while the process looks often enough and was not stopped in between. `last_` never
// goes back, so neither does a stamp when the wall clock is set back.
void StampWriter::stamp(base::Instant t, bool was_stopped) {
  const std::int64_t count = memory_->runs_count.load(std::memory_order_relaxed);
  // Either sign ends a run: a stop that was noticed, even if it was short, or a break that is too
  // long.
  const bool goes_on = count > 0 && !was_stopped && t - last_ <= kRunGapMax;
  last_ = std::max(last_, t);
  // The common case, a single store: it happens several times in each millisecond.
  if (goes_on) {
    memory_->slots[static_cast<std::size_t>(count - 1) % kRunsMax].end.store(
        base::micros_since_epoch(last_), std::memory_order_release);
    return;
  }
  Slot& slot = memory_->slots[static_cast<std::size_t>(count) % kRunsMax];
  slot.begin.store(base::micros_since_epoch(last_), std::memory_order_relaxed);
  slot.end.store(base::micros_since_epoch(last_), std::memory_order_relaxed);
  slot.progress.store(0, std::memory_order_relaxed);
  // Last, so that a reader that sees the new count also sees the slot's begin and end.
  memory_->runs_count.store(count + 1, std::memory_order_release);
}

// REQUIRES: a run has begun, so that the count is at least 1.
void StampWriter::count_progress() {
  const std::int64_t count = memory_->runs_count.load(std::memory_order_relaxed);
  memory_->slots[static_cast<std::size_t>(count - 1) % kRunsMax].progress.fetch_add(
      1, std::memory_order_relaxed);
}

// Maps the file like the writer and copies the runs that are surely complete.
base::Result<Stamps> read_stamps(const std::string& path) {
  using Memory = StampWriter::Memory;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error("open " + path);
  struct stat info {};
  // A file that is still being made has another size.
  const bool has_size = ::fstat(fd, &info) == 0 && info.st_size == sizeof(Memory);
  void* address =
      has_size ? ::mmap(nullptr, sizeof(Memory), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  ::close(fd);
  if (address == MAP_FAILED) return base::invalid_argument(path + ": not a stamp file");
  const auto* memory = static_cast<const Memory*>(address);
  Stamps out;
  const bool valid = memory->magic.load() == kMagic;
  const std::int64_t count = memory->runs_count.load(std::memory_order_acquire);
  // One slot is left out: the writer fills it with the next run before it raises the count.
  const std::int64_t first = std::max<std::int64_t>(0, count - (std::int64_t{kRunsMax} - 1));
  for (std::int64_t number = first; valid && number < count; ++number) {
    const Slot& slot = memory->slots[static_cast<std::size_t>(number) % kRunsMax];
    // The last run may be growing. Its end is read once, so the copy is a run as it was at some
    // moment.
    const std::int64_t end = slot.end.load(std::memory_order_acquire);
    out.runs.push_back({base::instant_from_micros(slot.begin.load(std::memory_order_relaxed)),
                        base::instant_from_micros(end),
                        slot.progress.load(std::memory_order_relaxed)});
  }
  ::munmap(address, sizeof(Memory));
  // Checked after the mapping was given back.
  if (!valid) return base::invalid_argument(path + ": not a stamp file");
  out.runs_lost = first;
  return out;
}

}  // namespace probe
