// Several problems of one object as the message of one condition.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/cut_text.h"
#include "kube/api/meta.h"

namespace control {

// Leaves room in a message for how the sentence ends ("; the job goes on without this").
inline constexpr std::size_t kJoinedBytesMax = kube::kStatusMessageBytesMax - 128;

// Joins as many of them as fit, the first one at least, and says how many more there are.
inline std::string joined(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return "";
  std::string text = base::shortened(sentences.front(), kJoinedBytesMax);
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    if (text.size() + 2 + sentences[i].size() > kJoinedBytesMax) {
      return text + "; and " + std::to_string(sentences.size() - i) + " more";
    }
    text += "; " + sentences[i];
  }
  return text;
}

}  // namespace control
