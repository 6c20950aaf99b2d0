// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/state_space.hpp"

#include "sp_methods/models/kernels/state_space.hpp"
#include "sp_methods/passes/convolution.hpp"

namespace baton {

void record_state_space(Schedule& schedule, const SpMethod& method, const Layer& layer, const LayerTensors& x,
                        const StateSpace& of, bool is_whole) {
  const LayerShape& share = layer.share;
  const auto rows = [&](float factor, bool adds = false) {
    return StepRows{share.tokens, share.heads, share.d_v, factor, adds, layer.dtype};
  };
  const float factor = 1 / share.scale();
  Convolution convolution(schedule, layer, x, Layout::contiguous, is_whole);
  const LayerTensors convolved = convolution.inside(x);
  LayerTensors inner = convolved;
  inner.v = schedule.scratch("stepped", convolved.v.count, layer.dtype);
  record<ScaleHeads>(schedule, rows(factor), {convolved.v, of.z, of.bias, {}, inner.v});
  Layer plain = layer;
  plain.share.conv = 0;
  const bool is_forward = layer.pass == Pass::forward;
  if (!is_forward) inner.dv = schedule.scratch("d_stepped", inner.v.count, layer.dtype);
  method.build(schedule, plain, inner);
  if (is_forward) return record<ScaleHeads>(schedule, rows(1, true), {convolved.v, {}, of.skip, x.o, x.o});
  record<StepGradients>(
      schedule, rows(factor),
      {convolved.v, of.z, of.bias, of.skip, inner.dv, x.d_o, convolved.dv, of.d_delta, of.d_skip});
  convolution.record_backward(x);
}

}  // namespace baton
