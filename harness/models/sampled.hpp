// SPDX-License-Identifier: Apache-2.0
// Models that are too large for their oracle: what a round left on ranks, and how it is read to be
// compared part by part.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/cases/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/models/reference/oracle.hpp"

namespace baton {

/// Columns of a matrix.
struct Columns {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The buffers of one rank after a round. Matrices are read a run of rows at a time into the same
/// memory: fresh memory takes longer than reading.
class RankTensors {
 public:
  RankTensors(const Executor& executor, std::span<const Schedule> schedules, int rank)
      : executor_(executor), schedule_(schedules[rank]), rank_(rank) {}

  int rank() const { return rank_; }
  const Schedule& schedule() const { return schedule_; }

  /// The first buffer of this name and size, which is that of a block, since its method may have
  /// others. Empty if there is none.
  Slice find(const std::string& name, std::int64_t count) const;
  std::vector<float> part(const Slice& slice) const;
  /// Columns of a matrix whose rows have `width` elements: [rows, count] for each entry of `of`.
  std::vector<std::vector<float>> columns(const Slice& matrix, std::int64_t width,
                                          std::span<const Columns> of) const;
  /// The rows of one head of a tensor [tokens, heads, width] in double, from token `first` on.
  std::vector<double> of_head(const Slice& tensor, std::int64_t row, std::int64_t width, std::int64_t head,
                              std::int64_t first, std::int64_t tokens) const;

 private:
  const Executor& executor_;
  const Schedule& schedule_;
  int rank_;
  mutable std::vector<float> piece_;
};

/// A model after a round, on the processes that compare it together.
struct SampledRun {
  const ModelProblem& problem;
  const std::vector<RankTensors>& ranks;  // of this process
  const OracleWork& work;
  const Team& team;
  /// The largest relative error of a rounded message; 0 if messages are not rounded.
  double wire_roundoff = 0;

  const Stack& stack() const { return problem.stack; }
  /// True if the gradients of a layer's attention are there: later work overwrites those of all
  /// layers but the first.
  bool has_gradients(int layer) const { return layer == 0 && stack().has_backward; }
  /// True for a layer one head of which is compared over all tokens: the first, and a drawn one. In
  /// a forward pass alone later layers overwrite the tensors of earlier ones, and every layer that
  /// is compared at all is one.
  bool is_drawn(int layer) const {
    const auto layers = static_cast<std::uint64_t>(stack().shape.count());
    return layer == 0 || !stack().has_backward || problem.seed % layers == static_cast<std::uint64_t>(layer);
  }
  /// The layers of a kind whose tensors are there after a round.
  std::vector<int> layers(Attention kind) const;
  /// The `count` numbers of a rank's own tokens in a tensor of linear attention, which under
  /// `whole` has those of all ranks. Empty if there is no such tensor.
  Slice own_rows(const RankTensors& rank, const std::string& name, std::int64_t count) const {
    if (!stack().runs_whole()) return rank.find(name, count);
    return rank.find(name, problem.ranks * count).block(rank.rank(), problem.ranks);
  }
  LayerShape share(int layer) const {
    return stack().shape.share(stack().shape.layers[layer], stack().tokens);
  }
  /// The largest relative error of attention over many tokens.
  double attention_tolerance() const;
};

/// Adds to `into` a part of a rank's results whose relative error is `error`; `what` names the
/// part.
void note(Comparison& into, double error, double tolerance, const std::string& what);

}  // namespace baton
