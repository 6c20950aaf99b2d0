// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/attention_flops.hpp"

namespace baton {

AttentionFlops attention_flops(Attention attention, Rule rule, std::int64_t heads, std::int64_t d_k,
                               std::int64_t d_v) {
  if (attention == Attention::softmax) return {.per_pair = static_cast<double>(heads * (d_k + d_v))};
  const int products = rule == Rule::decay ? 2 : rule == Rule::delta ? 3 : 4;
  return {.per_token = 2.0 * products * static_cast<double>(heads * d_k * d_v)};
}

}  // namespace baton
