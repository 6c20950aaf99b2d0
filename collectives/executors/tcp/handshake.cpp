// SPDX-License-Identifier: Apache-2.0
// libcrypto is opened when a secret is there, and not linked: most runs need none of it, hosts on
// which Baton is built need no headers of it, and a wheel need not bring one beside Python's own.
#include "collectives/executors/tcp/handshake.hpp"

#include <dlfcn.h>
#include <sys/random.h>

#include <cstddef>

#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton::tcp {
namespace {

/// The two functions of libcrypto, as its versions 1.1 and 3 have them:
/// https://docs.openssl.org/3.0/man3/HMAC/
struct Crypto {
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void* digest, const void* key, int key_bytes, const unsigned char* text,
                         std::size_t text_bytes, unsigned char* into, unsigned* into_bytes) = nullptr;
};

Crypto open_crypto() {
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1", "libcrypto.so"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    Crypto found;
    found.sha256 = reinterpret_cast<decltype(found.sha256)>(dlsym(library, "EVP_sha256"));
    found.hmac = reinterpret_cast<decltype(found.hmac)>(dlsym(library, "HMAC"));
    if (found.sha256 != nullptr && found.hmac != nullptr) return found;
  }
  throw MeetingError(
      "this run has a secret, and this host no libcrypto to prove it with: install OpenSSL's library, or set "
      "BATON_SECRET to nothing on all ranks to go without");
}

template <class T>
std::string_view bytes_of(const T& said) {
  return {reinterpret_cast<const char*>(&said), sizeof said};
}

}  // namespace

Nonce fresh_nonce() {
  Nonce drawn;
  if (getrandom(drawn.data(), drawn.size(), 0) != static_cast<ssize_t>(drawn.size()))
    throw SystemError("the system has no random numbers");
  return drawn;
}

Proof prove(const std::string& secret, std::string_view text) {
  Proof proof{};
  if (secret.empty()) return proof;
  static const Crypto crypto = open_crypto();
  unsigned bytes = proof.size();
  const auto* said = reinterpret_cast<const unsigned char*>(text.data());
  if (crypto.hmac(crypto.sha256(), secret.data(), static_cast<int>(secret.size()), said, text.size(),
                  proof.data(), &bytes) == nullptr ||
      bytes != proof.size())
    throw MeetingError("libcrypto of this host cannot make an HMAC with SHA-256");
  return proof;
}

Proof proof_of(const Hello& hello, const Nonce& challenge, const std::string& secret) {
  Hello unproved = hello;
  unproved.proof = {};
  std::string text = "another rank";  // other words than rank 0's, so that neither can repeat the other's
  return prove(secret, text.append(bytes_of(challenge)).append(bytes_of(unproved)));
}

Proof proof_of(const Reply& reply, const Hello& hello, const std::string& secret) {
  Reply unproved = reply;
  unproved.proof = {};
  std::string text = "rank 0";
  return prove(secret, text.append(bytes_of(hello)).append(bytes_of(unproved)));
}

}  // namespace baton::tcp
