// SPDX-License-Identifier: Apache-2.0
// The model whose steps kernels_bench times: one block between embedding and loss, with AdamW.
#include "harness/micro/step_timer.hpp"
#include "sp_methods/models/stack.hpp"

namespace baton {
namespace {

Schedule record(const StepSizes& sizes) {
  const std::int64_t width = sizes.heads * sizes.width;
  const ModelShape shape{.name = "block",
                         .width = width,
                         .mlp = 11 * width / 4,
                         .vocabulary = 32000,
                         .linear = {.heads = sizes.heads, .d_k = sizes.width / 2, .d_v = sizes.width},
                         .layers = {Attention::linear}};
  return build({.shape = shape,
                .linear = &find_method("local"),
                .layer = {.dtype = sizes.dtype, .segmented = sizes.dtype == Dtype::bf16},
                .tokens = sizes.tokens,
                .has_head = true,
                .has_optimizer = true},
               0, 1);
}

const RegisteredPart model(&TimedParts::model, record);

}  // namespace
}  // namespace baton
