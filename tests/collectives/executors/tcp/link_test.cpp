// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/link.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton::tcp;
using baton::SystemError;

/// The head of a frame as it stands on the connection.
struct Head {
  std::uint32_t round;
  std::int32_t tag;
  std::uint64_t bytes;
};

/// A link to rank 1, whose end of the connection a test writes to.
class LinkOfOne {
 public:
  LinkOfOne() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    link.connect(Socket(ends[0]));
    peer = Socket(ends[1]);
    link.begin_round(1);
  }
  void say(const Head& head) const { EXPECT_TRUE(peer.send_all(&head, sizeof head)); }

  Link link{1};
  Socket peer;
};

TEST(Link, KeepsAMessageThatComesBeforeItsReceive) {
  LinkOfOne one;
  std::vector<int> done;
  one.say({1, 2, sizeof(int)});
  const int sent = 7;
  ASSERT_TRUE(one.peer.send_all(&sent, sizeof sent));
  one.link.go_on(done);
  int got = 0;
  one.link.receive(5, std::as_writable_bytes(std::span(&got, 1)), 2, done);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(done, std::vector{5});
}

TEST(Link, RefusesHeadsThatNoScheduleHas) {
  for (const Head& head : {Head{1, -2, 4}, Head{1, 1 << 30, 4}, Head{1, 0, std::uint64_t{1} << 50}}) {
    LinkOfOne one;
    std::vector<int> done;
    one.say(head);
    EXPECT_THROW(one.link.go_on(done), SystemError) << head.tag << " " << head.bytes;
  }
}

}  // namespace
