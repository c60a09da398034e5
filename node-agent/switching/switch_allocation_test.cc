// Between the instant of a switch and its last write nothing may wait for another thread: no
// allocation, so no lock of an allocator that another thread holds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "node-agent/switching/switch_core.h"
#include "node-agent/testing/fake_switch_clock.h"

namespace {
thread_local std::size_t allocations_count = 0;
}  // namespace

// Counts allocations of the whole program. Not inlined, or the compiler takes new and free for a
// pair that does not belong together.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations_count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations_count;
  return std::malloc(size == 0 ? 1 : size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A cgroup that does at once what it is asked, without memory of its own.
class PlainFreezer final : public Freezer {
 public:
  IoResult request(FreezeRequest wanted) override {
    asked_ = wanted;
    return IoResult::kOk;
  }
  Observation observe() override {
    return {.result = IoResult::kOk, .frozen = asked_ == FreezeRequest::kFrozen};
  }
  AskedState asked() override { return {.result = IoResult::kOk, .request = asked_}; }
  std::optional<int> changes_fd() const override { return std::nullopt; }
  bool kill_works_while_frozen() const override { return true; }

 private:
  FreezeRequest asked_ = FreezeRequest::kThawed;
};

// Two hundred pods in three slots, and six boundaries. Everything that needs memory must have
// happened in obey() and prepare().
TEST(SwitchAllocation, ASwitchAndTheLooksAfterItAllocateNothing) {
  constexpr std::uint16_t kPods = 200;
  const base::Instant start{seconds{1'000'000}};
  testing::FakeSwitchClock clock{start + milliseconds{100}};
  ReportRing reports;
  SwitchCounters counters;
  SwitchCore core{clock, reports, counters};
  Assignment assignment;
  assignment.number = 1;
  timetable::Timetable table{.slice = seconds{1}, .pods_count = kPods, .cycle = {{}, {}, {}}};
  for (std::uint16_t i = 0; i < kPods; ++i) {
    table.cycle[i % 3].push_back(i);
    assignment.pods.push_back({.control = std::make_shared<PodControl>(
                                   PodIdentity{.uid = std::to_string(i)},
                                   std::make_shared<PlainFreezer>(), FoundAs::kRunning),
                               .index = i,
                               .rule = ControlRule::kTimetable});
  }
  assignment.table = std::make_shared<const timetable::Timetable>(std::move(table));
  ASSERT_GT(allocations_count, 0U);  // They are counted.
  core.obey(assignment);
  const std::size_t before = allocations_count;
  for (int turn = 1; turn <= 6; ++turn) {
    const base::Instant boundary = start + seconds{turn};
    // A boundary as the switcher's thread goes through it: awake before, prepared, the switch, and
    // a look when it is over.
    clock.advance_to(boundary - milliseconds{1});
    core.step();
    core.prepare(boundary);
    clock.advance_to(boundary);
    core.step();
    clock.advance(milliseconds{500});
    core.step();
  }
  EXPECT_EQ(allocations_count - before, 0U);
  EXPECT_EQ(counters.switches.load(), 7U);
}

}  // namespace
}  // namespace agent
