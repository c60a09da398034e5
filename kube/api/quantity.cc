#include "kube/api/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace kube {
namespace {

// All arithmetic uses fractions of 128 bits: thousandths and binary units stay exact, and a value
// that does not fit is seen before it overflows.
__extension__ typedef __int128 Wide;
// 2^127 - 1; there is no numeric_limits for this type.
constexpr Wide kWideMax = (~Wide{0}) ^ (Wide{1} << 127U);
// The largest Quantity.
constexpr std::int64_t kMilliMax = std::numeric_limits<std::int64_t>::max();

// A factor as a fraction, since suffixes below 1 (m, u, n) divide.
struct Scale {
  Wide multiply = 1;
  Wide divide = 1;
};

// Factors to thousandths of a unit.
// nullopt for an unknown suffix. The binary suffixes are powers of 1,024, the others of 1,000; "k"
// is small and "Ki" begins with a capital, as Kubernetes has them.
std::optional<Scale> scale_of(std::string_view suffix) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 12> kUpward{{
      {"", 1},
      {"k", 1'000},
      {"M", 1'000'000},
      {"G", 1'000'000'000},
      {"T", 1'000'000'000'000},
      {"P", 1'000'000'000'000'000},
      {"E", 1'000'000'000'000'000'000},
      {"Ki", std::int64_t{1} << 10U},
      {"Mi", std::int64_t{1} << 20U},
      {"Gi", std::int64_t{1} << 30U},
      {"Ti", std::int64_t{1} << 40U},
      {"Pi", std::int64_t{1} << 50U},
  }};
  for (const auto& [name, factor] : kUpward) {
    if (name == suffix) return Scale{.multiply = Wide{factor} * 1000};
  }
  if (suffix == "Ei") return Scale{.multiply = (Wide{1} << 60U) * 1000};
  if (suffix == "m") return Scale{};
  if (suffix == "u") return Scale{.divide = 1'000};
  if (suffix == "n") return Scale{.divide = 1'000'000};
  return std::nullopt;
}

// Returns the factor of a decimal exponent, "e3" or "E-2"; nullopt if it is none or out of range.
// "1E" is not one: E alone is the suffix of 10^18.
std::optional<Scale> exponent_of(std::string_view suffix) {
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view digits = suffix.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  int exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  // Thousandths. The bounds keep both powers of ten below 2^127.
  exponent += 3;
  if (exponent > 21 || exponent < -18) return std::nullopt;
  Scale scale;
  for (; exponent > 0; --exponent) scale.multiply *= 10;
  for (; exponent < 0; ++exponent) scale.divide *= 10;
  return scale;
}

// Views into the text. The digits are not turned into a number yet, so there may be any number of
// them.
struct Number {
  std::string_view whole;     // the digits before the point
  std::string_view fraction;  // and those after it
  std::size_t length = 0;     // characters read; 0 = no number
};

// Signs and suffixes are the caller's.
Number read_number(std::string_view text) {
  const auto digits_at = [text](std::size_t begin) {
    std::size_t end = begin;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    return text.substr(begin, end - begin);
  };
  Number number;
  number.whole = digits_at(0);
  number.length = number.whole.size();
  if (number.length < text.size() && text[number.length] == '.') {
    number.fraction = digits_at(number.length + 1);
    number.length += 1 + number.fraction.size();
  }
  if (number.whole.empty() && number.fraction.empty()) number.length = 0;  // "."
  return number;
}

// A product without its fraction, and whether that was other than 0.
struct Product {
  Wide whole = 0;
  bool has_fraction = false;
};

// Multiplies digit by digit, as on paper, so a fraction may have any number of digits. nullopt if
// the product does not fit; it is far above kMilliMax then, whatever it is divided by. REQUIRES:
// `factor` is at most 2^60 thousand.
std::optional<Product> multiply(const Number& number, Wide factor) {
  Product product;
  // Goes from right to left: a carry over the point goes to the whole part.
  for (auto digit = number.fraction.rbegin(); digit != number.fraction.rend(); ++digit) {
    const Wide sum = (*digit - '0') * factor + product.whole;
    product.has_fraction = product.has_fraction || sum % 10 != 0;
    product.whole = sum / 10;
  }
  Wide whole = 0;
  for (const char digit : number.whole) {
    if (whole > kWideMax / 10 - 1) return std::nullopt;
    whole = whole * 10 + (digit - '0');
  }
  // Checked before it is made: an overflow of a signed number is undefined.
  if (whole > (kWideMax - product.whole) / factor) return std::nullopt;
  product.whole += whole * factor;
  return product;
}

}  // namespace

// 1. the sign; 2. the digits; 3. the suffix, of units or of an exponent; 4. mantissa x multiply
//    over divide, each product checked before it is made; 5. rounded up to whole thousandths, and
//    down to the largest Quantity: an object with a larger amount must be readable all the same.
base::Result<Quantity> parse_quantity(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    return base::invalid_argument("invalid quantity \"" + std::string{text} + "\" (" +
                                  std::string{why} + ")");
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const Number number = read_number(rest);
  if (number.length == 0) return bad("examples: 512Mi, 2, 100m");
  const std::string_view suffix = rest.substr(number.length);
  std::optional<Scale> scale = scale_of(suffix);
  if (!scale) scale = exponent_of(suffix);
  if (!scale) return bad("unknown suffix \"" + std::string{suffix} + "\"");
  // Multiplied first and divided afterwards, so that nothing is lost in between.
  Wide milli = kMilliMax;
  if (const auto product = multiply(number, scale->multiply)) {
    // Away from zero, as Quantity.Value() and MilliValue() do.
    const bool is_cut = product->has_fraction || product->whole % scale->divide != 0;
    milli = product->whole / scale->divide + (is_cut ? 1 : 0);
  }
  const auto value = static_cast<std::int64_t>(std::min<Wide>(milli, kMilliMax));
  return Quantity::from_milli(negative ? -value : value);
}

std::string format_bytes(Bytes bytes) {
  static constexpr std::array<std::string_view, 7> kSuffixes{"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};
  // The largest unit that leaves a whole number, as Kubernetes writes binary quantities.
  std::int64_t value = bytes.value();
  std::size_t power = 0;
  while (value != 0 && value % 1024 == 0 && power + 1 < kSuffixes.size()) {
    value /= 1024;
    ++power;
  }
  return std::to_string(value) + std::string{kSuffixes[power]};
}

// Whole units without a suffix, else thousandths: 1500m.
std::string format_decimal(Quantity quantity) {
  if (quantity.milli() % 1000 == 0) return std::to_string(quantity.milli() / 1000);
  return std::to_string(quantity.milli()) + "m";
}

// A thousandth of a byte has no binary spelling and is written as a decimal number.
std::string format_quantity(std::string_view resource_name, Quantity quantity) {
  const bool binary = resource_name == "memory" || resource_name == "storage" ||
                      resource_name.ends_with("-storage") ||
                      resource_name.starts_with("hugepages-");
  if (binary && quantity.milli() % 1000 == 0) return format_bytes(quantity.bytes());
  return format_decimal(quantity);
}

}  // namespace kube
