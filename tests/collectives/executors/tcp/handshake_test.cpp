// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/handshake.hpp"

#include <gtest/gtest.h>

namespace {

using namespace baton::tcp;

TEST(Proof, IsHmacWithSha256) {
  // https://www.rfc-editor.org/rfc/rfc4231, test case 2
  const Proof wanted{0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24,
                     0x26, 0x08, 0x95, 0x75, 0xc7, 0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27,
                     0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
  EXPECT_EQ(prove("Jefe", "what do ya want for nothing?"), wanted);
  EXPECT_EQ(prove("", "what do ya want for nothing?"), Proof{}) << "without a secret nothing is proved";
}

TEST(FreshNonce, IsAnotherEachTime) { EXPECT_NE(fresh_nonce(), fresh_nonce()); }

}  // namespace
