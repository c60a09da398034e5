#include "launcher/pmi.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace launcher {
namespace {

using Field = std::pair<std::string, std::string>;

// PMI-2 begins each message with its length, in this number of characters.
constexpr std::size_t kLengthDigits = 6;
constexpr std::size_t kNameBytesMax = 256;
constexpr std::size_t kKeyBytesMax = 64;
constexpr std::size_t kValueBytesMax = 1024;

std::string field_of(const std::vector<Field>& fields, std::string_view name) {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

// Reads "cmd=put key=a value=b", PMI-1.
std::vector<Field> fields_of_line(std::string_view line) {
  std::vector<Field> fields;
  while (!line.empty()) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, end);
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos) {
      fields.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    }
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return fields;
}

// Reads "cmd=kvs-put;key=a;value=b;;c;", PMI-2: a semicolon of a value is doubled.
std::vector<Field> fields_of_message(std::string_view message) {
  std::vector<Field> fields;
  std::string name;
  std::string value;
  bool in_value = false;
  for (std::size_t i = 0; i < message.size(); ++i) {
    const char c = message[i];
    const bool is_doubled = c == ';' && i + 1 < message.size() && message[i + 1] == ';';
    if (c == '=' && !in_value) {
      in_value = true;
    } else if (c == ';' && !(is_doubled && in_value)) {
      if (in_value) fields.emplace_back(std::exchange(name, {}), std::exchange(value, {}));
      in_value = false;
      name.clear();
    } else {
      (in_value ? value : name) += c;
      if (is_doubled) ++i;
    }
  }
  return fields;
}

std::string pmi1_line(const std::vector<Field>& fields) {
  std::string line;
  for (const auto& [name, value] : fields) {
    line += (line.empty() ? "" : " ") + name + "=" + value;
  }
  return line + "\n";
}

std::string pmi2_message(const std::vector<Field>& fields) {
  std::string message;
  for (const auto& [name, value] : fields) {
    message += name + "=";
    for (const char c : value) message += c == ';' ? std::string{";;"} : std::string{c};
    message += ";";
  }
  std::string length = std::to_string(message.size());
  length.insert(0, kLengthDigits - std::min(kLengthDigits, length.size()), ' ');
  return length + message;
}

std::string number(std::size_t value) {
  return std::to_string(value);
}

}  // namespace

std::string pmi_process_mapping(const std::vector<std::uint32_t>& nodes) {
  // Ranks that follow each other on a node, then nodes that follow each other with as many.
  struct Block {
    std::uint32_t first;
    std::uint32_t nodes;
    std::uint32_t ranks;
  };
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < nodes.size();) {
    std::size_t end = i;
    while (end < nodes.size() && nodes[end] == nodes[i]) ++end;
    const auto ranks = static_cast<std::uint32_t>(end - i);
    const bool continues = !blocks.empty() && blocks.back().ranks == ranks &&
                           nodes[i] == blocks.back().first + blocks.back().nodes;
    if (continues) {
      ++blocks.back().nodes;
    } else {
      blocks.push_back({nodes[i], 1, ranks});
    }
    i = end;
  }
  std::string text = "(vector";
  for (const Block& block : blocks) {
    const std::string first = number(block.first);
    text += ",(" + first + "," + number(block.nodes) + "," + number(block.ranks) + ")";
  }
  return text + ")";
}

PmiServer::PmiServer(std::string job, std::vector<std::uint32_t> nodes)
    : job_{std::move(job)},
      nodes_{std::move(nodes)},
      mapping_{pmi_process_mapping(nodes_)},
      tasks_(nodes_.size()) {
  // A mapping that does not fit into a value is not offered: clients then exchange the names of
  // their hosts.
  if (mapping_.size() <= kValueBytesMax) put("PMI_process_mapping", mapping_);
}

bool PmiServer::add(std::uint32_t rank, std::string_view bytes, std::vector<Reply>& replies) {
  Task& task = tasks_[rank];
  task.begun += bytes;
  while (!task.begun.empty()) {
    if (task.version < 2) {
      const std::size_t end = task.begun.find('\n');
      if (end == std::string::npos) return task.begun.size() <= kPmiMessageBytesMax;
      const std::string line = task.begun.substr(0, end);
      task.begun.erase(0, end + 1);
      if (!take_line(rank, line, replies)) return false;
      continue;
    }
    if (task.begun.size() < kLengthDigits) return true;
    const std::size_t first = std::min(task.begun.find_first_not_of(' '), kLengthDigits);
    std::size_t length = 0;
    const char* digits_end = task.begun.data() + kLengthDigits;
    const auto [end, error] = std::from_chars(task.begun.data() + first, digits_end, length);
    if (error != std::errc{} || end != digits_end || length > kPmiMessageBytesMax) return false;
    if (task.begun.size() < kLengthDigits + length) return true;
    const std::string message = task.begun.substr(kLengthDigits, length);
    task.begun.erase(0, kLengthDigits + length);
    if (!answer_2(rank, fields_of_message(message), replies)) return false;
  }
  return true;
}

// PMI-1, and the first words of PMI-2.
bool PmiServer::take_line(std::uint32_t rank, std::string_view line, std::vector<Reply>& replies) {
  const Fields fields = fields_of_line(line);
  const std::string command = field_of(fields, "cmd");
  if (command == "init") {
    const std::string version = field_of(fields, "pmi_version");
    const bool is_known = version == "1" || version == "2";
    if (is_known) tasks_[rank].version = version == "2" ? 2 : 1;
    replies.push_back({rank, pmi1_line({{"cmd", "response_to_init"},
                                      {"pmi_version", is_known ? version : "2"},
                                      {"pmi_subversion", version == "1" ? "1" : "0"},
                                      {"rc", is_known ? "0" : "-1"}})});
    return is_known;
  }
  return answer_1(rank, fields, replies);
}

bool PmiServer::answer_1(std::uint32_t rank, const Fields& fields, std::vector<Reply>& replies) {
  const std::string command = field_of(fields, "cmd");
  const auto answer = [&](const Fields& reply) { replies.push_back({rank, pmi1_line(reply)}); };
  if (command == "get_maxes") {
    answer({{"cmd", "maxes"},
            {"kvsname_max", number(kNameBytesMax)},
            {"keylen_max", number(kKeyBytesMax)},
            {"vallen_max", number(kValueBytesMax)},
            {"rc", "0"}});
  } else if (command == "get_appnum") {
    answer({{"cmd", "appnum"}, {"appnum", "0"}, {"rc", "0"}});
  } else if (command == "get_my_kvsname") {
    answer({{"cmd", "my_kvsname"}, {"kvsname", job_}, {"rc", "0"}});
  } else if (command == "get_universe_size") {
    answer({{"cmd", "universe_size"}, {"size", number(tasks_.size())}, {"rc", "0"}});
  } else if (command == "put") {
    const bool done = put(field_of(fields, "key"), field_of(fields, "value"));
    answer({{"cmd", "put_result"}, {"rc", done ? "0" : "-1"}, {"msg", done ? "success" : "full"}});
  } else if (command == "get") {
    const auto found = store_.find(field_of(fields, "key"));
    if (found == store_.end()) {
      answer({{"cmd", "get_result"}, {"rc", "-1"}, {"msg", "key_not_found"}, {"value", "unknown"}});
    } else {
      answer({{"cmd", "get_result"}, {"rc", "0"}, {"msg", "success"}, {"value", found->second}});
    }
  } else if (command == "barrier_in") {
    enter_barrier(rank, "", replies);
  } else if (command == "finalize") {
    answer({{"cmd", "finalize_ack"}, {"rc", "0"}});
  } else if (command == "abort") {
    end_step(rank, field_of(fields, "exitcode"), "");
  } else if (command == "publish_name" || command == "unpublish_name" || command == "lookup_name") {
    answer({{"cmd", command.substr(0, command.find('_')) + "_result"},
            {"rc", "-1"},
            {"msg", "not_supported"}});
  } else if (field_of(fields, "mcmd") == "spawn") {
    answer({{"cmd", "spawn_result"}, {"rc", "-1"}, {"msg", "not_supported"}});
  } else {
    // The lines of a spawn have no cmd; a command that is not known ends the connection.
    return command.empty() && tasks_[rank].version == 1;
  }
  return true;
}

bool PmiServer::answer_2(std::uint32_t rank, const Fields& fields, std::vector<Reply>& replies) {
  const std::string command = field_of(fields, "cmd");
  const std::string thread = field_of(fields, "thrid");
  Fields reply;
  bool waits = false;
  if (command == "fullinit") {
    reply = full_init(rank);
  } else if (command == "job-getid") {
    reply = {{"jobid", job_}, {"rc", "0"}};
  } else if (command == "info-getjobattr") {
    reply = job_attribute(field_of(fields, "key"));
  } else if (command == "info-putnodeattr") {
    reply = put_node_attribute(rank, fields, replies);
  } else if (command == "info-getnodeattr") {
    reply = node_attribute(rank, fields, waits);
  } else if (command == "kvs-put") {
    reply = {{"rc", put(field_of(fields, "key"), field_of(fields, "value")) ? "0" : "1"}};
  } else if (command == "kvs-get") {
    const auto found = store_.find(field_of(fields, "key"));
    if (found == store_.end()) {
      reply = {{"flag", "FALSE"}, {"rc", "0"}};
    } else {
      reply = {{"flag", "TRUE"}, {"value", found->second}, {"rc", "0"}};
    }
  } else if (command == "kvs-fence") {
    waits = true;
    enter_barrier(rank, thread, replies);
  } else if (command == "finalize") {
    reply = {{"rc", "0"}};
  } else if (command == "abort") {
    waits = true;
    end_step(rank, "", field_of(fields, "msg"));
  } else if (command == "spawn" || command.rfind("name-", 0) == 0 ||
             command.rfind("job-", 0) == 0) {
    reply = {{"rc", "1"}, {"errmsg", "not supported"}};
  } else {
    return false;
  }
  if (waits) return true;
  Fields whole{{"cmd", command + "-response"}};
  if (!thread.empty()) whole.emplace_back("thrid", thread);
  whole.insert(whole.end(), reply.begin(), reply.end());
  replies.push_back({rank, pmi2_message(whole)});
  return true;
}

PmiServer::Fields PmiServer::full_init(std::uint32_t rank) const {
  return {{"pmi-version", "2"},   {"pmi-subversion", "0"},
          {"rank", number(rank)}, {"size", number(tasks_.size())},
          {"appnum", "0"},        {"debugged", "FALSE"},
          {"pmiverbose", "FALSE"}, {"rc", "0"}};
}

PmiServer::Fields PmiServer::job_attribute(const std::string& key) const {
  if (key == "PMI_process_mapping") {
    return {{"flag", "TRUE"}, {"value", mapping_}, {"rc", "0"}};
  }
  if (key == "universeSize") {
    return {{"flag", "TRUE"}, {"value", number(tasks_.size())}, {"rc", "0"}};
  }
  return {{"flag", "FALSE"}, {"rc", "0"}};
}

PmiServer::Fields PmiServer::node_attribute(std::uint32_t rank, const Fields& fields, bool& waits) {
  const std::string key = field_of(fields, "key");
  const auto found = node_store_.find({nodes_[rank], key});
  if (found != node_store_.end()) {
    return {{"flag", "TRUE"}, {"value", found->second}, {"rc", "0"}};
  }
  waits = field_of(fields, "wait") == "TRUE";
  // A client waits for one thing at a time in each of its threads; more of them would be memory
  // without a bound.
  waits = waits && waiting_.size() < tasks_.size() * 4;
  if (waits) waiting_.push_back({rank, key, field_of(fields, "thrid")});
  return {{"flag", "FALSE"}, {"rc", "0"}};
}

PmiServer::Fields PmiServer::put_node_attribute(std::uint32_t rank, const Fields& fields,
                                                std::vector<Reply>& replies) {
  const std::string key = field_of(fields, "key");
  const std::string value = field_of(fields, "value");
  stored_bytes_ += key.size() + value.size();
  if (stored_bytes_ > kPmiStoreBytesMax) return {{"rc", "1"}, {"errmsg", "full"}};
  node_store_[{nodes_[rank], key}] = value;
  const auto is_met = [&](const Waiting& one) {
    return nodes_[one.rank] == nodes_[rank] && one.key == key;
  };
  for (const Waiting& one : waiting_) {
    if (!is_met(one)) continue;
    Fields reply{{"cmd", "info-getnodeattr-response"}};
    if (!one.thread.empty()) reply.emplace_back("thrid", one.thread);
    reply.insert(reply.end(), {{"flag", "TRUE"}, {"value", value}, {"rc", "0"}});
    replies.push_back({one.rank, pmi2_message(reply)});
  }
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_met), waiting_.end());
  return {{"rc", "0"}};
}

bool PmiServer::put(const std::string& key, const std::string& value) {
  stored_bytes_ += key.size() + value.size();
  if (stored_bytes_ > kPmiStoreBytesMax) return false;
  store_[key] = value;
  return true;
}

// All leave together, each in its own language.
void PmiServer::enter_barrier(std::uint32_t rank, std::string thread,
                              std::vector<Reply>& replies) {
  Task& entered = tasks_[rank];
  entered.thread = std::move(thread);
  if (!std::exchange(entered.in_barrier, true)) ++in_barrier_;
  if (in_barrier_ < tasks_.size()) return;
  in_barrier_ = 0;
  for (std::uint32_t each = 0; each < tasks_.size(); ++each) {
    Task& task = tasks_[each];
    task.in_barrier = false;
    if (task.version < 2) {
      replies.push_back({each, pmi1_line({{"cmd", "barrier_out"}, {"rc", "0"}})});
      continue;
    }
    Fields reply{{"cmd", "kvs-fence-response"}};
    if (!task.thread.empty()) reply.emplace_back("thrid", std::exchange(task.thread, {}));
    reply.emplace_back("rc", "0");
    replies.push_back({each, pmi2_message(reply)});
  }
}

// The first one counts.
void PmiServer::end_step(std::uint32_t rank, const std::string& exit_code,
                         const std::string& message) {
  if (abort_) return;
  std::int32_t code = 1;
  std::from_chars(exit_code.data(), exit_code.data() + exit_code.size(), code);
  abort_ = Abort{rank, code, message};
}

}  // namespace launcher
