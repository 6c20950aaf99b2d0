// SPDX-License-Identifier: Apache-2.0
// Functions of rows [tokens, width] in double precision, as blocks have them around their products,
// and gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "sp_methods/kernels/reference/roundings.hpp"
#include "sp_methods/models/reference/mixers.hpp"

namespace baton {

/// The logistic function of each element.
Matrix sigmoid(const Matrix& x);
Matrix silu(const Matrix& x);
/// The slope of silu.
Matrix silu_slope(const Matrix& x);
Matrix softplus(const Matrix& x);

/// Each of the numbers [1, heads] as often as a head has columns of x, times x.
Matrix times_heads(const Matrix& x, const Matrix& of_heads);

/// Turns pairs of channels of each head of x by the positions of their tokens, of which `period`
/// ones are a sequence; back if `back`.
Matrix turned(const Matrix& x, const SoftmaxLayers& of, std::int64_t period, bool back);

/// Normalises each group of `group` columns of a row of x [tokens, width]: divides it by the square
/// root of its mean square plus epsilon, and multiplies it by the weight [group], or by its part of
/// the weight [width].
Matrix reference_norm(const Matrix& x, const Matrix& weight, std::int64_t group);

/// The gradient of x for the gradient d_y of reference_norm. `gradients` gets those of the weight,
/// one a rank of `ranks`, and the two terms of the result are rounded.
Matrix reference_norm_backward(const Matrix& x, const Matrix& weight, std::int64_t group, const Matrix& d_y,
                               int ranks, std::vector<Matrix>& gradients, Roundings& roundings);

/// The matrix x, whose numbers are rounded by `roundings`.
Matrix rounded(Matrix x, Roundings& roundings);

/// The sums x^T d_y over the tokens of each of `ranks` ranks.
std::vector<Matrix> sums_by_rank(const Matrix& x, const Matrix& d_y, int ranks);

}  // namespace baton
