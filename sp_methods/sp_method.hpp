// SPDX-License-Identifier: Apache-2.0
// What a sequence-parallel method is: a text that records one layer's attention, its sequence cut over the ranks.
//
// The local kernels are `compute` steps and the exchange is recorded among them, often as an embedded collective.
// What overlaps follows from the slices that the steps touch.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"
#include "sp_methods/kernels/gla_shape.hpp"
#include "sp_methods/kernels/positions.hpp"

namespace baton {

/// What is run: the layer, its gradients, or one after the other.
enum class Pass { forward, backward, both };

/// When the exchange runs: as the method was published, waited for at once, or not at all. Without an exchange every
/// rank's tokens are a sequence of their own.
enum class Mode { overlapped, exposed, compute_only };

/// What the layer computes: gated linear attention, or causal softmax attention.
enum class Attention { linear, softmax };

const char* to_string(Pass pass);
const char* to_string(Mode mode);
const char* to_string(GateKind gate);

/// One layer on one rank.
struct Layer {
  /// Sizes of one rank's share; every rank has as many tokens.
  GlaShape share;
  Pass pass = Pass::forward;
  Mode mode = Mode::overlapped;
  /// Head groups whose exchanges follow one another.
  int groups = 1;
  /// The exclusive scan that carries the states; empty for the method's own.
  std::string scan;
  /// Into how many blocks the scan cuts a state, where it cuts it.
  int blocks = 1;
  /// Of the tensors; states are f32.
  Dtype dtype = Dtype::f32;
  /// Local work of linear attention as a device does it: in segments, instead of in chunks whose states are all kept
  /// (segments.hpp); in Ring Attention with rests (ring_attention.cpp). Softmax attention has one form.
  bool segmented = false;
};

/// One rank's tensors, [tokens, heads, width] each; a gate of kind `none` is empty. Those of the other pass are empty.
struct LayerTensors {
  Slice q, k, v, g, d_o;    // inputs
  Slice o, dq, dk, dv, dg;  // outputs
};

/// A named method.
struct SpMethod {
  std::string name;
  /// One line: where it comes from and what it exchanges.
  std::string summary;
  Attention attention = Attention::linear;
  /// The scan that it uses unless told otherwise; empty where it uses none.
  std::string scan;
  /// Records one rank's part.
  std::function<void(Schedule&, const Layer&, const LayerTensors&)> build;
  /// Why it cannot run this layer on so many ranks, or an empty string. May be left out.
  std::function<Refusal(const Layer&, int ranks)> unsupported;
  /// Where a rank's tokens stand in the sequence; contiguous where left out.
  std::function<Positions(int rank, int ranks, std::int64_t tokens)> positions;
};

/// Adds a method to the registry, before `main`.
struct RegisteredMethod {
  explicit RegisteredMethod(SpMethod method);
};

/// All registered methods, by name.
std::vector<const SpMethod*> sp_methods();

/// The method called `name`. Throws UsageError if there is none.
const SpMethod& find_method(const std::string& name);

/// The positions of a rank's tokens under `method`.
Positions positions_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens);

/// What the forward pass leaves to the backward pass beside the inputs: scratch where this schedule makes it, an input
/// called `name` where only the backward pass runs. Buffers start as zeros.
Slice saved_for_backward(Schedule& schedule, const Layer& layer, const std::string& name, std::int64_t count);

/// One rank's schedule, with inputs "q k v g" and "d_o", outputs "o" and "dq dk dv dg" as its pass needs them. Ranks
/// fill nodes of `ranks_a_node`; 0 for all on one node.
Schedule build(const SpMethod& method, const Layer& layer, int rank, int ranks, int ranks_a_node = 0);

/// The schedules of all ranks.
std::vector<Schedule> build_all(const SpMethod& method, const Layer& layer, int ranks, int ranks_a_node = 0);

}  // namespace baton
