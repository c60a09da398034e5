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

// Kinds of remarks, in the order in which they are printed: the worst first.
enum class RemarkKind {
  kOtherFile,  // most of its lines are not Slurm's
  kLost,       // an object, a file or a line
  kAccess,     // who may use something
  kSetting,    // a parameter of scheduling
  kNote,       // what came over and looks different now
  kForeign,    // not about scheduling: counted, not printed one by one
};

class Remarks {
 public:
  // Adds a remark. One that comes twice for a line, as for a DEFAULT line of several partitions, is
  // printed once.
  void add(RemarkKind kind, FilePlace place, std::string text) {
    remarks_.emplace(kind, place.file, place.line, std::move(text));
  }
  std::size_t count(RemarkKind kind) const;
  // Returns "FILE:LINE: text", by kind, file and line; those of kForeign as one line for each file.
  std::vector<std::string> texts(const std::vector<std::string>& file_names) const;

 private:
  std::set<std::tuple<RemarkKind, std::size_t, std::size_t, std::string>> remarks_;
};

// Returns "subject: message", or the message alone if it names the subject already.
std::string about(const std::string& subject, const std::string& message);

}  // namespace cli
