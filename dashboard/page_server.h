// PageServer: the page over HTTP, on 127.0.0.1 for the browsers of one user, or on all addresses
// for several readers, each with a token. The page shows a Board; changes go to each
// browser as server-sent events.
//
// One thread and poll(). All that clients can take is bounded: the number of connections, the size
// and time of a request, and the text that waits for a slow browser. With one user, a connection
// that another user of this machine has opened is answered with 403 before a byte of it is read.
//
//   GET  /, /app.js, …   the page's files: no secrets are in them
//   GET  /healthz        is the server alive? Of several readers only, by whatever name
//   POST /session        the one-time code, or the reader's token, as body; the answer sets the
//   cookie GET  /session        is the cookie good, or the token? Who is the reader? (cookie) POST
//   /sign-out       ends the cookie's session (cookie) GET  /events         the board, then what
//   changes of it (cookie) GET  /job?ns=&name=  about one job (cookie) POST /control, …     what
//   the hooks take, as JSON (cookie)
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "dashboard/board.h"
#include "dashboard/gatekeeper.h"
#include "dashboard/peer_owner.h"
#include "dashboard/readers.h"
#include "kube/clock.h"
#include "linux/file_descriptor.h"

namespace dashboard {

class PageServer {
 public:
  struct Options {
    int port = 0;  // 0 = any free one
    // For a client to send its request and to read the answer.
    base::Duration patience = std::chrono::seconds{10};
    // Between two updates of a browser.
    base::Duration update_every = std::chrono::milliseconds{250};
    // The user who may read the page, if there is one.
    uid_t reader = 0;
    // Names by which several readers reach the page, over https.
    std::vector<std::string> hosts{};
  };
  using Text = base::Result<std::string>;
  struct Hooks {
    // Null: the page is one user's, who has the code, and all `token`s below are "". Must live
    // longer.
    Readers* readers = nullptr;
    // Returns JSON about a job; called on a thread of its own, a few at a time.
    std::function<Text(const std::string& token, const std::string& ns, const std::string& name)>
        job{};
    // Handlers of a browser's posts, by path: each does what the body of a request asks for.
    // Returns JSON; the message of an error is shown to the reader. Called as `job` is.
    std::map<std::string, std::function<Text(const std::string& token, const std::string& body)>>
        posts{};
    // A browser has signed in, so there is a new code.
    std::function<void(const std::string& address)> on_new_code{};
    std::function<std::optional<uid_t>(const LoopbackConnection&)> owner = owner_of;
  };

  // Listens. kUnavailable: the port is in use. `board` and `clock` must live longer; nothing may
  // change the board while the server is made or destroyed.
  static base::Result<std::unique_ptr<PageServer>> create(const Options& options, Board& board,
                                                          const kube::Clock& clock, Hooks hooks);
  ~PageServer();

  int port() const { return port_; }
  // http://127.0.0.1:PORT/#CODE: opens the page in one browser. REQUIRES: serve() does not run.
  std::string address() const;

  // Serves on the calling thread until `stop` is requested; for RunLoop::start.
  void serve(std::stop_token stop);

 private:
  struct Connection;

  PageServer(os::FileDescriptor listener, os::FileDescriptor wake, int port, Options options,
             Board& board, const kube::Clock& clock, Hooks hooks);

  void accept_some();
  void receive(Connection& connection);
  void answer(Connection& connection, const HttpRequest& request);
  void answer_signed_in(Connection& connection, const HttpRequest& request);
  void sign_in(Connection& connection, const HttpRequest& request);
  void answer_known(Connection& connection, const HttpRequest& request);
  void admit(Connection& connection, const HttpRequest& request, std::string token);
  void begin_call(Connection& connection, std::function<Text()> call);
  void begin_events(Connection& connection);
  void take_answer(Connection& connection);
  bool look_at_rights(Connection& connection) const;
  std::size_t first_pictures() const;
  void update(Connection& connection, base::Duration now);
  int wait_ms(base::Duration now) const;

  bool has_readers() const { return hooks_.readers != nullptr; }

  const os::FileDescriptor listener_;
  const os::FileDescriptor wake_;  // readable once there is something to look at
  const int port_;
  const Options options_;
  Board& board_;
  const kube::Clock& clock_;
  const Hooks hooks_;
  Gatekeeper gate_;
  std::vector<std::unique_ptr<Connection>> connections_;  // the oldest first
};

}  // namespace dashboard
