#include "kube/base64.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

// SOURCE: RFC 4648, section 10. Then line breaks, bytes above 127, and texts that are not base64: a
// single digit, another character, digits behind the padding.
TEST(Base64, AgreesWithTheStandard) {
  const struct {
    const char* bytes;
    const char* text;
  } cases[] = {{"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};
  for (const auto& one : cases) {
    EXPECT_EQ(encode_base64(one.bytes), one.text);
    EXPECT_EQ(decode_base64(one.text), one.bytes);
  }
  EXPECT_EQ(decode_base64("Zm9v\n YmFy\n"), "foobar");
  EXPECT_EQ(decode_base64(encode_base64("\xff\xfe")), "\xff\xfe");
  for (const char* bad : {"Z", "Zm9v!", "Zg==Zg", "Zm9vY"}) {
    EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace kube
