// SPDX-License-Identifier: Apache-2.0
#include "harness/process/heartbeat.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <string>

namespace {

using namespace baton;

/// What is usable of an interface with this address; empty if nothing is.
std::string usable(const std::string& text, unsigned flags = IFF_UP) {
  sockaddr_in four{.sin_family = AF_INET};
  sockaddr_in6 six{.sin6_family = AF_INET6};
  const bool is_six = text.find(':') != std::string::npos;
  inet_pton(is_six ? AF_INET6 : AF_INET, text.c_str(),
            is_six ? static_cast<void*>(&six.sin6_addr) : static_cast<void*>(&four.sin_addr));
  ifaddrs interface {};
  interface.ifa_flags = flags;
  interface.ifa_addr = is_six ? reinterpret_cast<sockaddr*>(&six) : reinterpret_cast<sockaddr*>(&four);
  const auto found = usable_address(interface);
  if (!found) return "";
  char words[INET6_ADDRSTRLEN] = "";
  return inet_ntop(AF_INET6, &*found, words, sizeof words);
}

TEST(UsableAddress, IsOneOfEitherFamilyThatOtherHostsReach) {
  EXPECT_EQ(usable("10.0.0.7"), "::ffff:10.0.0.7");
  EXPECT_EQ(usable("fd00::7"), "fd00::7") << "a host that has IPv6 alone";
  EXPECT_EQ(usable("fe80::7"), "") << "of one link";
  EXPECT_EQ(usable("127.0.0.1", IFF_UP | IFF_LOOPBACK), "");
  EXPECT_EQ(usable("::1", IFF_UP | IFF_LOOPBACK), "");
  EXPECT_EQ(usable("fd00::7", 0), "") << "down";
}

}  // namespace
