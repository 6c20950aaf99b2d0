// SPDX-License-Identifier: Apache-2.0
// Why something cannot be done here: what users read in place of a row's times.
#pragma once

#include <string>
#include <utility>

namespace baton {

/// A reason against something, in words for the user; empty where nothing speaks against it.
///
///   if (const Refusal refusal = executor.unsupported(schedules)) return skip(refusal.reason());
class Refusal {
 public:
  /// Nothing speaks against it.
  Refusal() = default;
  /// An empty reason unsupported nothing.
  Refusal(std::string reason) : reason_(std::move(reason)) {}
  Refusal(const char* reason) : reason_(reason) {}

  explicit operator bool() const { return !reason_.empty(); }
  bool empty() const { return reason_.empty(); }
  const std::string& reason() const { return reason_; }

  bool operator==(const Refusal&) const = default;

 private:
  std::string reason_;
};

}  // namespace baton
