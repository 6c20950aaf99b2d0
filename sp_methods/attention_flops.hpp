// SPDX-License-Identifier: Apache-2.0
// What attention costs, whatever kernels and methods compute it.
#pragma once

#include <cstdint>

#include "sp_methods/sp_method.hpp"

namespace baton {

/// The floating-point operations that attention needs forward, of all heads. Backward it needs
/// twice as many. What a kernel computes beyond the recurrence does not count.
struct AttentionFlops {
  /// For a token: 2 d_k d_v a head for each product with the state and for what is added to it.
  /// Gated linear attention has two of these, a delta rule three and a low-rank rule four.
  double per_token = 0;
  /// For a token and each token of its sequence: d_k + d_v a head of causal softmax attention,
  /// half of what all pairs need.
  double per_pair = 0;
};
/// Returns them for `heads` query heads with keys of `d_k` and values of `d_v` channels.
AttentionFlops attention_flops(Attention attention, Rule rule, std::int64_t heads, std::int64_t d_k,
                               std::int64_t d_v);

}  // namespace baton
