// Readers of a page that serves several users, and what of its board each may see. A reader is
// known by a token alone.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "dashboard/board.h"

namespace dashboard {

struct Reader {
  std::string name{};
  std::shared_ptr<const Sight> sight{};
};

class Readers {
 public:
  virtual ~Readers() = default;

  // Finds out who has the token and what they may see, unless it has just been found out. Blocks as
  // a request does. kUnauthenticated: the token is not, or is no longer, good.
  virtual base::Result<Reader> admit(const std::string& token) = 0;
  // Returns what the reader may see by now; null if that is not known, or the token is no longer
  // good. Quick. The pointer stays the same while the answer does.
  virtual std::shared_ptr<const Sight> sight(const std::string& token) = 0;
};

}  // namespace dashboard
