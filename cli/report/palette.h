// Colors that color-blind people can tell apart, on white. SOURCE: Okabe and Ito, "Color universal
// design", 2008; without black, which is for text and axes.
#pragma once

#include <array>
#include <string_view>

namespace cli {

struct PaletteColor {
  std::string_view fill;
  std::string_view text;  // readable on it
};

inline constexpr std::array<PaletteColor, 7> kPalette = {{{"#0072B2", "white"},
                                                          {"#E69F00", "black"},
                                                          {"#009E73", "white"},
                                                          {"#D55E00", "white"},
                                                          {"#56B4E9", "black"},
                                                          {"#CC79A7", "black"},
                                                          {"#F0E442", "black"}}};

}  // namespace cli
