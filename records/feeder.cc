#include "records/feeder.h"

#include <sys/socket.h>

#include <utility>

namespace records {
namespace {

constexpr std::size_t kRowsMax = 1'000;
constexpr base::Duration kRest = std::chrono::seconds{2};
constexpr base::Duration kAfterError = std::chrono::seconds{10};

}  // namespace

Feeder::Feeder(Reader reader, const kube::Clock& clock,
               std::function<base::Result<std::string>()> read_url,
               std::function<void(const base::Error&)> on_error)
    : reader_{std::move(reader)},
      clock_{clock},
      read_url_{std::move(read_url)},
      on_error_{std::move(on_error)} {
  counters_.complete_at = clock_.monotonic().count();
}

base::Duration Feeder::step() {
  const auto fed = feed();
  if (fed) return *fed == 0 ? kRest : base::Duration{};
  ++counters_.failures;
  on_error_(fed.error());
  // Whether the last transaction was committed is not known: the next connection asks.
  socket_ = -1;
  database_.reset();
  return kAfterError;
}

base::Status Feeder::connect() {
  const auto url = read_url_();
  if (!url) return url.error();
  const auto identity = reader_.identity();
  if (!identity) return identity.error();
  identity_ = *identity;
  auto database = Postgresql::open(*url);
  if (!database) return database.error();
  const auto place = database->place_of(identity_);
  if (!place) return place.error();
  place_ = *place;
  database_ = std::move(*database);
  socket_ = database_->socket();
  return {};
}

base::Result<std::size_t> Feeder::feed() {
  if (!database_) {
    if (const base::Status status = connect(); !status) return status.error();
  }
  const auto page = reader_.changed_after(place_, kRowsMax);
  if (!page) return page.error();
  if (page->records.empty()) {
    counters_.complete_at = clock_.monotonic().count();
    return std::size_t{0};
  }
  const base::Status put = database_->put(page->records, identity_, page->last);
  if (!put) return put.error();
  place_ = page->last;
  counters_.rows += static_cast<std::int64_t>(page->records.size());
  return page->records.size();
}

void Feeder::interrupt() {
  if (const int socket = socket_; socket >= 0) ::shutdown(socket, SHUT_RDWR);
}

}  // namespace records
