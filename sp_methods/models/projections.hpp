// SPDX-License-Identifier: Apache-2.0
// The memory and the products of a block on one rank, forward and backward.
#pragma once

#include <map>
#include <string>

#include "collectives/schedule/schedule.hpp"
#include "sp_methods/models/kernels/block.hpp"
#include "sp_methods/models/shape.hpp"

namespace baton {

/// The tensors [tokens, row] of one block on one rank. Working memory comes from the schedule's
/// `scratch`, so that the blocks of a stack can share it; what is kept for the backward pass does
/// not.
class BlockMemory {
 public:
  /// Names of kept tensors end in `label`. If `keeps` is false, no backward pass follows, and they
  /// are working memory too.
  BlockMemory(Schedule& schedule, std::int64_t tokens, Dtype dtype, const std::string& label, bool keeps)
      : schedule_(schedule), tokens_(tokens), dtype_(dtype), label_(label), keeps_(keeps) {}

  Slice working(const std::string& name, std::int64_t row) {
    return schedule_.scratch(name, tokens_ * row, dtype_);
  }
  Slice kept(const std::string& name, std::int64_t row) {
    const std::string label = name + label_;
    return kept_[name] = keeps_ ? schedule_.lasting_scratch(label, tokens_ * row, dtype_)
                                : schedule_.scratch(label, tokens_ * row, dtype_);
  }
  /// The tensor that was kept as `name`. Throws std::out_of_range if there is none.
  const Slice& kept(const std::string& name) const { return kept_.at(name); }
  /// Keeps a tensor that lies elsewhere.
  void keep(const std::string& name, const Slice& slice) { kept_[name] = slice; }

  /// Sets the number of tokens of the tensors that follow: this rank's, or those of all ranks.
  void work_on(std::int64_t tokens) { tokens_ = tokens; }

  Schedule& schedule() const { return schedule_; }
  std::int64_t tokens() const { return tokens_; }
  Dtype dtype() const { return dtype_; }

 private:
  Schedule& schedule_;
  std::int64_t tokens_;
  Dtype dtype_;
  std::string label_;
  bool keeps_;
  std::map<std::string, Slice> kept_;
};

/// The products of a block's rows with its weights. A projection has one matrix, called as it, or
/// two, called NAME_down and NAME_up, with few numbers between them, which are kept. If there is a
/// weight NAME_down_norm, these are normed.
class Projections {
 public:
  explicit Projections(BlockMemory& memory) : memory_(memory) {}

  /// Sets into [tokens, columns] to c + x W; an empty c is left out.
  void project(const Slice& into, const Slice& x, const PlacedWeight& weight, const Slice& c = {});
  /// Sets into [tokens, rows] to c + d_y W^T; an empty c is left out.
  void project_back(const Slice& into, const Slice& d_y, const PlacedWeight& weight, const Slice& c = {});
  /// Sets the gradient of a weight to x^T d_y, summed over this rank's tokens.
  void record_gradient(const PlacedWeight& gradient, const Slice& x, const Slice& d_y);

  /// Keeps n W of NAME_down, and returns it as NAME_up takes it.
  Slice project_down(const LayerWeights& weights, const std::string& name, const Slice& n);
  /// Makes what `project_down` returned again.
  Slice between(const LayerWeights& weights, const std::string& name);
  /// Returns the gradient of what NAME_down makes for that of what NAME_up takes.
  Slice between_gradient(const LayerWeights& weights, const LayerWeights& gradients, const std::string& name,
                         const Slice& d);

  /// Sets `into` to the projection called `name` of n.
  void project_through(const LayerWeights& weights, const std::string& name, const Slice& n,
                       const Slice& into);
  /// Sets the gradients of that projection's weights, and d_n to c + the gradient of n.
  void project_back_through(const LayerWeights& weights, const LayerWeights& gradients,
                            const std::string& name, const Slice& n, const Slice& d_y, const Slice& d_n,
                            const Slice& c);

 private:
  Rows rows(std::int64_t rank) const { return {memory_.tokens(), rank, norm_epsilon, memory_.dtype()}; }

  BlockMemory& memory_;
};

}  // namespace baton
