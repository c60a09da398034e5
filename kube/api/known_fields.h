// The names of the fields that a type reads, and the text of an object without all others: what is
// not read costs a look at its characters instead of a tree.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace kube {

// A tree of names; those of an object in a list stand for each of its elements. Keeps everything
// below a name that has none of its own: a text, a map, JSON that is kept as it is.
class KnownFields {
 public:
  // Adds a member if there is none of that name.
  KnownFields& at(std::string_view name);
  // Null if there is none.
  const KnownFields* find(std::string_view name) const;
  bool keeps_all() const { return members_.empty(); }
  // REQUIRES: the path is there, and is not the last one of its object.
  void remove(std::initializer_list<std::string_view> path);

 private:
  std::map<std::string, KnownFields, std::less<>> members_;
};

// Those of decode<T>, with apiVersion and kind.
template <typename T>
const KnownFields& known_fields();

// Returns the JSON text of an object with the members that `fields` names; order and all other
// characters stay. A text that is not JSON comes back unchanged as far as that is noticed, for the
// parser to report.
std::string only_known(std::string_view text, const KnownFields& fields);

}  // namespace kube
