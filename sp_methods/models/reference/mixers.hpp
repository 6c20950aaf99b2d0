// SPDX-License-Identifier: Apache-2.0
// The attention of one layer of a model in double precision, over all tokens of all ranks.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/models/reference/values.hpp"

namespace baton {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The inputs of a layer's attention, or their gradients: [all tokens, heads x width] each. Those
/// that the layer does not have are empty.
struct AttentionRows {
  Matrix q, k, v, g, beta;
  Matrix conv;  ///< Weights [channels of q, of k, of v; taps] of the convolution.
  /// Of Mamba-2, the factors [tokens, heads] of values behind the convolution, and D [1, heads], by
  /// which these values are added to the output. Attention itself is not scaled then.
  Matrix steps, skip;
};

/// The gradients of a layer's attention; those of the convolution's weights and of D one a rank.
struct AttentionGradients {
  AttentionRows of;
  std::vector<Matrix> conv, skip;
};

/// The output [all tokens, heads x d_v] of a layer's attention. A `rounding` other than 0 is the
/// key by which results are rounded at random. `work` shares what there is to do.
Matrix reference_attention(const ModelProblem& problem, Attention kind, const AttentionRows& rows,
                           std::uint64_t rounding, const OracleWork& work = {});

/// The gradients for that of the output.
AttentionGradients reference_attention_backward(const ModelProblem& problem, Attention kind,
                                                const AttentionRows& rows, const Matrix& d_o,
                                                std::uint64_t rounding, const OracleWork& work = {});

}  // namespace baton
