// Lets tests write what parts of the operator note in a record.
#pragma once

#include "operator/jobs/job_record.h"

namespace control {

struct OwnedInTests {
  template <typename T, typename Owner>
  static T& edit(Owned<T, Owner>& owned) {
    return owned.edit();
  }
};

template <typename T, typename Owner>
T& edit(Owned<T, Owner>& owned) {
  return OwnedInTests::edit(owned);
}

}  // namespace control
