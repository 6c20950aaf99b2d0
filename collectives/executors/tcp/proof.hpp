// SPDX-License-Identifier: Apache-2.0
// Fresh random numbers, and the proof that someone knows a secret without a word of it being sent.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace baton {

/// 128 random bits, which nobody can guess.
using Number = std::array<std::uint8_t, 16>;
using Proof = std::array<std::uint8_t, 32>;

/// Draws a number from the system. Throws SystemError if that has none.
Number fresh_number();

/// HMAC-SHA-256 of `text` under `secret`; zeros without a secret. The library is OpenSSL's
/// libcrypto, which is opened at the first secret. Throws MeetingError if this host has none.
Proof prove(const std::string& secret, std::string_view text);

}  // namespace baton
