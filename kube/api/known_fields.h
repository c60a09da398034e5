// The names of the fields that a type reads: of a text only those are read (json_view.h).
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

namespace kube {

// A tree of names; those of an object in a list stand for each of its elements. Below a name that
// has none of its own everything is read: a text, a map.
class KnownFields {
 public:
  // Adds a member if there is none of that name.
  KnownFields& at(std::string_view name);
  // Null if there is none.
  const KnownFields* find(std::string_view name) const;
  bool keeps_all() const { return members_.empty(); }
  // It is JSON that is kept as it is: where it ends is all that is read.
  void read_raw() { is_raw_ = true; }
  bool is_raw() const { return is_raw_; }
  // REQUIRES: the path is there, and is not the last one of its object.
  void remove(std::initializer_list<std::string_view> path);

 private:
  std::map<std::string, KnownFields, std::less<>> members_;
  bool is_raw_ = false;
};

// Returns those of decode<T>, with apiVersion and kind.
template <typename T>
const KnownFields& known_fields();

}  // namespace kube
