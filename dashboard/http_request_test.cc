#include "dashboard/http_request.h"

#include <gtest/gtest.h>

namespace dashboard {
namespace {

TEST(HttpRequest, ReadsWhatABrowserSends) {
  const ParsedRequest parsed = parse_request(
      "POST /job?ns=team%2da&name=x+y HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: "
      "3\r\n\r\nabc");
  ASSERT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.request.method, "POST");
  EXPECT_EQ(parsed.request.path, "/job");
  EXPECT_EQ(parsed.request.parameter("ns"), "team-a");
  EXPECT_EQ(parsed.request.parameter("name"), "x y");
  EXPECT_EQ(parsed.request.header("host"), "localhost:1");
  EXPECT_EQ(parsed.request.body, "abc");
}

// Method: every prefix of a request is one that is not whole yet.
TEST(HttpRequest, WaitsForTheRest) {
  const std::string whole = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(parse_request(whole.substr(0, length)).status, 0) << length;
  }
}

TEST(HttpRequest, RefusesWhatCouldMeanTwoThings) {
  for (const char* head :
       {"GET / HTTP/1.1\r\nHost: a\r\nHost: b", "GET / HTTP/1.1\r\nHost : a",
        "GET / HTTP/1.1\r\n folded: a", "GET http://a/ HTTP/1.1", "GET / HTTP/2", "GET /", "",
        "GET / HTTP/1.1\r\nContent-Length: -1", "GET / HTTP/1.1\r\nContent-Length: 1x",
        "GET /\x01 HTTP/1.1", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked",
        "GET / HTTP/1.1\r\nHost: a\rb"}) {
    EXPECT_EQ(parse_request(std::string{head} + "\r\n\r\n").status, 400) << head;
  }
}

TEST(HttpRequest, RefusesWhatIsTooLarge) {
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\nA: " + std::string(kHeadBytesMax, 'a')).status, 431);
  EXPECT_EQ(parse_request("POST / HTTP/1.1\r\nContent-Length: 16385\r\n\r\n").status, 413);
  EXPECT_EQ(parse_request("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n").status,
            400);
}

}  // namespace
}  // namespace dashboard
