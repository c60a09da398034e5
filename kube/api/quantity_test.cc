#include "kube/api/quantity.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

// Milli values by hand: 512Mi = 512 · 2^20 bytes = 512 · 2^20 · 1000 thousandths. 500n and 3u are
// below a thousandth and become one, as in Kubernetes, which rounds away from zero.
TEST(ParseQuantity, ReadsKubernetesSpellings) {
  const struct {
    const char* text;
    std::int64_t milli;
  } cases[] = {
      {"0", 0},
      {"2", 2'000},
      {"100m", 100},
      {"1.5", 1'500},
      {"0.0001", 1},  // finer than a thousandth: rounded up
      {"512Mi", 512LL * 1024 * 1024 * 1000},
      {"1Gi", 1024LL * 1024 * 1024 * 1000},
      {"1.5Gi", 1536LL * 1024 * 1024 * 1000},
      {"1k", 1'000'000},
      {"1e3", 1'000'000},
      {"1E3", 1'000'000},
      {"12e-1", 1'200},
      {"1P", 1'000'000'000'000'000'000},
      {"500n", 1},
      {"1.00000000000000000000000000", 1'000},  // any number of digits
      {"0.00000000000000000000000001", 1},
      {"0.50000000000000000000000001Gi", 512LL * 1024 * 1024 * 1000 + 1},
      {"0.0012345678901234567890Ei", 1'423'359'869'420'436'338},  // exactly
      {"1000000000000000000000000n", 1'000'000'000'000'000'000},
      {"3u", 1},
      {"-1", -1'000},
      {"+1", 1'000},
      // The largest is about 9.2 · 10^15 units, 2^63 - 1 thousandths: everything above is read as
      // that, also what does not fit into 128 bits on the way.
      {"9223372036854775807m", INT64_MAX},
      {"10E", INT64_MAX},
      {"100Pi", INT64_MAX},
      {"99999999999Ei", INT64_MAX},
      {"123456789012345678901234567890", INT64_MAX},
      {"99999999999999999999999999999999999999999n", INT64_MAX},
      {"-10E", -INT64_MAX},
  };
  for (const auto& one : cases) {
    const auto got = parse_quantity(one.text);
    ASSERT_TRUE(got.ok()) << one.text;
    EXPECT_EQ(got->milli(), one.milli) << one.text;
  }
}

// 1e99 is a way to write an amount that no program takes.
TEST(ParseQuantity, RefusesWithTheText) {
  for (const char* text : {"", "Mi", "1MiB", "1.2.3", "one", "1 Gi", "--1", "1e99"}) {
    const auto got = parse_quantity(text);
    ASSERT_FALSE(got.ok()) << text;
    EXPECT_NE(got.error().message.find("\"" + std::string{text} + "\""), std::string::npos);
  }
}

// 1000 bytes have no binary unit. 1024 CPUs must not become "1Ki". Users compare these texts with
// those of kubectl.
TEST(FormatQuantity, UsesTheUsualSpellingOfTheResource) {
  EXPECT_EQ(format_quantity("memory", Quantity::from_units(512LL << 20U)), "512Mi");
  EXPECT_EQ(format_quantity("memory", Quantity::from_units(1000)), "1000");
  EXPECT_EQ(format_quantity("memory", Quantity{}), "0");
  EXPECT_EQ(format_quantity("cpu", Quantity::from_milli(100)), "100m");
  EXPECT_EQ(format_quantity("cpu", Quantity::from_units(1024)), "1024");
  EXPECT_EQ(format_quantity("ephemeral-storage", Quantity::from_units(1LL << 30U)), "1Gi");
}

// At and beside powers of 1024, where a unit is chosen, and the largest that is read.
TEST(FormatBytes, ComesBackAsItWas) {
  for (const std::int64_t bytes :
       {1LL, 1023LL, 1024LL, 1536LL, 5LL << 40U, (1LL << 40U) + 1, 9'223'372'036'854'776LL}) {
    EXPECT_EQ(parse_quantity(format_bytes(Bytes{bytes}))->bytes(), Bytes{bytes});
  }
}

}  // namespace
}  // namespace kube
