// Maps of a YAML file with their places in it: what the readers of scenarios share. Only they
// include this, for yaml-cpp is a heavy header.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "slurm/text.h"

namespace cli {

// A place in a file, for messages.
struct Place {
  std::string file;
  int line = 0;
};

base::Error at(const Place& place, const base::Error& error);
base::Error at(const Place& place, const std::string& message);

// One entry of a map.
struct Entry {
  std::string key;
  YAML::Node value;
  Place place;
};
using Entries = std::vector<Entry>;

class YamlFile {
 public:
  explicit YamlFile(std::string name) : name_{std::move(name)} {}

  Place place(const YAML::Node& node) const { return {name_, std::max(0, node.Mark().line) + 1}; }

  // Returns the entries of a map, each key once. `what` names the map in the message.
  base::Result<Entries> entries(const YAML::Node& map, const std::string& what) const;

  // Returns the map as keys and values of slurm.conf, after `first`.
  base::Result<std::vector<slurm::KeyValue>> key_values(const YAML::Node& map,
                                                        const std::string& what,
                                                        std::vector<slurm::KeyValue> first) const;

 private:
  std::string name_;
};

// Returns the entry's value as a single word, or as seconds from 0 to a hundred years.
base::Result<std::string> word(const Entry& entry);
base::Result<base::Duration> seconds(const Entry& entry);

}  // namespace cli
