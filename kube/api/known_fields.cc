#include "kube/api/known_fields.h"

#include "base/check.h"

namespace kube {
// A tree of names is made once per type, from the same list of fields that reads it (FieldLister in
// codec.h), and then only searched: once for each member of each object that arrives. A std::map
// with std::less<> takes the name as a view into the text, without a copy.
KnownFields& KnownFields::at(std::string_view name) {
  return members_[std::string{name}];
}

const KnownFields* KnownFields::find(std::string_view name) const {
  const auto found = members_.find(name);
  return found == members_.end() ? nullptr : &found->second;
}

void KnownFields::remove(std::initializer_list<std::string_view> path) {
  KnownFields* parent = this;
  for (const std::string_view& name : path) {
    const auto found = parent->members_.find(name);
    CHECK(found != parent->members_.end(), name);
    // The last name of the path is the one to remove; those before it lead there.
    if (&name != path.end() - 1) {
      parent = &found->second;
      continue;
    }
    parent->members_.erase(found);
    // Without any name it would keep everything.
    CHECK(!parent->members_.empty(), name);
  }
}

}  // namespace kube
