#include "node-agent/survival/shared_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/check.h"
#include "linux/cgroup_file.h"

namespace agent {
namespace {

constexpr std::uint64_t kMagic = 0x6b67'6167'656e'7431;  // "kgagent1"
constexpr std::uint8_t kNoState = 0xff;
constexpr int kReadsMax = 100;

}  // namespace

// Fixed, since two versions of the program may meet in it while one replaces the other.
struct SharedState::Layout {
  // All fields are atomic words: the reader may see them half changed and finds out by `version`.
  struct Pod {
    std::array<std::atomic<std::uint64_t>, kSharedUidBytesMax / 8> uid;
    std::atomic<std::int64_t> last_switch_micros;
    std::atomic<std::uint8_t> standing;
    std::atomic<std::uint8_t> state;
  };
  std::atomic<std::uint64_t> magic;
  std::atomic<std::uint64_t> keeper_beat;
  std::atomic<std::uint64_t> switcher_beat;
  std::atomic<std::uint64_t> version;  // odd while it is being changed
  std::atomic<std::uint64_t> pods_count;
  std::array<Pod, kSharedPodsMax> pods;
};

base::Result<SharedState> SharedState::create(const std::string& path) {
  const os::FileDescriptor file{
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
  if (!file.is_open()) return os::error_from_errno("shared state " + path, errno);
  if (::ftruncate(file.get(), sizeof(Layout)) != 0) {
    return os::error_from_errno("shared state " + path, errno);
  }
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return os::error_from_errno("shared state " + path, errno);
  auto* layout = static_cast<Layout*>(memory);  // a file of zeros is a valid Layout
  layout->magic.store(kMagic);
  return SharedState{layout};
}

base::Result<SharedState> SharedState::open(const std::string& path) {
  const os::FileDescriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
  if (!file.is_open()) return os::error_from_errno("shared state " + path, errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0 || about.st_size < static_cast<off_t>(sizeof(Layout))) {
    return base::invalid_argument("shared state " + path + ": too short");
  }
  void* memory = ::mmap(nullptr, sizeof(Layout), PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return os::error_from_errno("shared state " + path, errno);
  SharedState state{static_cast<Layout*>(memory)};
  if (state.layout_->magic.load() != kMagic) {
    return base::invalid_argument("shared state " + path + ": of another program or version");
  }
  return state;
}

SharedState::SharedState(SharedState&& other) noexcept
    : layout_{std::exchange(other.layout_, nullptr)} {}

SharedState::~SharedState() {
  if (layout_ != nullptr) ::munmap(layout_, sizeof(Layout));
}

std::atomic<std::uint64_t>& SharedState::keeper_beat() {
  return layout_->keeper_beat;
}
std::atomic<std::uint64_t>& SharedState::switcher_beat() {
  return layout_->switcher_beat;
}

void SharedState::show(const std::vector<PodView>& pods) {
  const std::size_t count = std::min(pods.size(), kSharedPodsMax);
  layout_->version.fetch_add(1);
  for (std::size_t i = 0; i < count; ++i) {
    const PodView& view = pods[i];
    Layout::Pod& pod = layout_->pods[i];
    std::array<char, kSharedUidBytesMax> uid{};
    view.uid.copy(uid.data(), uid.size() - 1);
    for (std::size_t word = 0; word < pod.uid.size(); ++word) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, uid.data() + word * sizeof bytes, sizeof bytes);
      pod.uid[word].store(bytes, std::memory_order_relaxed);
    }
    pod.standing.store(static_cast<std::uint8_t>(view.standing), std::memory_order_relaxed);
    pod.state.store(view.state ? static_cast<std::uint8_t>(*view.state) : kNoState,
                    std::memory_order_relaxed);
    pod.last_switch_micros.store(view.last_switch ? base::micros_since_epoch(*view.last_switch) : 0,
                                 std::memory_order_relaxed);
  }
  layout_->pods_count.store(count);
  layout_->version.fetch_add(1);
}

std::optional<std::vector<SharedState::Shown>> SharedState::read() const {
  for (int tries = 0; tries < kReadsMax; ++tries) {
    const std::uint64_t version = layout_->version.load();
    std::vector<Shown> shown(std::min<std::size_t>(layout_->pods_count.load(), kSharedPodsMax));
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const Layout::Pod& pod = layout_->pods[i];
      std::array<char, kSharedUidBytesMax> uid{};
      for (std::size_t word = 0; word < pod.uid.size(); ++word) {
        const std::uint64_t bytes = pod.uid[word].load(std::memory_order_relaxed);
        std::memcpy(uid.data() + word * sizeof bytes, &bytes, sizeof bytes);
      }
      uid.back() = '\0';
      shown[i].uid = uid.data();
      const std::uint8_t standing = pod.standing.load(std::memory_order_relaxed);
      if (standing <= static_cast<std::uint8_t>(PodStanding::kRefused)) {
        shown[i].standing = static_cast<PodStanding>(standing);
      }
      const std::uint8_t state = pod.state.load(std::memory_order_relaxed);
      if (state <= static_cast<std::uint8_t>(FreezeState::kGone)) {
        shown[i].state = static_cast<FreezeState>(state);
      }
      const std::int64_t micros = pod.last_switch_micros.load(std::memory_order_relaxed);
      if (micros != 0) shown[i].last_switch = base::instant_from_micros(micros);
    }
    if (version % 2 == 0 && layout_->version.load() == version) return shown;
  }
  return std::nullopt;
}

}  // namespace agent
