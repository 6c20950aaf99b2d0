// SPDX-License-Identifier: Apache-2.0
// What an executor hands to a native in Python, and how executors take natives in. The executors of
// GPUs are a library of their own, so this is all that they share with the module.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "collectives/executors/tcp/native.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// The operands of one execution of a scan.
struct Given {
  std::span<float> into;
  std::span<const float> own;
  /// Elements of a row of the state, and the form of the map.
  std::int64_t row = 1;
  MapForm form;
  /// This rank's place in scan order, and the number of ranks.
  int rank = 0;
  int ranks = 1;
  bool reversed = false;
  /// The GPU whose memory it is, and the stream to enqueue in; -1 and null for host memory.
  int gpu = -1;
  void* stream = nullptr;
  /// Sends and receives, where the executor has messages for natives; else null.
  TcpCall* messages = nullptr;
};

using PythonBody = std::function<void(const Given&)>;

/// Registers a body as a native of one executor. Throws UsageError if the name is taken.
using TakeNative = std::function<void(const std::string& name, const PythonBody& body)>;

/// The executors that natives in Python run on, by name.
[[gnu::visibility("default")]] Registry<TakeNative>& python_executors();

}  // namespace baton
