#include "launcher/pmi.h"

#include <gtest/gtest.h>

namespace launcher {
namespace {

using Reply = PmiServer::Reply;

std::string v2(const std::string& message) {
  std::string length = std::to_string(message.size());
  return std::string(6 - length.size(), ' ') + length + message;
}

// A server that is spoken to, and what it answered last.
struct Step {
  PmiServer server;
  std::vector<Reply> replies;
  bool spoken = true;

  explicit Step(std::vector<std::uint32_t> nodes) : server{"1001.0", std::move(nodes)} {}
  std::vector<Reply> say(std::uint32_t rank, std::string_view bytes) {
    replies.clear();
    spoken = server.add(rank, bytes, replies);
    return replies;
  }
  std::string ask(std::uint32_t rank, std::string_view bytes) {
    const auto got = say(rank, bytes);
    return got.size() == 1 && got[0].rank == rank ? got[0].bytes : "no answer";
  }
  void init_2(std::uint32_t rank) {
    EXPECT_EQ(ask(rank, "cmd=init pmi_version=2 pmi_subversion=0\n"),
              "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
  }
};

TEST(PmiServer, Pmi1MeetsExchangesAndLeaves) {
  Step step{{0, 0}};
  for (const std::uint32_t rank : {0U, 1U}) {
    EXPECT_EQ(step.ask(rank, "cmd=init pmi_version=1 pmi_subversion=1\n"),
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
  }
  EXPECT_EQ(step.ask(0, "cmd=get_maxes\n"),
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0\n");
  EXPECT_EQ(step.ask(0, "cmd=get_appnum\n"), "cmd=appnum appnum=0 rc=0\n");
  EXPECT_EQ(step.ask(0, "cmd=get_my_kvsname\n"), "cmd=my_kvsname kvsname=1001.0 rc=0\n");
  EXPECT_EQ(step.ask(0, "cmd=get_universe_size\n"), "cmd=universe_size size=2 rc=0\n");
  EXPECT_EQ(step.ask(0, "cmd=get kvsname=1001.0 key=PMI_process_mapping\n"),
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,2))\n");
  EXPECT_EQ(step.ask(1, "cmd=put kvsname=1001.0 key=P1-card value=port#4=$x\n"),
            "cmd=put_result rc=0 msg=success\n");
  EXPECT_EQ(step.say(0, "cmd=barrier_in\n"), std::vector<Reply>{});
  EXPECT_EQ(step.say(1, "cmd=barrier_in\n"),
            (std::vector<Reply>{{0, "cmd=barrier_out rc=0\n"}, {1, "cmd=barrier_out rc=0\n"}}));
  EXPECT_EQ(step.ask(0, "cmd=get kvsname=1001.0 key=P1-card\n"),
            "cmd=get_result rc=0 msg=success value=port#4=$x\n");
  EXPECT_EQ(step.ask(0, "cmd=get kvsname=1001.0 key=P2-card\n"),
            "cmd=get_result rc=-1 msg=key_not_found value=unknown\n");
  EXPECT_EQ(step.ask(0, "cmd=finalize\n"), "cmd=finalize_ack rc=0\n");
}

TEST(PmiServer, Pmi2MeetsExchangesAndLeaves) {
  Step step{{0, 1}};
  step.init_2(0);
  step.init_2(1);
  EXPECT_EQ(step.ask(1, v2("cmd=fullinit;pmijobid=1001.0;pmirank=1;threaded=FALSE;")),
            v2("cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=0;"
               "debugged=FALSE;pmiverbose=FALSE;rc=0;"));
  EXPECT_EQ(step.ask(0, v2("cmd=job-getid;")), v2("cmd=job-getid-response;jobid=1001.0;rc=0;"));
  EXPECT_EQ(step.ask(0, v2("cmd=info-getjobattr;key=PMI_process_mapping;")),
            v2("cmd=info-getjobattr-response;flag=TRUE;value=(vector,(0,2,1));rc=0;"));
  EXPECT_EQ(step.ask(0, v2("cmd=kvs-put;key=a;value=x;;y=z;")), v2("cmd=kvs-put-response;rc=0;"));
  EXPECT_EQ(step.say(0, v2("cmd=kvs-fence;")), std::vector<Reply>{});
  EXPECT_EQ(step.say(1, v2("cmd=kvs-fence;thrid=7;")),
            (std::vector<Reply>{{0, v2("cmd=kvs-fence-response;rc=0;")},
                                {1, v2("cmd=kvs-fence-response;thrid=7;rc=0;")}}));
  EXPECT_EQ(step.ask(1, v2("cmd=kvs-get;jobid=1001.0;srcid=0;key=a;thrid=7;")),
            v2("cmd=kvs-get-response;thrid=7;flag=TRUE;value=x;;y=z;rc=0;"));
  EXPECT_EQ(step.ask(1, v2("cmd=kvs-get;key=b;")), v2("cmd=kvs-get-response;flag=FALSE;rc=0;"));
  EXPECT_EQ(step.ask(1, v2("cmd=finalize;")), v2("cmd=finalize-response;rc=0;"));
}

TEST(PmiServer, AttributesAreOfANode) {
  Step step{{0, 0, 1}};
  for (const std::uint32_t rank : {0U, 1U, 2U}) step.init_2(rank);
  EXPECT_EQ(step.say(1, v2("cmd=info-getnodeattr;key=shm;wait=TRUE;")), std::vector<Reply>{});
  EXPECT_EQ(step.ask(2, v2("cmd=info-putnodeattr;key=shm;value=elsewhere;")),
            v2("cmd=info-putnodeattr-response;rc=0;"));
  EXPECT_EQ(step.say(0, v2("cmd=info-putnodeattr;key=shm;value=here;")),
            (std::vector<Reply>{{1, v2("cmd=info-getnodeattr-response;flag=TRUE;value=here;rc=0;")},
                                {0, v2("cmd=info-putnodeattr-response;rc=0;")}}));
  EXPECT_EQ(step.ask(2, v2("cmd=info-getnodeattr;key=shm;wait=FALSE;")),
            v2("cmd=info-getnodeattr-response;flag=TRUE;value=elsewhere;rc=0;"));
}

TEST(PmiServer, MessagesMayComeInPieces) {
  Step step{{0}};
  const std::string all = "cmd=init pmi_version=2 pmi_subversion=0\n" + v2("cmd=job-getid;") +
                          v2("cmd=finalize;");
  std::string got;
  for (const char c : all) {
    for (const Reply& reply : step.say(0, std::string_view{&c, 1})) got += reply.bytes;
  }
  EXPECT_EQ(got, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n" +
                     v2("cmd=job-getid-response;jobid=1001.0;rc=0;") +
                     v2("cmd=finalize-response;rc=0;"));
}

TEST(PmiServer, AnAbortIsKept) {
  Step one{{0}};
  one.say(0, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=abort exitcode=7\n");
  EXPECT_EQ(one.server.abort(), (PmiServer::Abort{0, 7, ""}));
  Step two{{0}};
  two.init_2(0);
  two.say(0, v2("cmd=abort;isworld=TRUE;msg=lost;"));
  EXPECT_EQ(two.server.abort(), (PmiServer::Abort{0, 1, "lost"}));
}

TEST(PmiServer, WhoSpeaksSomethingElseIsCutOff) {
  for (const std::string& words :
       {std::string{"GET / HTTP/1.1\n"}, std::string{"cmd=init pmi_version=3\n"},
        std::string(kPmiMessageBytesMax + 1, 'x'),
        std::string{"cmd=init pmi_version=2 pmi_subversion=0\n     xcmd=job-getid;"},
        std::string{"cmd=init pmi_version=2 pmi_subversion=0\n999999"}}) {
    Step step{{0}};
    step.say(0, words);
    EXPECT_FALSE(step.spoken) << words.substr(0, 60);
  }
}

TEST(PmiServer, TheMappingSaysWhichRanksShareANode) {
  EXPECT_EQ(pmi_process_mapping({0, 0, 1, 1, 2, 2}), "(vector,(0,3,2))");
  EXPECT_EQ(pmi_process_mapping({0, 1, 2, 0, 1, 2}), "(vector,(0,3,1),(0,3,1))");
  EXPECT_EQ(pmi_process_mapping({0, 0, 0, 1, 2}), "(vector,(0,1,3),(1,2,1))");
}

}  // namespace
}  // namespace launcher
