// SPDX-License-Identifier: Apache-2.0
// The short causal convolution of one head of q, k or v of one document in double precision, by its
// definition (kernels/conv.hpp).
#pragma once

#include <cstdint>
#include <vector>

namespace baton {

/// One head's rows, [rows, width], the first `history` of which stand before the tokens, and its
/// weights [width, taps], or with biases [width, taps + 1].
struct ReferenceConvolution {
  std::int64_t width = 0;
  std::int64_t taps = 0;
  bool has_unit_rows = false;
  bool has_bias = false;  ///< True if each channel's last weight is its bias.
  std::vector<double> x, w;
  std::int64_t history = 0;

  std::int64_t weights() const { return taps + (has_bias ? 1 : 0); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(x.size()) / width - history; }
};

/// The sums before the activation, [tokens, width].
std::vector<double> reference_sums(const ReferenceConvolution& of);

/// The rows y behind activation and norm, [tokens, width].
std::vector<double> reference_rows(const ReferenceConvolution& of);

/// dz of the tokens from the gradients of y, [tokens, width].
std::vector<double> reference_activation_gradients(const ReferenceConvolution& of,
                                                   const std::vector<double>& dy);

/// dx of all rows from dz, [rows, width], those of the history too.
std::vector<double> reference_input_gradients(const ReferenceConvolution& of, const std::vector<double>& dz);

/// dw from dz, shaped as the weights.
std::vector<double> reference_weight_gradients(const ReferenceConvolution& of, const std::vector<double>& dz);

}  // namespace baton
