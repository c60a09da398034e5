#include "slurm/remote_step.h"

#include <gtest/gtest.h>

namespace slurm {
namespace {

TEST(RemoteStep, ReadsWhatWasWrittenInPiecesOfAnySize) {
  const RemoteMessage messages[] = {{RemoteKind::kArgument, "-n2"},
                                    {RemoteKind::kVariable, "A=line\nbreak"},
                                    {RemoteKind::kRun},
                                    {RemoteKind::kInput, std::string(70'000, '\0')},
                                    {RemoteKind::kInputEnd},
                                    {RemoteKind::kEnd, "0"}};
  std::string bytes;
  for (const RemoteMessage& message : messages) bytes += encode(message);
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, bytes.size()}) {
    RemoteReader reader;
    std::size_t next = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(std::string_view{bytes}.substr(at, piece));
      while (const auto message = reader.next()) EXPECT_EQ(*message, messages[next++]);
    }
    EXPECT_EQ(next, std::size(messages));
    EXPECT_FALSE(reader.is_broken());
  }
}

TEST(RemoteStep, StopsAtAnUnknownTypeAndAtALengthAboveTheLimit) {
  for (const std::string_view bytes :
       {std::string_view{"GET /"}, std::string_view{"I\xFF\xFF\xFF\xFF", 5}}) {
    RemoteReader reader;
    reader.add(bytes);
    EXPECT_EQ(reader.next(), std::nullopt);
    EXPECT_TRUE(reader.is_broken());
  }
}

}  // namespace
}  // namespace slurm
