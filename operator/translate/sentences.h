// Several problems of one object as the message of one condition.
#pragma once

#include <string>
#include <vector>

namespace control {

inline std::string joined(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : "; ") + sentence;
  return text;
}

}  // namespace control
