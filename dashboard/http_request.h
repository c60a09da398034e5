// A request of a browser, as far as the page needs it: HTTP/1.1, a head and a small body of known
// length. Pure; fuzzed.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace dashboard {

inline constexpr std::size_t kHeadBytesMax = 16 * 1024;
inline constexpr std::size_t kBodyBytesMax = 16 * 1024;  // a token may be long

struct HttpRequest {
  std::string method{};                          // "GET"
  std::string path{};                            // "/job", without the query
  std::map<std::string, std::string> query{};    // decoded
  std::map<std::string, std::string> headers{};  // names in lower case
  std::string body{};

  // Both return "" if there is none.
  std::string header(const std::string& name) const;
  std::string parameter(const std::string& name) const;
};

struct ParsedRequest {
  int status = 0;  // 0: more must come; 200: a request; else the status that refuses it
  HttpRequest request{};
};

// Parses what a client has sent so far. A header that stands there twice is refused: two programs
// that read it could each take another one.
ParsedRequest parse_request(std::string_view received);

}  // namespace dashboard
