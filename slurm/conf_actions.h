// Parts that the readers of slurm.conf's keys share: tables of keys with one action each, and the
// actions that many keys have in common.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "scheduler/model/config.h"
#include "slurm/quantities.h"
#include "slurm/text.h"

namespace slurm {

// One key of a line that is read into a T.
template <typename T>
struct ConfKey {
  std::string_view name;
  base::Status (*action)(T& target, std::string_view key, std::string_view value);
};

// Makes "Foo: not supported yet; leave it out".
base::Error not_supported(const std::string& what);
// Makes the error for a `word` that is none of `allowed`, which the message lists.
base::Error unknown_word(std::string_view what, std::string_view word,
                         std::span<const std::string_view> allowed);
inline base::Error unknown_word(std::string_view what, std::string_view word,
                                std::initializer_list<std::string_view> allowed) {
  return unknown_word(what, word, std::span{allowed.begin(), allowed.size()});
}

// Accepts the value that means the absence of a feature that is not there.
template <typename T>
base::Status absent_feature(T&, std::string_view key, std::string_view value) {
  for (const std::string_view none : {"priority/basic", "topology/none", "topology/flat",
                                      "topology/default", "none", "mcs/none", "0"}) {
    if (same_word(value, none)) return {};
  }
  return not_supported(std::string{key} + "=" + std::string{value});
}

// Returns true if a reader of keys failed because its table does not have the key. Such an error
// has a code of its own.
inline bool is_unknown_key(const base::Error& error) {
  return error.code == base::Code::kNotFound;
}

// Returns true if the value may be a password or the place of a key: StoragePass of slurmdbd.conf,
// JobCompPass, AuthAltParameters. No message repeats it: messages end in logs and bug reports.
bool is_secret_key(std::string_view key);

// Keys that every slurm.conf has and that do not concern scheduling.
bool is_foreign_key(std::string_view key);

// Looks each key up in the table, without regard to case, and runs its action. The first mistake
// ends the reading. A key that is given twice is applied twice, so mostly the later value counts,
// as that of a line counts after that of its DEFAULT line. `where` is for the message.
template <typename T, std::size_t count>
base::Status apply_keys(T& target, std::span<const KeyValue> keys,
                        const std::array<ConfKey<T>, count>& table, std::string_view where) {
  for (const KeyValue& key : keys) {
    const ConfKey<T>* found = nullptr;
    for (const ConfKey<T>& row : table) {
      if (same_word(row.name, key.key)) found = &row;
    }
    if (found == nullptr) {
      std::vector<std::string_view> names;
      for (const ConfKey<T>& row : table) names.push_back(row.name);
      base::Error error = unknown_word("key of " + std::string{where}, key.key, names);
      error.code = base::Code::kNotFound;
      return error;
    }
    // The action gets the table's spelling, so messages name the key as Slurm's manual does.
    const base::Status status = found->action(target, found->name, key.value);
    if (!status) return status;
  }
  return {};
}

// PreemptMode: at most one of OFF, CANCEL, REQUEUE, SUSPEND (C4, C19, C20), with or without GANG,
// or with WITHIN or PRIORITY, which GANG excludes (C5).
struct PreemptModes {
  std::optional<sched::PreemptMode> mode;
  bool gang = false;
  bool within = false;
  bool priority = false;
};
base::Result<PreemptModes> parse_preempt_modes(std::string_view what, std::string_view text);

// Takes "name=value" apart; without '=' the value is empty.
std::pair<std::string_view, std::string_view> split_option(std::string_view option);

// Sets `field` to the choice that `value` names, without regard to case. Any other word is refused
// with the list of the choices.
template <typename Enum>
base::Status choose(Enum& field, std::string_view key, std::string_view value,
                    std::initializer_list<std::pair<std::string_view, Enum>> choices) {
  std::vector<std::string_view> names;
  for (const auto& [name, choice] : choices) {
    if (same_word(name, value)) {
      field = choice;
      return {};
    }
    names.push_back(name);
  }
  return unknown_word(key, value, names);
}

// Sets `field` to the whole number in `value`. REQUIRES: Integer can hold the range.
template <typename Integer>
base::Status set_integer(Integer& field, std::string_view key, std::string_view value,
                         IntegerRange range) {
  const base::Result<std::int64_t> read = parse_integer(key, value, range);
  if (!read) return read.error();
  field = static_cast<Integer>(*read);
  return {};
}

// Switches an option on by its mere name. A value beside it is refused: taking "defer=0" for
// "defer" would do the opposite of what the administrator means.
inline base::Status set_flag(bool& field, std::string_view key, std::string_view option,
                             std::string_view value) {
  if (!value.empty()) {
    return base::invalid_argument(std::string{key} + " " + in_quotes(option) + ": takes no value");
  }
  field = true;
  return {};
}

inline base::Status set_seconds(base::Duration& field, std::string_view key,
                                std::string_view value) {
  const base::Result<base::Duration> read = parse_seconds(key, value);
  if (!read) return read.error();
  field = *read;
  return {};
}

inline base::Status set_memory(sched::MemoryMiB& field, std::string_view key,
                               std::string_view value) {
  const base::Result<sched::MemoryMiB> read = parse_memory(key, value);
  if (!read) return read.error();
  field = *read;
  return {};
}

// The class of a pointer to a member. With it seconds_key<&QosConfig::grace_time> is an ordinary
// function on a QosConfig, which a table of keys can hold.
template <typename>
struct MemberOf;
template <typename Class, typename Field>
struct MemberOf<Field Class::*> {
  using Type = Class;
};
template <auto field>
using ClassOf = typename MemberOf<decltype(field)>::Type;

// Actions that write one field and do nothing else, for tables of keys. `field` points to a member.
template <auto field>
base::Status seconds_key(ClassOf<field>& target, std::string_view key, std::string_view value) {
  return set_seconds(target.*field, key, value);
}

template <auto field>
base::Status boolean_key(ClassOf<field>& target, std::string_view key, std::string_view value) {
  const base::Result<bool> read = parse_boolean(key, value);
  if (!read) return read.error();
  target.*field = *read;
  return {};
}

template <auto field>
base::Status string_key(ClassOf<field>& target, std::string_view key, std::string_view value) {
  if (value.empty()) return base::invalid_argument(std::string{key} + ": a value is missing");
  target.*field = std::string{value};
  return {};
}

// For keys that Slurm knows and that decide nothing here. They are in the table because a key that
// is in none is refused.
template <typename T>
base::Status ignored(T&, std::string_view, std::string_view) {
  return {};
}

// DefMemPer… and MaxMemPer…: zero and UNLIMITED set no value; two forms at one level are refused
// (C16).
base::Status set_memory_limit(std::optional<sched::MemoryMiB>& field,
                              const std::optional<sched::MemoryMiB>& other, std::string_view key,
                              std::string_view value);

// Reads the four keys of a level. Each passes its counterpart (per node, per CPU), so that the
// second of two is refused, also when a DEFAULT line has set the first.
template <typename T>
base::Status default_memory_per_cpu(T& t, std::string_view key, std::string_view value) {
  return set_memory_limit(t.default_memory.per_cpu, t.default_memory.per_node, key, value);
}
template <typename T>
base::Status default_memory_per_node(T& t, std::string_view key, std::string_view value) {
  return set_memory_limit(t.default_memory.per_node, t.default_memory.per_cpu, key, value);
}
template <typename T>
base::Status max_memory_per_cpu(T& t, std::string_view key, std::string_view value) {
  return set_memory_limit(t.max_memory.per_cpu, t.max_memory.per_node, key, value);
}
// DefCpuPerGPU and DefMemPerGPU; 0 sets none.
template <typename T>
base::Status default_cpus_per_gpu(T& t, std::string_view key, std::string_view value) {
  const base::Result<std::int64_t> count = parse_integer(key, value, {.min = 0, .max = 1'000'000});
  if (!count) return count.error();
  t.default_per_gpu.cpus = static_cast<int>(*count);
  return {};
}
template <typename T>
base::Status default_memory_per_gpu(T& t, std::string_view key, std::string_view value) {
  const base::Result<sched::MemoryMiB> memory = parse_memory(key, value);
  if (!memory) return memory.error();
  t.default_per_gpu.memory = *memory;
  return {};
}
template <typename T>
base::Status max_memory_per_node(T& t, std::string_view key, std::string_view value) {
  return set_memory_limit(t.max_memory.per_node, t.max_memory.per_cpu, key, value);
}

}  // namespace slurm
