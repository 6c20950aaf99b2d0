// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/tcp/handshake.hpp"

#include <string_view>

namespace baton {
namespace {

template <class T>
std::string_view bytes_of(const T& said) {
  return {reinterpret_cast<const char*>(&said), sizeof said};
}

}  // namespace

Proof proof_of(const Hello& hello, const Number& challenge, const std::string& secret) {
  Hello unproved = hello;
  unproved.proof = {};
  std::string text = "another rank";  // other words than rank 0's, so that neither can repeat the other's
  return prove(secret, text.append(bytes_of(challenge)).append(bytes_of(unproved)));
}

Proof proof_of(const Verdict& verdict, const Hello& hello, const std::string& secret) {
  Verdict unproved = verdict;
  unproved.proof = {};
  std::string text = "rank 0";
  return prove(secret, text.append(bytes_of(hello)).append(bytes_of(unproved)));
}

}  // namespace baton
