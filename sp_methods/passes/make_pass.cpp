// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/passes/make_pass.hpp"

#include "sp_methods/passes/chunked_pass.hpp"
#include "sp_methods/passes/matrix_pass.hpp"
#include "sp_methods/passes/segmented_pass.hpp"

namespace baton {

std::unique_ptr<LinearPass> make_pass(Schedule& schedule, const PassInputs& inputs) {
  const Layer& layer = inputs.layer;
  if (layer.rule == Rule::low_rank) return std::make_unique<MatrixPass<LowRankKernels>>(schedule, inputs);
  if (layer.rule == Rule::delta) return std::make_unique<MatrixPass<DeltaKernels>>(schedule, inputs);
  if (layer.segmented) return std::make_unique<SegmentedPass>(schedule, inputs);
  return std::make_unique<ChunkedPass>(schedule, inputs);
}

}  // namespace baton
