#include "dashboard/board.h"

#include <nlohmann/json.hpp>
#include <set>

namespace dashboard {
namespace {

// Writes a name as a JSON string: names come from objects, and anything may be in them.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

void Board::set(const std::string& kind, const std::string& name, std::string json,
                const std::string& scope) {
  {
    const std::lock_guard lock{mu_};
    Entry& entry = kinds_[kind][name];
    if (entry.version != 0 && entry.json == json) return;
    if (entry.version == 0) {
      entry.scope = scope;
      if (!scope.empty()) scopes_[scope]++;
    }
    entry.json = std::move(json);
    entry.version = ++version_;
  }
  if (on_change_) on_change_();
}

void Board::remove(const std::string& kind, const std::string& name) {
  {
    const std::lock_guard lock{mu_};
    const auto entry = kinds_[kind].extract(name);
    if (entry.empty()) return;
    const std::string& scope = entry.mapped().scope;
    if (!scope.empty() && --scopes_[scope] == 0) scopes_.erase(scope);
    removed_.push_back({.kind = kind, .name = name, .version = ++version_, .scope = scope});
    if (removed_.size() > kRemovedMax) {
      forgotten_ = removed_.front().version;
      removed_.pop_front();
    }
  }
  if (on_change_) on_change_();
}

std::uint64_t Board::version() const {
  const std::lock_guard lock{mu_};
  return version_;
}

Sight Board::scopes() const {
  const std::lock_guard lock{mu_};
  Sight all;
  for (const auto& [scope, count] : scopes_) all.insert(scope);
  return all;
}

Board::Update Board::since(std::uint64_t seen, base::Instant now, const Sight* sight) const {
  const auto is_seen = [&](const std::string& scope) {
    return sight == nullptr || scope.empty() || sight->contains(scope);
  };
  const std::lock_guard lock{mu_};
  const bool full = seen == 0 || seen < forgotten_;
  Update update{.json = "{\"now\":" + std::to_string(base::micros_since_epoch(now)) +
                        ",\"full\":" + (full ? "true" : "false") + ",\"set\":{",
                .version = version_};
  bool first_kind = true;
  for (const auto& [kind, entries] : kinds_) {
    std::string inside;
    for (const auto& [name, entry] : entries) {
      if ((!full && entry.version <= seen) || !is_seen(entry.scope)) continue;
      inside += (inside.empty() ? "" : ",") + quoted(name) + ":" + entry.json;
    }
    if (inside.empty()) continue;
    update.json += (first_kind ? "" : ",") + quoted(kind) + ":{" + inside + "}";
    first_kind = false;
  }
  update.json += "},\"gone\":{";
  if (!full) {
    std::map<std::string, std::set<std::string>> gone;
    for (const Removed& removed : removed_) {
      const auto kind = kinds_.find(removed.kind);
      const bool is_back = kind != kinds_.end() && kind->second.contains(removed.name);
      if (removed.version > seen && !is_back && is_seen(removed.scope))
        gone[removed.kind].insert(removed.name);
    }
    std::string inside;
    for (const auto& [kind, names] : gone) {
      inside += (inside.empty() ? "" : ",") + quoted(kind) + ":[";
      bool first = true;
      for (const std::string& name : names) {
        inside += (first ? "" : ",") + quoted(name);
        first = false;
      }
      inside += "]";
    }
    update.json += inside;
  }
  update.json += "}}";
  return update;
}

}  // namespace dashboard
