// Board: what the page shows, as JSON texts by kind and name. Each remembers the version of its
// last change, so that a browser that has seen version v gets only what is newer, however many
// browsers there are.
//
// An entry may have a scope, such as "jobs/team-a": only readers whose sight has it get the entry.
//
// Thread-safe. Cost: the texts; an update costs a walk over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"

namespace dashboard {

// The scopes that a reader may see.
using Sight = std::set<std::string, std::less<>>;

class Board {
 public:
  struct Update {
    std::string json;
    std::uint64_t version = 0;  // what the reader has seen with it
  };

  // `on_change` is called after each change, without a lock; it must be quick.
  explicit Board(std::function<void()> on_change = {}) : on_change_{std::move(on_change)} {}

  // Called after each change from here on; for what is made after the board.
  // REQUIRES: no other thread uses the board yet.
  void set_on_change(std::function<void()> on_change) { on_change_ = std::move(on_change); }

  // `json` is the object's text. An equal text is not a change. An entry keeps the scope that it
  // had at first; "": every reader gets it.
  void set(const std::string& kind, const std::string& name, std::string json,
           const std::string& scope = "");
  // For an object that is not there: no change.
  void remove(const std::string& kind, const std::string& name);

  std::uint64_t version() const;
  // Returns what is newer than `seen`, as
  // {"now":µs,"full":bool,"set":{kind:{name:object}},"gone":{kind:[name]}}. "full": the reader
  // drops what it had. 0 = nothing seen. Null `sight`: all of it.
  Update since(std::uint64_t seen, base::Instant now, const Sight* sight = nullptr) const;
  // Returns the scopes of all entries.
  Sight scopes() const;

 private:
  // Removed names that readers may not have heard of. A reader that is behind all of them gets
  // everything.
  static constexpr std::size_t kRemovedMax = 10'000;

  struct Entry {
    std::string json;
    std::uint64_t version = 0;
    std::string scope;
  };
  struct Removed {
    std::string kind;
    std::string name;
    std::uint64_t version = 0;
    std::string scope;
  };

  std::function<void()> on_change_;
  mutable std::mutex mu_;  // guards all below
  std::uint64_t version_ = 0;
  std::map<std::string, std::map<std::string, Entry>> kinds_;
  std::map<std::string, std::size_t, std::less<>> scopes_;  // and how many entries have each
  std::deque<Removed> removed_;
  std::uint64_t forgotten_ = 0;  // the version of the last removal that is not in removed_
};

}  // namespace dashboard
