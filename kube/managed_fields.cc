#include "kube/managed_fields.h"

#include <cstring>

namespace kube {
namespace {

// API servers write compact JSON; a text with a blank here is left as it is, and only costs more.
constexpr std::string_view kName = R"("managedFields":[)";

// Returns where the next field of that name begins, npos if there is none. A quote inside a string
// is escaped, so a quote right behind a brace or a comma that is outside of strings begins a name;
// inside a string the text reads {\" and does not match.
std::size_t find_name(std::string_view text, std::size_t from) {
  while (from < text.size()) {
    const void* found =
        ::memmem(text.data() + from, text.size() - from, kName.data(), kName.size());
    if (found == nullptr) break;
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    if (at > 0 && (text[at - 1] == '{' || text[at - 1] == ',')) return at;
    from = at + kName.size();
  }
  return std::string_view::npos;
}

// Behind the list that begins at `at`; npos when it does not end.
std::size_t end_of_list(std::string_view text, std::size_t at) {
  int depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

// Works on the text, in one pass and without building a tree. A text that is not JSON comes back
// unchanged as far as the list does not end; the parser reports it then.
std::string without_managed_fields(std::string_view text) {
  std::string out;
  std::size_t copied = 0;
  for (std::size_t at = find_name(text, 0); at != std::string_view::npos;
       at = find_name(text, copied)) {
    std::size_t end = end_of_list(text, at + kName.size() - 1);
    if (end == std::string_view::npos) break;
    out += text.substr(copied, at - copied);
    // One of the commas around it goes too.
    if (end < text.size() && text[end] == ',') {
      ++end;
    } else if (!out.empty() && out.back() == ',') {
      out.pop_back();
    }
    copied = end;
  }
  out += text.substr(copied);
  return out;
}

}  // namespace kube
