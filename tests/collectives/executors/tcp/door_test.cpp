// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/door.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

using namespace baton;

TEST(Door, ListensToWhoeverSpeaksAmongManyWhoDoNot) {
  constexpr int silent = 300;  // more than are let stay
  const std::string words = "words";
  Socket listening = Socket::listen_at(0);
  const int port = listening.port();
  Door door(std::move(listening), words.size());
  std::vector<Socket> guests;
  for (int i = 0; i < silent; ++i) guests.push_back(Socket::connect_to("127.0.0.1", port, Deadline(60)));
  EXPECT_TRUE(door.listen(60'000).empty());
  guests.back().send_all(words.data(), 2);
  EXPECT_TRUE(door.listen(60'000).empty()) << "who has not said all";
  guests.back().send_all(words.data() + 2, words.size() - 2);
  const std::vector<Guest> heard = door.listen(60'000);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(std::memcmp(heard.front().said.data(), words.data(), words.size()), 0);
  char word = 0;
  EXPECT_FALSE(guests.front().receive_all(&word, 1)) << "who was silent for longest has left";
}

TEST(Door, OpensWhereAnotherDescriptorCanBeRead) {
  Socket listening = Socket::listen_at(0), other = Socket::listen_at(0);
  const Socket guest = Socket::connect_to("127.0.0.1", other.port(), Deadline(60));
  Door door(std::move(listening), 1);
  EXPECT_TRUE(door.listen(-1, std::vector{other.descriptor()}).empty());
}

}  // namespace
