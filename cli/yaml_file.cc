#include "cli/yaml_file.h"

#include <cmath>
#include <set>

namespace cli {

// Also of a key that does not exist, whose error has a code of its own (slurm::is_unknown_key).
base::Error at(const Place& place, const base::Error& error) {
  return at(place, error.message);
}

base::Error at(const Place& place, const std::string& message) {
  return base::invalid_argument(place.file + ":" + std::to_string(place.line) + ": " + message);
}

// Returns the entries in the order of the file. `what` names the map in messages: "a node". Every
// map of a file is read by this, so a key that is there twice is reported everywhere alike. The
// caller decides which keys there may be.
base::Result<Entries> YamlFile::entries(const YAML::Node& map, const std::string& what) const {
  if (!map.IsMap()) return at(place(map), what + ": must be a map of keys and values");
  Entries all;
  std::set<std::string> seen;
  for (const auto& item : map) {
    if (!item.first.IsScalar()) return at(place(item.first), what + ": a key must be a word");
    Entry entry{item.first.Scalar(), item.second, place(item.first)};
    // yaml-cpp keeps both of two equal keys, and one of them would be lost without a word.
    if (!seen.insert(entry.key).second) {
      return at(entry.place, what + ": the key " + slurm::in_quotes(entry.key) + " appears twice");
    }
    all.push_back(std::move(entry));
  }
  return all;
}

// Returns a scalar's text, whatever YAML takes it for: "1:30" and "yes" stay as they are written.
base::Result<std::string> word(const Entry& entry) {
  if (!entry.value.IsScalar()) return at(entry.place, entry.key + ": must be a single value");
  return entry.value.Scalar();
}

// A hundred years is far from the end of the clock, so that sums of times cannot overflow.
// Fractions are rounded to microseconds.
// As yaml-cpp reads a number: "7.5" and "1e3" are seconds, "1:30" is not.
base::Result<base::Duration> seconds(const Entry& entry) {
  constexpr double kSecondsMax = 100.0 * 365 * 24 * 3600;
  const base::Result<std::string> text = word(entry);
  if (!text) return text.error();
  double value = 0;
  if (!YAML::convert<double>::decode(entry.value, value) || !std::isfinite(value) || value < 0 ||
      value > kSecondsMax) {
    return at(entry.place,
              entry.key + " " + slurm::in_quotes(*text) + ": must be seconds from 0 to 3153600000");
  }
  return base::Duration{std::llround(value * 1e6)};
}

// `first` are defaults: they stand before the keys of the map, and readers let the last key of a
// name win.
base::Result<std::vector<slurm::KeyValue>> YamlFile::key_values(
    const YAML::Node& map, const std::string& what, std::vector<slurm::KeyValue> first) const {
  const base::Result<Entries> all = entries(map, what);
  if (!all) return all.error();
  for (const Entry& entry : *all) {
    const base::Result<std::string> value = word(entry);
    if (!value) return value.error();
    first.push_back({entry.key, *value});
  }
  return first;
}

}  // namespace cli
