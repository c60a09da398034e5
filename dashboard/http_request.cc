#include "dashboard/http_request.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "kube/url.h"

namespace dashboard {
namespace {

constexpr int kBadRequest = 400;
constexpr int kTooLarge = 413;
constexpr int kHeadTooLarge = 431;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out{text};
  std::ranges::transform(out, out.begin(), [](unsigned char c) {
    return static_cast<char>(c < 0x80 ? std::tolower(c) : c);
  });
  return out;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) != 0 || c == '-' || c == '_');
  });
}

void read_query(std::string_view text, HttpRequest& request) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    const std::string_view name = pair.substr(0, pair.find('='));
    const std::string_view value = pair.substr(std::min(name.size() + 1, pair.size()));
    request.query.emplace(kube::percent_decode(name, true), kube::percent_decode(value, true));
  }
}

// "GET /job?name=a HTTP/1.1"
bool read_request_line(std::string_view line, HttpRequest& request) {
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  request.method = line.substr(0, first);
  if (!is_token(request.method) || target.empty() || target.front() != '/') return false;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  const bool is_plain =
      std::ranges::all_of(target, [](unsigned char c) { return c > 0x20 && c < 0x7f; });
  if (!is_plain) return false;
  request.path = target.substr(0, target.find('?'));
  if (request.path.size() < target.size()) {
    read_query(target.substr(request.path.size() + 1), request);
  }
  return true;
}

bool read_header(std::string_view line, HttpRequest& request) {
  const auto colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return false;
  const std::string_view value = trimmed(line.substr(colon + 1));
  const bool is_text =
      std::ranges::all_of(value, [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  return is_text && request.headers.emplace(lower(line.substr(0, colon)), value).second;
}

}  // namespace

std::string HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string HttpRequest::parameter(const std::string& name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

// 1. the head, up to an empty line
// 2. the request line and the headers
// 3. the body, if its length is said; one in pieces is refused
ParsedRequest parse_request(std::string_view received) {
  const auto end = received.substr(0, kHeadBytesMax).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return {.status = received.size() >= kHeadBytesMax ? kHeadTooLarge : 0};
  }
  ParsedRequest parsed{.status = kBadRequest};
  std::string_view head = received.substr(0, end);
  bool is_first = true;
  while (!head.empty() || is_first) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    const bool is_good =
        is_first ? read_request_line(line, parsed.request) : read_header(line, parsed.request);
    if (!is_good) return parsed;
    is_first = false;
  }
  if (!parsed.request.header("transfer-encoding").empty()) return parsed;
  std::size_t length = 0;
  if (const std::string text = parsed.request.header("content-length"); !text.empty()) {
    const auto read = std::from_chars(text.data(), text.data() + text.size(), length);
    if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return parsed;
  }
  if (length > kBodyBytesMax) return {.status = kTooLarge};
  const std::string_view body = received.substr(end + 4);
  if (body.size() < length) return {.status = 0};
  parsed.request.body = body.substr(0, length);
  parsed.status = 200;
  return parsed;
}

}  // namespace dashboard
