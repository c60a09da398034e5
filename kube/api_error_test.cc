#include "kube/api_error.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "kube/api/meta.h"

namespace kube {
namespace {

using base::Code;
using std::chrono::seconds;

// Each status as a real server sends it, with the reason in the Status. 409 has two meanings, which
// only the reason tells apart; 302 does not come from an API server at all. The code decides
// between a retry (kUnavailable), a look at the object (kConflict), a new list (kGone) and an error
// for a person. 429 is a retry, too: the server was only busy.
TEST(ErrorFromResponse, SaysWhatTheCallerMayDo) {
  const struct {
    int status;
    const char* reason;
    Code want;
  } cases[] = {
      {400, "BadRequest", Code::kInvalidArgument},
      {401, "Unauthorized", Code::kUnauthenticated},
      {403, "Forbidden", Code::kPermissionDenied},
      {404, "NotFound", Code::kNotFound},
      {405, "MethodNotAllowed", Code::kInvalidArgument},
      {409, "AlreadyExists", Code::kAlreadyExists},
      {409, "Conflict", Code::kConflict},
      {410, "Expired", Code::kGone},
      {410, "Gone", Code::kGone},
      {404, "", Code::kUnavailable},
      {410, "", Code::kUnavailable},
      {413, "RequestEntityTooLarge", Code::kTooLarge},
      {415, "", Code::kInvalidArgument},
      {422, "Invalid", Code::kInvalidArgument},
      {429, "TooManyRequests", Code::kUnavailable},
      {500, "InternalError", Code::kUnavailable},
      {503, "ServiceUnavailable", Code::kUnavailable},
      {504, "Timeout", Code::kTimeout},
      {302, "", Code::kInternal},
  };
  for (const auto& one : cases) {
    const nlohmann::json body{{"kind", "Status"}, {"reason", one.reason}, {"message", "m"}};
    EXPECT_EQ(error_from_response({one.status, {}, body.dump()}, ""), (base::Error{one.want, "m"}))
        << one.status << " " << one.reason;
  }
}

// A proxy in between has its own pages; quoting one shows where the answer is from. The code then
// follows from the status alone.
TEST(ErrorFromResponse, QuotesABodyThatIsNoStatus) {
  EXPECT_EQ(error_from_response({502, {}, "<html>bad gateway"}, ""),
            (base::Error{Code::kUnavailable, "HTTP status 502: <html>bad gateway"}));
  EXPECT_EQ(error_from_response({403, {}, ""}, ""),
            (base::Error{Code::kPermissionDenied, "HTTP status 403"}));
}

// A load balancer that fails over, an ingress without a backend, an API server whose CRDs are not
// served for a moment: none of them knows what exists. The caller tries again.
TEST(ErrorFromResponse, OnlyTheApiServerSaysThatAnObjectDoesNotExist) {
  const std::string path = "/apis/kubegang.io/v1alpha1/namespaces/a/jobs/short/status?x=y";
  const auto code = [&](int status, const std::string& body) {
    return error_from_response({status, {}, body}, path).code;
  };
  EXPECT_EQ(code(404, "404 page not found\n"), Code::kUnavailable);
  EXPECT_EQ(code(404, R"({"error": "no such route", "reason": "NotFound"})"), Code::kUnavailable);
  EXPECT_EQ(code(410, "<html>gone"), Code::kUnavailable);
  EXPECT_EQ(code(429, ""), Code::kUnavailable);
  const auto about = [&](const std::string& name) {
    return code(
        404, R"({"kind": "Status", "reason": "NotFound", "details": {"name": ")" + name + R"("}})");
  };
  EXPECT_EQ(about("short"), Code::kNotFound);
  EXPECT_EQ(about("a"), Code::kNotFound) << "the namespace that something should be made in";
  EXPECT_EQ(about("shor"), Code::kUnavailable);
  EXPECT_EQ(about("another"), Code::kUnavailable);
}

// A list that should not be older than a version which the server's cache does not know (yet): only
// a list of another version can help.
TEST(ErrorFromResponse, AVersionFromTheFutureAsksForAnotherList) {
  const nlohmann::json body{
      {"kind", "Status"},
      {"reason", "Timeout"},
      {"message", "Too large resource version: 9, current: 7"},
      {"details",
       {{"causes", {{{"reason", "ResourceVersionTooLarge"}}}}, {"retryAfterSeconds", 1}}}};
  EXPECT_EQ(error_from_response({504, {}, body.dump()}, "").code, Code::kGone);
}

// The sentence about an invalid pod quotes all of its invalid values.
TEST(ErrorFromResponse, ShortensALongMessage) {
  const nlohmann::json body{
      {"kind", "Status"}, {"reason", "Invalid"}, {"message", std::string(1'000'000, 'x')}};
  const base::Error error = error_from_response({422, {}, body.dump()}, "");
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.message.size(), kStatusMessageBytesMax);
}

// A day is cut to the maximum: no caller waits that long in one call.
TEST(RetryAfter, ReadsWholeSecondsUpToItsMaximum) {
  EXPECT_EQ(retry_after({429, {{"retry-after", "3"}}, ""}), seconds{3});
  EXPECT_EQ(retry_after({429, {{"retry-after", "86400"}}, ""}), kRetryAfterMax);
  EXPECT_EQ(retry_after({429, {{"retry-after", "soon"}}, ""}), std::nullopt);
  EXPECT_EQ(retry_after({429, {}, ""}), std::nullopt);
}

}  // namespace
}  // namespace kube
