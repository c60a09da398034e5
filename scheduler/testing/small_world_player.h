// Plays a small world beside a model that is written to be understood: jobs are submitted one by
// one, slots end, one of the jobs ends in the middle, and slots end again. After every event the
// scheduler is where the model is.
//
// With told timing a partition is turned as a whole, as in Slurm, and the player says when a pass
// is made and a slice ends. With the scheduler's own timing, which is what runs in production,
// passes are made as soon as they are due, ticks are on the grid of slots, and jobs that are in no
// conflict with each other are turned apart.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/testing/cluster_driver.h"

namespace sched::testing {

// The jobs that are turned together: with told timing all, with own timing those in conflict.
enum class Turned { kAsOne, kByConflict };

class SmallWorldPlayer {
 public:
  virtual ~SmallWorldPlayer() = default;

  // Returns what differs; empty if nothing does. Jobs 1 to jobs_count are submitted, and the one at
  // index `ends` ends.
  std::string play(std::size_t jobs_count, std::size_t ends) {
    for (std::size_t i = 0; i < jobs_count; ++i) {
      submit(static_cast<int>(i) + 1, i);
      pass();
      if (auto found = compare("after job " + std::to_string(i + 1)); !found.empty()) return found;
    }
    if (std::string found = ticks(4); !found.empty()) return found;
    const int ended = static_cast<int>(ends) + 1;
    if (driver_.view(ended).allocation != nullptr) {
      model_end(ended);
      tell(JobGone{JobId{ended}});
      if (told()) {  // otherwise a pass is due in the same instant
        if (std::string found = compare("after the end"); !found.empty()) return found;
      }
    }
    pass();
    if (std::string found = compare("after the last pass"); !found.empty()) return found;
    return ticks(4);
  }

 protected:
  SmallWorldPlayer(Turned turned, const Configuration& configuration,
                   const std::vector<NodeSpec>& nodes)
      : turned_{turned},
        driver_{configuration, nodes, told() ? make_replay() : Scheduler{Options{}}} {}

  // Tells the model and the scheduler of the job at that index of the world.
  virtual void submit(int id, std::size_t index) = 0;
  // Makes the model's passes that are due: one, with told timing.
  virtual void model_pass() = 0;
  virtual void model_tick() = 0;
  virtual void model_end(int id) = 0;
  // Returns what differs about the jobs; empty if nothing does.
  virtual std::string differs() const = 0;

  bool told() const { return turned_ == Turned::kAsOne; }
  void tell(const Event& event) {
    driver_.step(at(static_cast<double>(++time_)), event);
    for (const Decision& decision : driver_.take_log()) {
      const auto* waits = std::get_if<Waits>(&decision);
      if (waits != nullptr) last_word_ = "; job " + to_string(waits->job) + ": " + waits->message;
    }
  }
  const Driver& driver() const { return driver_; }

 private:
  void pass() {
    model_pass();
    if (told()) {
      tell(Pass{});
    } else {
      driver_.run_until(driver_.now());
    }
  }
  std::string ticks(int count) {
    for (int i = 1; i <= count; ++i) {
      model_tick();
      if (told()) {
        tell(SliceEnd{});
      } else {
        model_pass();  // a tick may end a job, and then a pass is due
        time_ = (time_ / kSlice + 1) * kSlice;
        driver_.run_until(at(time_));
      }
      if (std::string found = compare("tick " + std::to_string(i)); !found.empty()) return found;
    }
    return {};
  }
  std::string compare(const std::string& when) const {
    const std::string found = differs();
    return found.empty() ? driver_.scheduler().check_invariants()
                         : when + ": " + found + last_word_;
  }

  static constexpr int kSlice = 30;

  const Turned turned_;
  Driver driver_;
  int time_ = 0;
  std::string last_word_;  // why a job waits, for a failure
};

// Plays all sequences of `jobs_count` jobs, each of one of `kinds` kinds, with each of them as the
// one that ends: Player{world, turned}. World has `jobs` and `ends`, and to_text. Returns how many.
template <class Player, class World>
std::int64_t play_all(World& world, std::size_t jobs_count, std::size_t kinds, Turned turned) {
  if (world.jobs.size() < jobs_count) {
    std::int64_t played = 0;
    for (std::size_t kind = 0; kind < kinds && !::testing::Test::HasFailure(); ++kind) {
      world.jobs.push_back(kind);
      played += play_all<Player>(world, jobs_count, kinds, turned);
      world.jobs.pop_back();
    }
    return played;
  }
  for (world.ends = 0; world.ends < jobs_count; ++world.ends) {
    const std::string difference = Player{world, turned}.play(jobs_count, world.ends);
    EXPECT_EQ(difference, "") << to_text(world);
    if (!difference.empty()) break;
  }
  return static_cast<std::int64_t>(jobs_count);
}

}  // namespace sched::testing
