// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/listener.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

using namespace baton::tcp;

TEST(Listener, HearsOneConnectionThatSpeaksAmongManyThatDoNot) {
  constexpr int silent = 300;  // more than are kept open
  const std::string words = "words";
  Socket own = Socket::listen_at(0);
  const int port = own.port();
  Listener listener(std::move(own), words.size());
  std::vector<Socket> clients;
  for (int i = 0; i < silent; ++i) clients.push_back(Socket::connect_to("127.0.0.1", port, Deadline(60)));
  EXPECT_TRUE(listener.poll_messages(60'000).empty());
  clients.back().send_all(words.data(), 2);
  EXPECT_TRUE(listener.poll_messages(60'000).empty()) << "the message is not complete";
  clients.back().send_all(words.data() + 2, words.size() - 2);
  const std::vector<PendingConnection> heard = listener.poll_messages(60'000);
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(std::memcmp(heard.front().message.data(), words.data(), words.size()), 0);
  char word = 0;
  EXPECT_FALSE(clients.front().receive_all(&word, 1)) << "the oldest silent connection is closed";
}

TEST(Listener, ReturnsWhereAnotherDescriptorCanBeRead) {
  Socket own = Socket::listen_at(0), other = Socket::listen_at(0);
  const Socket client = Socket::connect_to("127.0.0.1", other.port(), Deadline(60));
  Listener listener(std::move(own), 1);
  EXPECT_TRUE(listener.poll_messages(-1, std::vector{other.descriptor()}).empty());
}

}  // namespace
