#include "linux/system_error.h"

#include <gtest/gtest.h>

namespace os {
namespace {

// One or two of each row of the table, and two errors that are in none: a directory in the place of
// a file, and no free descriptor, which may pass.
TEST(SystemError, ACodeSaysWhatTheCallerMayDo) {
  const std::pair<int, base::Code> table[] = {
      {ENOENT, base::Code::kNotFound},        {ENODEV, base::Code::kNotFound},
      {EROFS, base::Code::kPermissionDenied}, {ELOOP, base::Code::kPermissionDenied},
      {EEXIST, base::Code::kAlreadyExists},   {ENAMETOOLONG, base::Code::kInvalidArgument},
      {EISDIR, base::Code::kUnavailable},     {EMFILE, base::Code::kUnavailable}};
  for (const auto& [number, code] : table) EXPECT_EQ(code_of_errno(number), code) << number;
  EXPECT_EQ(error_from_errno("open /x", ENOENT).message, "open /x: No such file or directory");
}

}  // namespace
}  // namespace os
