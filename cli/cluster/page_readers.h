// PageReaders: the readers of a page for several users. The API server says who has a token
// (TokenReview) and what they may list (SubjectAccessReview), again each minute while they read.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "cli/cluster/session.h"
#include "dashboard/board.h"
#include "dashboard/readers.h"

namespace cli {

// Tokens lie in memory while readers use them, and nowhere else.
class PageReaders final : public dashboard::Readers {
 public:
  static constexpr base::Duration kAskEvery = std::chrono::minutes{1};

  // `own`: the session of the program, which asks the reviews. Both must live longer.
  PageReaders(const Session& own, const dashboard::Board& board) : own_{own}, board_{board} {}

  // Requests: a review of the token, and one for each scope of the board; of the namespaces none if
  // the reader may list the jobs of all.
  base::Result<dashboard::Reader> admit(const std::string& token) override;
  std::shared_ptr<const dashboard::Sight> sight(const std::string& token) override;

  // Asks again what is a minute old, and about scopes that are new; forgets readers who have gone.
  // For kube::RunLoop.
  base::Duration step();

 private:
  // How long the known answer holds without a new one of the API server.
  static constexpr base::Duration kTrustMax = std::chrono::minutes{5};
  // A reader is present as long as the server asks for their sight; it does with each update.
  static constexpr base::Duration kReadsWithin = std::chrono::minutes{2};
  static constexpr base::Duration kLookEvery = std::chrono::seconds{1};
  // Also after a failure.
  static constexpr base::Duration kTryEvery = std::chrono::seconds{3};

  struct Known {
    dashboard::Reader reader{};
    dashboard::Sight asked{};  // scopes
    base::Duration reviewed{};
    base::Duration tried{};
    base::Duration read{};
  };

  base::Result<Known> review(const std::string& token) const;
  void review_again(const std::string& token);

  const Session& own_;
  const dashboard::Board& board_;
  std::mutex mu_;
  std::map<std::string, Known> known_;  // by token; guarded by mu_
};

}  // namespace cli
