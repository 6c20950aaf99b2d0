// SPDX-License-Identifier: Apache-2.0
// A named local computation, which a `compute` step runs.
#pragma once

#include <any>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace baton {

/// The memory of one step on the host, in the order of the step's slices.
struct HostOperands {
  std::vector<std::span<float>> writes;
  std::vector<std::span<const float>> reads;
};

/// A named local computation with its host body and its cost.
struct Kernel {
  std::string name;
  std::function<void(const HostOperands&)> body;
  /// Floating-point operations of one call.
  double flops = 0;
  /// Bytes that one call must move at least: each operand once.
  double bytes = 0;
  /// The parameters of the kernel's contract. The device body, found by `name`, knows their type.
  std::any parameters;
};

}  // namespace baton
