#include "launcher/message.h"

#include <cstring>

namespace launcher {
namespace {

constexpr std::size_t kHeadBytes = 2 * sizeof(std::uint32_t);
constexpr auto kKindMax = static_cast<std::uint32_t>(Kind::kDone);

void put(std::string& out, std::uint32_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof number);
}

void put(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

void put(std::string& out, const std::vector<std::string>& words) {
  put(out, static_cast<std::uint32_t>(words.size()));
  for (const std::string& word : words) put(out, std::string_view{word});
}

// Reads fields in the order in which they were put. After a field that is not there `is_good` is
// false, and all others are empty.
struct Fields {
  std::string_view left;
  bool is_good = true;

  std::uint32_t number() {
    std::uint32_t value = 0;
    if (left.size() < sizeof value) {
      is_good = false;
      left = {};
      return 0;
    }
    std::memcpy(&value, left.data(), sizeof value);
    left.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint32_t size = number();
    if (size > left.size()) {
      is_good = false;
      left = {};
      return {};
    }
    std::string value{left.substr(0, size)};
    left.remove_prefix(size);
    return value;
  }
  std::vector<std::string> words() {
    std::vector<std::string> all;
    // Each word has a length of its own, so a count that is too large ends with the bytes.
    for (std::uint32_t count = number(); count > 0 && is_good; --count) all.push_back(text());
    return all;
  }
};

StepRequest read_step(Fields& fields) {
  StepRequest step;
  step.secret = fields.text();
  step.tasks = fields.number();
  step.cpus = fields.number();
  step.is_immediate = fields.number() != 0;
  step.directory = fields.text();
  for (std::uint32_t count = fields.number(); count > 0 && fields.is_good; --count) {
    step.programs.push_back(fields.words());
    if (step.programs.back().empty()) fields.is_good = false;
  }
  step.environment = fields.words();
  const bool fits = step.tasks >= 1 && step.tasks <= kTasksMax &&
                    (step.programs.size() == 1 || step.programs.size() == step.tasks);
  if (!fits) fields.is_good = false;
  return step;
}

}  // namespace

std::string encode(const Message& message) {
  std::string body;
  put(body, message.rank);
  put(body, message.number);
  put(body, std::string_view{message.text});
  if (message.step) {
    const StepRequest& step = *message.step;
    put(body, std::string_view{step.secret});
    put(body, step.tasks);
    put(body, step.cpus);
    put(body, std::uint32_t{step.is_immediate});
    put(body, std::string_view{step.directory});
    put(body, static_cast<std::uint32_t>(step.programs.size()));
    for (const std::vector<std::string>& program : step.programs) put(body, program);
    put(body, step.environment);
  }
  std::string out;
  put(out, static_cast<std::uint32_t>(message.kind));
  put(out, std::string_view{body});
  return out;
}

std::optional<Message> MessageReader::next() {
  if (is_broken_ || pending_.size() < kHeadBytes) return std::nullopt;
  Fields head{std::string_view{pending_}.substr(0, kHeadBytes)};
  const std::uint32_t kind = head.number();
  const std::uint32_t size = head.number();
  if (kind < 1 || kind > kKindMax || size > kMessageBytesMax) {
    is_broken_ = true;
    return std::nullopt;
  }
  if (pending_.size() < kHeadBytes + size) return std::nullopt;
  Message message{.kind = static_cast<Kind>(kind)};
  Fields fields{std::string_view{pending_}.substr(kHeadBytes, size)};
  message.rank = fields.number();
  message.number = fields.number();
  message.text = fields.text();
  if (message.kind == Kind::kCreate) message.step = read_step(fields);
  if (!fields.is_good || !fields.left.empty()) {
    is_broken_ = true;
    return std::nullopt;
  }
  pending_.erase(0, kHeadBytes + size);
  return message;
}

}  // namespace launcher
