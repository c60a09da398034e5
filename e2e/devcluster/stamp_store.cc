#include "e2e/devcluster/stamp_store.h"

#include <algorithm>
#include <filesystem>

namespace devcluster {

namespace fs = std::filesystem;

// Makes one empty folder for each node: a probe appends to the file of its pod there.
base::Status StampStore::prepare(const std::vector<std::string>& nodes) {
  std::error_code error;
  // Stamps of an earlier run would be counted with this one's.
  fs::remove_all(directory_, error);
  for (const std::string& node : nodes) {
    fs::create_directories(directory_ + "/" + node, error);
    if (error) {
      return base::Error{base::Code::kPermissionDenied,
                         "make " + directory_ + "/" + node + ": " + error.message()};
    }
  }
  return {};
}

// Reads the stamps of all nodes again: the probes append to them all the time.
probe::Gang StampStore::gang(const std::string& job,
                             const std::map<std::string, base::Instant>& first_freezes) const {
  probe::Gang out{.name = job};
  std::error_code error;
  for (const auto& node : fs::directory_iterator{directory_, error}) {
    for (const auto& file : fs::directory_iterator{node.path(), error}) {
      // <job>-<five characters of a hash>-<index>
      // Names of jobs may contain dashes, so the parts are found from the end.
      const std::string stem = file.path().stem();
      const auto index_dash = stem.rfind('-');
      const auto hash_dash =
          index_dash == std::string::npos ? std::string::npos : stem.rfind('-', index_dash - 1);
      if (hash_dash == std::string::npos || stem.substr(0, hash_dash) != job) continue;
      base::Result<probe::Stamps> stamps = probe::read_stamps(file.path());
      // A probe that begins at this moment has no whole file yet; the next look finds it.
      if (!stamps.ok()) continue;
      auto& runs = out.nodes[node.path().filename()];
      if (const auto frozen = first_freezes.find(stem); frozen != first_freezes.end()) {
        out.touched[node.path().filename()] = frozen->second;
      }
      // Several pods of one job on a node (or of several starts) are one list of runs.
      runs.insert(runs.end(), stamps->runs.begin(), stamps->runs.end());
    }
  }
  for (auto& [node, runs] : out.nodes) {
    std::sort(runs.begin(), runs.end(),
              [](const probe::Run& a, const probe::Run& b) { return a.begin < b.begin; });
  }
  return out;
}

// Cells are on a grid of their own length, so that the picture moves by whole cells and a finished
// cell keeps its color. For each node and gang, the runs that reach into a cell are summed up.
// For example cells of 100 ms and turns of 2 s: twenty cells of one gang, then twenty of the other.
std::vector<NodeStrip> node_strips(const std::vector<std::string>& nodes,
                                   const std::vector<probe::Gang>& gangs, base::Instant now,
                                   base::Duration cell, std::size_t columns) {
  // The cell of this moment is left out: it is not over yet.
  const base::Instant end = base::slot_begin(base::slot_of(now, cell), cell);
  std::vector<NodeStrip> strips;
  for (const std::string& node : nodes) {
    NodeStrip strip{.node = node, .cells = std::vector<StripCell>(columns)};
    for (std::size_t gang = 0; gang < gangs.size(); ++gang) {
      const auto found = gangs[gang].nodes.find(node);
      if (found == gangs[gang].nodes.end()) continue;
      for (std::size_t column = 0; column < columns; ++column) {
        const base::Instant from = end - cell * static_cast<std::int64_t>(columns - column);
        base::Duration ran{};
        for (const probe::Run& run : found->second) {
          const auto inside = std::min(run.end, from + cell) - std::max(run.begin, from);
          ran += std::max(base::Duration{}, inside);
        }
        // A cell belongs to the gang that ran for half of it; less is the edge of a turn.
        if (ran < cell / 2) continue;
        StripCell& one = strip.cells[column];
        // A gang before has this cell already.
        one.several = one.job.has_value();
        one.job = gang;
      }
    }
    strips.push_back(std::move(strip));
  }
  return strips;
}

}  // namespace devcluster
