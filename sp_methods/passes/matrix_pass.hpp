// SPDX-License-Identifier: Apache-2.0
// The passes of linear attention with a delta rule or a low-rank rule on one rank. A rank's map is
// S' = A S + B, with a matrix A [heads, d_k, d_k].
//
//   forward:    (A, B) of the own tokens                    | exchange | o from the state that came
//     or:       (A, B); o from zero and the operator C, while it runs  | o = o + C S
//   backward:   Dloc, which needs no state                  | exchange | all gradients
//
// The backward map is A transposed: matrices are made in the forward pass and kept beside the
// prefix, and Dloc takes the place of B, which the exchange of the forward pass has read. In a pass
// of the gradient alone they are inputs.
// The states within a rank depend on the state that comes, so what a pass can do before it is there
// are the map, and o from zero with C [tokens, heads, d_k]. With d = d_k = d_v the first form of a
// delta rule does 8 d^2 + 6 d^2 flop a token and head beside what stays within chunks, and the
// second one 8 d^2 + 12 d^2 + 2 d^2, of which the last product alone waits for the state.
// A rank makes the parts of its map that the scan reads: of a chain, the first rank makes B, the
// last one nothing, and backward the other way round.
// What a device makes of a map is kept for the output and the gradients (kept_maps.hpp). A rank
// whose map nobody reads makes it too, since the state that it waits for then has less work behind
// it (decision 52). A serial chain does no work before, and corrected outputs wait for no state.
// Source: "Gated Delta Networks", arXiv 2412.06464, and "Kimi Linear", arXiv 2510.26692 (chunks);
// fla-org/flash-linear-attention, fla/ops/cp (maps of ranks, and the pass run again from the state
// that came); awslabs/hybrid-model-factory, pull request 5 (the operator).
#pragma once

#include <vector>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/low_rank.hpp"
#include "sp_methods/passes/linear_pass.hpp"

namespace baton {

/// The kernels of a delta rule, and their operands.
struct DeltaKernels {
  using Map = DeltaMap;
  using Output = DeltaOutput;
  using Correction = DeltaCorrection;
  using StateGradients = DeltaStateGradients;
  using Gradients = DeltaGradients;
  static DeltaInputs<Recorded> inputs(const LayerTensors& x) { return {x.inputs(), x.beta}; }
  static DeltaGradientsOut<Recorded> gradients(const LayerTensors& x) { return {x.gradients(), x.dbeta}; }
};

/// The kernels of a low-rank rule, and their operands.
struct LowRankKernels {
  using Map = LowRankMap;
  using Output = LowRankOutput;
  using Correction = LowRankCorrection;
  using StateGradients = LowRankStateGradients;
  using Gradients = LowRankGradients;
  static LowRankInputs<Recorded> inputs(const LayerTensors& x) { return {x.inputs(), x.a, x.b}; }
  static LowRankGradientsOut<Recorded> gradients(const LayerTensors& x) {
    return {x.gradients(), x.da, x.db};
  }
};

/// A pass by the kernels of a rule with matrices.
template <class Kernels>
class MatrixPass : public LinearPass {
 public:
  MatrixPass(Schedule& schedule, const PassInputs& inputs)
      : LinearPass(schedule, inputs, inputs.is_backward ? inputs.forward : nullptr),
        makes_(inputs.makes),
        corrects_(inputs.corrects),
        dtype_(inputs.layer.dtype),
        works_ahead_(dtype_ == Dtype::bf16 && inputs.works_ahead && !corrects_ && state_comes_in()) {
    const LayerShape& own = share();
    if (corrects_ && !(inputs.is_first && inputs.initial_state.empty()))
      correction_ = schedule.scratch("correction", own.tokens * own.heads * own.d_k, inputs.layer.dtype);
    const bool goes_alone = is_backward() ? inputs.forward == nullptr : inputs.layer.saved != nullptr;
    if (goes_alone && makes_.matrix)
      kept_ = inputs.matrices.empty()
                  ? saved_for_backward(schedule, inputs.layer, "map_matrix", own.heads * own.d_k * own.d_k)
                  : inputs.matrices;
    keep_maps(inputs);
  }

  void record_local_states(int g) override {
    const Slice state = makes_.state ? map(g).state : Slice{};
    if (is_backward()) {
      if (!kept_.empty()) schedule_.copy(map(g).decay, kept_.block(g, groups(), share().d_k * share().d_k));
      if (keeps_again_) record_map_of(g, {}, {});
      if (makes_gradient_of_state())
        record<typename Kernels::StateGradients>(schedule_, {share(), work(g), dtype_},
                                                 {.in = Kernels::inputs(tensors()),
                                                  .d_o = tensors().d_o,
                                                  .kept = maps_of(g),
                                                  .map_state = state,
                                                  .keeps = gradients_of(g)});
    } else if (makes_map()) {
      record_map_of(g, makes_.matrix ? map(g).decay : Slice{}, state);
      if (!kept_.empty()) schedule_.copy(kept_.block(g, groups(), share().d_k * share().d_k), map(g).decay);
    }
  }

  void record_overlappable() override {
    if (!corrects_) return;
    record<typename Kernels::Output>(schedule_, {share(), {}, dtype_},
                                     {.in = Kernels::inputs(tensors()), .incoming = {}, .o = tensors().o});
    if (!correction_.empty())
      record<typename Kernels::Correction>(schedule_, {share(), {}, dtype_},
                                           {.in = Kernels::inputs(tensors()), .correction = correction_});
  }

  void record_outputs(int g) override {
    if (is_backward())
      return record<typename Kernels::Gradients>(schedule_, {share(), work(g), dtype_},
                                                 {.in = Kernels::inputs(tensors()),
                                                  .d_o = tensors().d_o,
                                                  .before = prefix(g),
                                                  .after = arrived(g),
                                                  .kept = maps_of(g),
                                                  .kept_gradients = gradients_of(g),
                                                  .out = Kernels::gradients(tensors())});
    if (!corrects_)
      return record<typename Kernels::Output>(schedule_, {share(), work(g), dtype_},
                                              {.in = Kernels::inputs(tensors()),
                                               .incoming = arrived(g),
                                               .kept = makes_map() ? maps_of(g) : Slice{},
                                               .o = tensors().o,
                                               .keeps = makes_map() ? Slice{} : maps_of(g)});
    if (!correction_.empty())
      record<DeltaCorrect>(schedule_, {share(), work(g), dtype_},
                           {.correction = correction_, .incoming = arrived(g), .o = tensors().o});
  }

 private:
  bool makes_map() const { return makes_.matrix || makes_.state || works_ahead_; }
  bool makes_gradient_of_state() const { return makes_.state || works_ahead_; }

  /// Records the parts of a head group's map that are not empty, and what a device keeps of it.
  void record_map_of(int g, const Slice& matrix, const Slice& state) {
    record<typename Kernels::Map>(
        schedule_, {share(), work(g), dtype_},
        {.in = Kernels::inputs(tensors()), .map_matrix = matrix, .map_state = state, .kept = maps_of(g)});
  }

  /// Sets where a device keeps what it makes of each head group's map, or takes what the forward
  /// pass has kept. An output that is made before the exchange keeps nothing.
  void keep_maps(const PassInputs& inputs) {
    if (dtype_ != Dtype::bf16) return;
    if (is_backward() && inputs.forward != nullptr)
      maps_ = dynamic_cast<const MatrixPass&>(*inputs.forward).maps_;
    keeps_again_ = is_backward() && maps_.empty() && makes_gradient_of_state();
    for (int g = 0; g < groups(); ++g) {
      const Chunks own{share(), work(g), dtype_};
      if (is_backward() && makes_gradient_of_state())
        gradients_.push_back(schedule_.scratch("segment_gradients", kept_gradients(own)));
      if (keeps_again_ || (!is_backward() && (makes_map() || !corrects_)))
        maps_.push_back(schedule_.scratch("segment_maps", Kernels::Map::kept(own).end));
    }
  }
  static Slice at(const std::vector<Slice>& slices, int g) {
    return slices.empty() ? Slice{} : slices[static_cast<std::size_t>(g)];
  }
  Slice maps_of(int g) const { return at(maps_, g); }
  Slice gradients_of(int g) const { return at(gradients_, g); }

  MapUse makes_;
  bool corrects_;
  Dtype dtype_;
  bool works_ahead_;          // makes what a device keeps before a state comes, whoever reads the map
  bool keeps_again_ = false;  // makes what no forward pass of this schedule keeps
  Slice correction_;          // of the ranks that a state comes to
  Slice kept_;                // the matrices, which a forward pass leaves to a backward pass recorded alone
  std::vector<Slice> maps_;   // what devices keep of each head group's map
  std::vector<Slice> gradients_;  // and of its state's gradient
};

}  // namespace baton
