#include "e2e/devcluster/kubelet/name_server.h"

#include <gtest/gtest.h>

namespace devcluster {
namespace {

std::string question(const std::string& name, char type) {
  std::string text{"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00", 12};
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    text += static_cast<char>(end - at);
    text += name.substr(at, end - at);
    at = end + 1;
  }
  return text + std::string{"\0\0", 2} + type + std::string{"\0\1", 2};
}

TEST(NameServer, KnowsPodsByTheirNames) {
  PodNames names;
  names.set("n1.job.ns.svc.cluster.local", "127.64.0.1");
  const std::string reply = answer(question("n1.job.ns.svc.cluster.local", 1), names);
  EXPECT_EQ(reply.substr(0, 4), std::string("\x12\x34\x84\x00", 4));
  EXPECT_EQ(reply.substr(reply.size() - 4), std::string("\x7f\x40\x00\x01", 4));
  const std::string of_six = answer(question("n1.job.ns.svc.cluster.local", 28), names);
  EXPECT_EQ(of_six[3], '\0') << "the name exists, with no such address";
  EXPECT_EQ(answer(question("n2.job.ns.svc.cluster.local", 1), names)[3], 3);
  names.remove("n1.job.ns.svc.cluster.local", "127.64.0.2");
  EXPECT_EQ(answer(question("n1.job.ns.svc.cluster.local", 1), names)[3], '\0') << "of another pod";
  names.remove("n1.job.ns.svc.cluster.local", "127.64.0.1");
  EXPECT_EQ(answer(question("n1.job.ns.svc.cluster.local", 1), names)[3], 3);
}

TEST(NameServer, APortIsThatOfTheFirstPod) {
  PodNames names;
  const std::string domain = "job.ns.svc.cluster.local";
  const std::string asked = question("_first-7._tcp." + domain, 33);
  EXPECT_EQ(answer(asked, names)[3], 3);
  names.set_first(domain, "n1");
  EXPECT_EQ(answer(asked, names)[3], 3) << "it has no address";
  names.set("n1." + domain, "127.64.0.1");
  const std::string reply = answer(asked, names);
  EXPECT_EQ(reply[3], '\0');
  // "n1", and the domain as it stands behind "_first-7" and "_tcp" in the question.
  EXPECT_EQ(reply.substr(reply.size() - 5), std::string("\x02n1\xC0\x1A", 5));
  EXPECT_EQ(answer(question("_first-7._tcp." + domain, 1), names)[7], '\0') << "no address";
  names.remove("n1." + domain, "127.64.0.1");
  EXPECT_EQ(answer(asked, names)[3], 3);
}

TEST(NameServer, WhatIsNotAQuestionHasNoAnswer) {
  const PodNames names;
  const std::string whole = question("a.b", 1);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(answer(whole.substr(0, size), names), "") << size;
  }
}

}  // namespace
}  // namespace devcluster
