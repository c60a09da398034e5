#include "kube/clock_watch.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace kube {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

base::Duration size_of(base::Duration ahead) {
  return ahead < base::Duration{} ? -ahead : ahead;
}

}  // namespace

// The header was written at some instant of its second, between the request and the end of the
// answer: only what lies outside of that is an error of a clock.
void ClockWatch::saw(const std::string& address, base::Instant date, base::Duration took) {
  const base::Instant answered = clock_.wall();
  const base::Instant sent = answered - took;
  base::Duration ahead{};
  if (sent > date + std::chrono::seconds{1}) ahead = sent - date - std::chrono::seconds{1};
  if (answered < date) ahead = answered - date;
  const base::Duration now = clock_.monotonic();
  const std::lock_guard lock{mu_};
  const auto [found, is_new] = addresses_.try_emplace(address);
  Address& entry = found->second;
  const bool says_the_same =
      !is_new && (size_of(entry.ahead) > kOffMax) == (size_of(ahead) > kOffMax);
  if (!says_the_same) entry = {.since = now};
  entry.ahead = ahead;
  ++entry.answers_count;
  entry.last = now;
  std::erase_if(addresses_, [now](const auto& each) { return each.second.last + kLately < now; });
}

template <typename Says>
std::optional<base::Duration> ClockWatch::majority(Says says) const {
  const base::Duration now = clock_.monotonic();
  const std::lock_guard lock{mu_};
  int all = 0;
  int off = 0;
  base::Duration most{};
  for (const auto& [name, address] : addresses_) {
    if (address.last + kLately < now) continue;
    ++all;
    if (size_of(address.ahead) <= kOffMax || !says(address)) continue;
    ++off;
    if (size_of(address.ahead) > size_of(most)) most = address.ahead;
  }
  if (off * 2 <= all) return std::nullopt;
  return most;
}

std::optional<base::Duration> ClockWatch::off() const {
  return majority([](const Address& address) {
    return address.answers_count >= kOffAnswersMin && address.last - address.since >= kOffFor;
  });
}

bool ClockWatch::is_in_doubt() const {
  return majority([](const Address&) { return true; }).has_value();
}

std::optional<base::Instant> parse_http_date(std::string_view text) {
  // "Sat, 28 Nov 2026 15:02:20 GMT"
  constexpr std::string_view kForm = "aaa, 00 aaa 0000 00:00:00 GMT";
  if (text.size() != kForm.size()) return std::nullopt;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (kForm[i] == '0' ? !is_digit : kForm[i] != 'a' && kForm[i] != text[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t size) {
    return std::atoi(std::string{text.substr(at, size)}.c_str());
  };
  const auto month = std::ranges::find(kMonths, text.substr(8, 3));
  const std::chrono::year_month_day date{
      std::chrono::year{number(12, 4)},
      std::chrono::month{static_cast<unsigned>(month - kMonths.begin()) + 1},
      std::chrono::day{static_cast<unsigned>(number(5, 2))}};
  if (!date.ok()) return std::nullopt;
  return base::Instant{std::chrono::sys_days{date} + std::chrono::hours{number(17, 2)} +
                       std::chrono::minutes{number(20, 2)} + std::chrono::seconds{number(23, 2)}};
}

std::string http_date(base::Instant at) {
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{std::chrono::floor<std::chrono::seconds>(at - day)};
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d GMT",
                kDays[std::chrono::weekday{day}.c_encoding()].data(),
                static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1].data(),
                static_cast<int>(date.year()), static_cast<int>(time.hours().count()),
                static_cast<int>(time.minutes().count()), static_cast<int>(time.seconds().count()));
  return text.data();
}

base::Result<Response> ClockWatchTransport::send(const Request& request) {
  const base::Duration sent = clock_.monotonic();
  base::Result<Response> response = inner_.send(request);
  if (!response.ok()) return response;
  const auto header = response->headers.find("date");
  if (header == response->headers.end()) return response;
  if (const auto date = parse_http_date(header->second)) {
    watch_.saw(response->address, *date, clock_.monotonic() - sent);
  }
  return response;
}

}  // namespace kube
