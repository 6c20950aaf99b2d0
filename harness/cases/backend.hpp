// SPDX-License-Identifier: Apache-2.0
// What runs a case: an executor, or the simulator.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"

namespace baton {

/// One of the executors, or the simulator.
struct Backend {
  std::string name;
  std::string summary;
  /// True if each rank is a process of its own.
  bool process_per_rank = false;
  /// True if rounds run and take time; false for the simulator, which computes times from a
  /// topology.
  bool is_measured = true;
  /// Default dtype of a layer's tensors.
  Dtype tensors = Dtype::f32;
  /// The group of backends whose rows compete: "GPUs" for all executors on GPUs with an f32 wire,
  /// elsewhere the name of the backend.
  std::string family;
  /// Returns true if the backend runs the native called `name`. For the simulator a topology says
  /// so (`Axes::simulated_natives`).
  std::function<bool(const std::string& name)> runs_native;
  /// True if ranks of the backend can share a GPU.
  bool shares_gpus = false;
  /// The threads that a rank can keep busy: 2 if one computes while the other exchanges.
  int most_threads = 1;
  /// Returns the reason why this machine cannot run so many ranks; empty if it can. Needs no MPI.
  std::function<Refusal(int ranks)> lacking;
};

/// All backends, by name.
const std::vector<Backend>& backends();

/// The backend called `name`. Throws UsageError if there is none.
const Backend& find_backend(const std::string& name);

}  // namespace baton
