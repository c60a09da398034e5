// Remarks: what an import could not translate, with its place.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cli {

struct FilePlace {
  std::size_t file = 0;  // its index
  std::size_t line = 0;
};

class Remarks {
 public:
  // A remark that is made twice of a line, as of a DEFAULT line of several partitions, is told
  // once.
  void add(FilePlace place, std::string text) {
    remarks_.emplace(place.file, place.line, std::move(text));
  }
  // "FILE:LINE: text", in order.
  std::vector<std::string> texts(const std::vector<std::string>& file_names) const;

 private:
  std::set<std::tuple<std::size_t, std::size_t, std::string>> remarks_;
};

}  // namespace cli
