#include "e2e/devcluster/kubelet/name_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <stop_token>
#include <utility>
#include <vector>

#include "linux/system_error.h"

namespace devcluster {
namespace {

constexpr std::uint16_t kPort = 53;
constexpr int kAddressesMax = 250;
constexpr std::size_t kQuestionBytesMax = 512;
constexpr int kLookMs = 100;  // for the end of the thread
constexpr std::size_t kHeadBytes = 12;
constexpr std::uint16_t kTypeA = 1;
constexpr std::uint16_t kTypePort = 33;  // SRV
// In names: the rest of it stands at that byte of the message.
constexpr std::uint16_t kStandsAt = 0xC000;
// A response with authority; the second byte is the code.
constexpr char kResponse = '\x84';
constexpr char kNoSuchName = 3;

void put(std::string& out, std::uint16_t number) {
  out += static_cast<char>(number >> 8U);
  out += static_cast<char>(number & 0xFFU);
}

std::uint16_t number_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint16_t>((static_cast<unsigned char>(text[at]) << 8U) |
                                    static_cast<unsigned char>(text[at + 1]));
}

struct Record {
  std::uint16_t type = 0;  // 0: there is no such name
  std::string data{};
};

Record address_record(const std::string& name, const PodNames& names) {
  const auto address = names.find(name);
  in_addr bytes{};
  if (!address || ::inet_pton(AF_INET, address->c_str(), &bytes) != 1) return {};
  return {kTypeA, {reinterpret_cast<const char*>(&bytes), sizeof bytes}};
}

// Answers for `_<port>._tcp.<domain>`: the host name of the job's first pod, and where the domain
// stands in the question.
Record port_record(const std::string& name, const std::vector<std::size_t>& labels,
                   const PodNames& names) {
  const std::size_t domain = labels[2] - kHeadBytes;
  const auto host = names.find_first(name.substr(domain));
  if (!host) return {};
  std::string data(6, '\0');  // priority, weight, port
  data += static_cast<char>(host->size());
  data += *host;
  put(data, static_cast<std::uint16_t>(kStandsAt | labels[2]));
  return {kTypePort, data};
}

void serve(const std::stop_token& stop, int fd, const PodNames& names) {
  while (!stop.stop_requested()) {
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, kLookMs) <= 0) continue;
    std::array<char, kQuestionBytesMax> bytes{};
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const ssize_t count = ::recvfrom(fd, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                     reinterpret_cast<sockaddr*>(&from), &size);
    if (count <= 0) continue;
    const std::string reply = answer({bytes.data(), static_cast<std::size_t>(count)}, names);
    if (reply.empty()) continue;
    (void)::sendto(fd, reply.data(), reply.size(), MSG_DONTWAIT,
                   reinterpret_cast<const sockaddr*>(&from), size);
  }
}

}  // namespace

void PodNames::set(const std::string& name, const std::string& address) {
  const std::lock_guard lock{mutex_};
  addresses_[name] = address;
}

void PodNames::remove(const std::string& name, const std::string& address) {
  const std::lock_guard lock{mutex_};
  const auto found = addresses_.find(name);
  if (found != addresses_.end() && found->second == address) addresses_.erase(found);
}

std::optional<std::string> PodNames::find(const std::string& name) const {
  const std::lock_guard lock{mutex_};
  const auto found = addresses_.find(name);
  return found == addresses_.end() ? std::nullopt : std::optional{found->second};
}

void PodNames::set_first(const std::string& domain, const std::string& hostname) {
  const std::lock_guard lock{mutex_};
  firsts_[domain] = hostname;
}

// While the pod is there.
std::optional<std::string> PodNames::find_first(const std::string& domain) const {
  const std::lock_guard lock{mutex_};
  const auto found = firsts_.find(domain);
  if (found == firsts_.end() || !addresses_.contains(found->second + "." + domain)) {
    return std::nullopt;
  }
  return found->second;
}

std::string answer(std::string_view question, const PodNames& names) {
  if (question.size() < kHeadBytes || (question[2] & '\x80') != 0 || number_at(question, 4) != 1) {
    return "";
  }
  std::string name;
  std::vector<std::size_t> labels;  // where each begins
  std::size_t at = kHeadBytes;
  while (at < question.size() && question[at] != '\0') {
    const std::size_t size = static_cast<unsigned char>(question[at]);
    if (at + 1 + size >= question.size()) return "";
    labels.push_back(at);
    if (!name.empty()) name += '.';
    name += question.substr(at + 1, size);
    at += 1 + size;
  }
  const std::size_t end = at + 5;  // the last label, type and class
  if (end > question.size()) return "";
  const std::uint16_t type = number_at(question, at + 1);
  const bool is_port = name.starts_with('_') && labels.size() > 2;
  const Record record = is_port ? port_record(name, labels, names) : address_record(name, names);
  const bool has_answer = record.type == type;
  std::string reply{question.substr(0, 2)};
  reply += kResponse;
  reply += record.type == 0 ? kNoSuchName : '\0';
  for (const bool is_there : {true, has_answer, false, false}) put(reply, is_there ? 1 : 0);
  reply += question.substr(kHeadBytes, end - kHeadBytes);
  if (!has_answer) return reply;
  for (const std::uint16_t field :
       {static_cast<std::uint16_t>(kStandsAt | kHeadBytes), type, std::uint16_t{1},
        std::uint16_t{0}, std::uint16_t{1}, static_cast<std::uint16_t>(record.data.size())}) {
    put(reply, field);
  }
  return reply + record.data;
}

// Each devcluster of this machine has an address of its own.
base::Result<NameServer> NameServer::start(const PodNames& names) {
  NameServer server;
  server.socket_ = os::FileDescriptor{::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  for (int last = 1; last <= kAddressesMax; ++last) {
    server.address_ = "127.53.0." + std::to_string(last);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(kPort);
    ::inet_pton(AF_INET, server.address_.c_str(), &own.sin_addr);
    if (::bind(server.socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0) {
      server.number_ = last;
      const int fd = server.socket_.get();
      server.thread_ =
          std::jthread{[fd, &names](const std::stop_token& stop) { serve(stop, fd, names); }};
      return server;
    }
    if (errno != EADDRINUSE) break;
  }
  return os::error_from_errno("the name server at " + server.address_, errno);
}

}  // namespace devcluster
