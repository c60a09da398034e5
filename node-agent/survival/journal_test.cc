#include "node-agent/survival/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "node-agent/testing/temporary_directory.h"

namespace agent {
namespace {

// Returns a value in each field, among them a path with a blank and a barrier of 0.
Journal example() {
  return {.boot_id = "boot-1",
          .lease = LeaseSeen{.at = base::Duration{5'000'000},
                             .renew_time = base::instant_from_micros(1'767'225'600'000'000)},
          .rules = Rules{.settings = {.settle = base::Duration{3'000'000},
                                      .barrier = base::Duration{0},
                                      .fail_open_after = base::Duration{60'000'000}},
                         .kill_switch = true},
          .pods = {{.uid = "u1", .name = "ns/a", .job_uid = "j1", .path = "kubepods/podu1"},
                   {.uid = "u2", .name = "ns/b", .job_uid = "j2", .path = "odd path/podu2"}},
          .unread = {"u4", "u5"},
          .bound = {"u2", "u3"},
          .timetable = R"({"spec": {"revision": 3}})"};
}

// Goal: what an agent leaves is what the next one finds, to the last field; a field that got lost
// would be a pod that is not thawed, or a rule that is forgotten. The second journal is shorter and
// must not leave anything of the first.
TEST(Journal, ReadsWhatItWrote) {
  const testing::TemporaryDirectory directory;
  const JournalFile file{directory.path() + "/journal"};
  EXPECT_EQ(file.read("boot-1").error().code, base::Code::kNotFound);
  ASSERT_TRUE(file.write(example()).ok());
  EXPECT_EQ(*file.read("boot-1"), example());
  ASSERT_TRUE(file.write({.boot_id = "boot-1"}).ok());
  EXPECT_EQ(*file.read("boot-1"), Journal{.boot_id = "boot-1"});
}

// A reboot thaws everything, and the pods' cgroups are new ones.
TEST(Journal, OfAnEarlierBootDoesNotCount) {
  const testing::TemporaryDirectory directory;
  const JournalFile file{directory.path() + "/journal"};
  ASSERT_TRUE(file.write(example()).ok());
  EXPECT_EQ(file.read("boot-2").error().code, base::Code::kNotFound);
}

// A node may lose power in the middle of a write. A journal that is half right must not thaw or
// hold a wrong pod: it is refused as a whole.
TEST(Journal, RefusesWhatIsDamaged) {
  const std::string text = format_journal(example());
  EXPECT_FALSE(parse_journal("").ok());
  EXPECT_FALSE(parse_journal("hello\n").ok());
  EXPECT_FALSE(parse_journal(text.substr(0, text.size() - 4)).ok());  // without its end
  EXPECT_EQ(parse_journal("kubegang-agent-journal 1\nboot x\nlease abc -\nend\n").error().message,
            "journal: line 3 cannot be read");
  EXPECT_FALSE(parse_journal("kubegang-agent-journal 1\npod u1\nend\n").ok());
  EXPECT_FALSE(parse_journal("kubegang-agent-journal 1\nbound \nend\n").ok());
  EXPECT_FALSE(parse_journal("kubegang-agent-journal 1\nunread \nend\n").ok());
  const std::string head = "kubegang-agent-journal 1\nrules ";
  EXPECT_TRUE(parse_journal(head + "1 2 3 -\nend\n").ok());
  for (const char* wrong : {"", "1 2 3", "1 2 -3 -", "1 2 3 perhaps"}) {
    EXPECT_FALSE(parse_journal(head + wrong + "\nend\n").ok()) << wrong;
  }
}

// The path is in the sentence, since a person must look at that file, or remove it.
TEST(Journal, SaysThatItIsDamagedAndWhatFollowsItsEndDoesNotMatter) {
  const testing::TemporaryDirectory directory;
  const JournalFile file{directory.path() + "/journal"};
  ASSERT_TRUE(file.write(example()).ok());
  // Behind "end" nothing counts, so text of a longer journal before it does no harm.
  std::ofstream{file.path(), std::ios::app} << "x";
  ASSERT_TRUE(file.read("boot-1").ok());
  std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 5);
  const base::Result<Journal> damaged = file.read("boot-1");
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code, base::Code::kInvalidArgument);
  EXPECT_EQ(damaged.error().message, file.path() + ": journal: cut off");
}

// The limit guards the memory of a program that has to survive everything.
TEST(Journal, SaysThatItIsTooLong) {
  const testing::TemporaryDirectory directory;
  const JournalFile file{directory.path() + "/journal"};
  Journal journal = example();
  // The other lines make it longer than the limit.
  journal.timetable.assign(kJournalBytesMax, ' ');
  ASSERT_TRUE(file.write(journal).ok());
  EXPECT_EQ(file.read("boot-1").error().message,
            "journal " + file.path() + ": longer than 4194304 bytes");
}

// Not "there is none", which would mean that nothing is frozen: the agent must not begin as on a
// new node.
TEST(Journal, SaysThatItCannotBeRead) {
  const testing::TemporaryDirectory directory;
  const JournalFile file{directory.path() + "/journal"};
  std::filesystem::create_directory(file.path());
  const base::Result<Journal> journal = file.read("boot-1");
  ASSERT_FALSE(journal.ok());
  EXPECT_EQ(journal.error().code, base::Code::kUnavailable);
  EXPECT_EQ(journal.error().message, "journal " + file.path() + ": Is a directory");
}

// The path again; the directory of a journal is a mount of the pod, and may be missing or full.
TEST(Journal, SaysThatItCannotBeWritten) {
  const base::Status status = JournalFile{"/proc/no/journal"}.write(example());
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("/proc/no/journal"), std::string::npos);
}

// The node's clock may differ from the operator's, so the agent measures by its own: the time since
// it saw the renewal change.
// After a suspension the limit is over at once, whatever the operator has done meanwhile. A reading
// that began before it does not count.
TEST(FailOpen, AsksForTheLeaseOnceMoreBeforeEverythingRuns) {
  using std::chrono::seconds;
  FailOpen open;
  EXPECT_FALSE(open.look(false, seconds{5}, seconds{10}));
  EXPECT_TRUE(open.look(true, seconds{5}, seconds{1000})) << "asks";
  EXPECT_FALSE(open.look(true, seconds{999}, seconds{1001})) << "asked already";
  EXPECT_FALSE(open.is_open());
  EXPECT_EQ(open.look_again_at(), seconds{1005});
  EXPECT_FALSE(open.look(false, seconds{1000}, seconds{1002})) << "it was renewed";
  EXPECT_FALSE(open.is_open());
  EXPECT_EQ(open.look_again_at(), std::nullopt);
  // Answered, and not renewed.
  EXPECT_TRUE(open.look(true, seconds{1000}, seconds{2000}));
  EXPECT_FALSE(open.look(true, seconds{2000}, seconds{2001}));
  EXPECT_TRUE(open.is_open());
  EXPECT_FALSE(open.look(true, seconds{2060}, seconds{2061})) << "once is enough";
  EXPECT_TRUE(open.is_open());
  // Renewed, and then there are no more answers.
  EXPECT_FALSE(open.look(false, seconds{2060}, seconds{2062}));
  EXPECT_TRUE(open.look(true, seconds{2060}, seconds{3000}));
  EXPECT_FALSE(open.look(true, seconds{2060}, seconds{3004}));
  EXPECT_FALSE(open.is_open());
  EXPECT_FALSE(open.look(true, seconds{2060}, seconds{3005}));
  EXPECT_TRUE(open.is_open());
}

TEST(LeaseWatch, CountsOnlyWhatChangedAsARenewal) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  const base::Instant renewed{seconds{1000}};
  LeaseWatch watch{std::nullopt, minutes{100}};
  // The operator counts as seen at 100, when the agent began.
  EXPECT_FALSE(watch.failed_open(minutes{114}, minutes{15}));
  EXPECT_FALSE(watch.read(renewed, minutes{101}));  // how old that is, is not known
  EXPECT_TRUE(watch.failed_open(minutes{115}, minutes{15}));
  EXPECT_FALSE(watch.read(renewed, minutes{116}));
  EXPECT_TRUE(watch.failed_open(minutes{116}, minutes{15}));
  EXPECT_TRUE(watch.read(renewed + seconds{1}, minutes{117}));
  EXPECT_FALSE(watch.failed_open(minutes{117}, minutes{15}));
  EXPECT_FALSE(watch.read(std::nullopt, minutes{118}));

  // The next process goes on from the journal.
  LeaseWatch next{watch.seen(), minutes{120}};
  EXPECT_FALSE(next.failed_open(minutes{131}, minutes{15}));
  EXPECT_TRUE(next.failed_open(minutes{132}, minutes{15}));
  EXPECT_TRUE(next.read(renewed + seconds{2}, minutes{133}));
}

}  // namespace
}  // namespace agent
