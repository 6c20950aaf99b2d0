// SPDX-License-Identifier: Apache-2.0
// Sequence-parallel methods whose bodies are functions in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton {

/// What a method in Python says of itself.
struct PythonMethod {
  std::string name;
  std::string summary;
  /// The attentions that it computes, by the words of --attention; or "softmax" alone.
  std::vector<std::string> attentions;
  /// How the tokens lie on the ranks: contiguous, zigzag or striped.
  std::string layout;
  /// Why no layer can run here, such as a library that is not installed; else empty.
  std::string lacks;
  /// The most ranks that it takes; 0 for any number.
  int most_ranks = 0;
  /// False if only its forward pass can run.
  bool has_backward = true;
  /// True if the bits of its results are the same in every round.
  bool is_deterministic = true;
  /// What the method claims of a pass; nothing if it does not know. A size is a name and a number,
  /// such as the bytes of this rank's keys.
  using Sizes = std::vector<std::pair<std::string, std::int64_t>>;
  using Count = std::function<std::optional<std::int64_t>(const std::string& pass, const Sizes& sizes)>;
  std::optional<Count> bytes, hops;
};

/// Registers a method whose schedule is one native of its name. Throws UsageError if the name is
/// taken, or for an unknown word.
void add_method(const PythonMethod& method);

}  // namespace baton
