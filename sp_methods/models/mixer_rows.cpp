// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/mixer_rows.hpp"

#include "sp_methods/models/kernels/block.hpp"

namespace baton {

/// Records q, k or v: a projection, and what follows it.
void MixerRows::record_row(const LayerWeights& weights, const Slice& n, const std::string& name,
                           const std::string& weight, const Positions& positions) {
  Schedule& schedule = memory_.schedule();
  const std::int64_t columns = weights[weight].weight.columns;
  const bool is_lightning = shape_.is_lightning(kind_);
  Slice row = is_normed(name) || is_lightning ? memory_.kept("raw_" + name, columns)
              : turns(name)                   ? memory_.working("raw_" + name, columns)
                                              : memory_.kept(name, columns);
  products_.project(row, n, weights[weight]);
  if (is_lightning) baton::record<SwiGlu>(schedule, rows(columns), {row, {}, memory_.kept(name, columns)});
  if (is_normed(name)) {
    const Slice normed =
        turns(name) ? memory_.working("normed_" + name, columns) : memory_.kept(name, columns);
    baton::record<RmsNorm>(schedule, head_rows(columns), {row, weights[weight + "_norm"].slice, normed});
    row = normed;
  }
  if (turns(name))
    baton::record<Rotate>(schedule, rotation(columns, positions, false), {row, memory_.kept(name, columns)});
}

/// Records the gradient of q's, k's or v's projection for that of q, k or v.
Slice MixerRows::record_row_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                     const Slice& d, const std::string& name, const std::string& weight,
                                     const Positions& positions) {
  Schedule& schedule = memory_.schedule();
  const std::int64_t columns = weights[weight].weight.columns;
  Slice row = d;
  if (turns(name)) {
    row = memory_.working("d_normed_" + name, columns);
    baton::record<Rotate>(schedule, rotation(columns, positions, true), {d, row});
  }
  if (!is_normed(name) && !shape_.is_lightning(kind_)) return row;
  const Slice raw = memory_.kept("raw_" + name), d_raw = memory_.working("d_raw_" + name, columns);
  if (!is_normed(name)) {
    baton::record<SwiGluGradients>(schedule, rows(columns), {raw, {}, row, d_raw, {}});
    return d_raw;
  }
  baton::record<RmsNormGradients>(
      schedule, head_rows(columns),
      {raw, weights[weight + "_norm"].slice, row, {}, d_raw, gradients[weight + "_norm"].slice});
  return d_raw;
}

void MixerRows::record(const LayerWeights& weights, const Slice& n, const Positions& positions) {
  record_row(weights, n, "q", "query", positions);
  record_row(weights, n, "k", "key", positions);
  record_row(weights, n, "v", "value", positions);
}

void MixerRows::record_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                const Positions& positions, LayerTensors& x) {
  x.dq = record_row_backward(weights, gradients, x.dq, "q", "query", positions);
  x.dk = record_row_backward(weights, gradients, x.dk, "k", "key", positions);
  x.dv = record_row_backward(weights, gradients, x.dv, "v", "value", positions);
}

}  // namespace baton
