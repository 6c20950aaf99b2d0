// SPDX-License-Identifier: Apache-2.0
// The rows q, k and v of a block's attention: projections of the normed rows, and what a layer does
// to them before its attention.
//
//   lightning   q, k, v = silu(n W)
//   softmax     q, k = rotated(norm(n W)) of each head; v = n W
//   latent      c = norm(n W);  k = (rotated(n W), c W), whose first part all heads share;  v = c W
//   others      q, k, v = n W
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sp_methods/kernels/positions.hpp"
#include "sp_methods/models/kernels/gates.hpp"
#include "sp_methods/models/kernels/key_parts.hpp"
#include "sp_methods/models/projections.hpp"
#include "sp_methods/models/shape.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// The names of projections of the normed rows, with their gradients.
using ProjectionGradients = std::vector<std::pair<std::string, Slice>>;

/// Records the rows of one layer's attention, and their gradients.
class MixerRows {
 public:
  /// The rows of a layer of `kind`. Everything must outlive this.
  MixerRows(const ModelShape& shape, Attention kind, BlockMemory& memory, Projections& products)
      : shape_(shape), kind_(kind), memory_(memory), products_(products) {}

  /// Keeps q, k and v of the normed rows n, whose tokens stand at `positions`.
  void record(const LayerWeights& weights, const Slice& n, const Positions& positions);
  /// Records the gradients of all weights but those of projections of n, whose own it returns.
  ProjectionGradients record_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                      const Positions& positions, const LayerTensors& x);

 private:
  bool is_normed(const std::string& name) const {
    return kind_ == Attention::softmax && shape_.softmax.has_head_norms && name != "v";
  }
  bool turns(const std::string& name) const {
    return kind_ == Attention::softmax && shape_.softmax.rotated > 0 && name != "v";
  }
  Rows rows(std::int64_t columns) const { return {memory_.tokens(), columns, 0, memory_.dtype()}; }
  Rows head_rows(std::int64_t columns) const {
    const std::int64_t d_k = shape_.softmax.d_k;
    return {memory_.tokens() * columns / d_k, d_k, norm_epsilon, memory_.dtype()};
  }
  /// The rotation of rows of heads [columns / width, width].
  Rotation rotation(std::int64_t columns, std::int64_t width, const Positions& positions,
                    bool turns_back) const {
    const SoftmaxLayers& of = shape_.softmax;
    return {memory_.tokens(), columns / width, width,      of.rotated,
            of.rotation_base, positions,       turns_back, memory_.dtype()};
  }
  KeyParts key_parts() const {
    const SoftmaxLayers& of = shape_.softmax;
    return {memory_.tokens(), of.heads, of.shared_k, of.d_k - of.shared_k, memory_.dtype()};
  }
  void record_latent(const LayerWeights& weights, const Slice& n, const Positions& positions);
  Slice record_latent_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d_own,
                               const Slice& dv);
  Slice record_shared_backward(const Slice& dk, const Slice& d_own, const Positions& positions);
  void record_row(const LayerWeights& weights, const Slice& n, const std::string& name,
                  const std::string& weight, const Positions& positions);
  Slice record_row_backward(const LayerWeights& weights, const LayerWeights& gradients, const Slice& d,
                            const std::string& name, const std::string& weight, const Positions& positions);

  const ModelShape& shape_;
  Attention kind_;
  BlockMemory& memory_;
  Projections& products_;
};

}  // namespace baton
