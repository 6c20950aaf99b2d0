// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/mixer_rows.hpp"

#include <utility>

#include "sp_methods/models/kernels/block.hpp"

namespace baton {
namespace {

/// The columns of a projection of one or two matrices.
std::int64_t columns_of(const LayerWeights& weights, const std::string& name) {
  return weights[weights.has(name) ? name : name + "_up"].weight.columns;
}

}  // namespace

/// Records q, k or v: a projection, and what follows it.
void MixerRows::record_row(const LayerWeights& weights, const Slice& n, const std::string& name,
                           const std::string& weight, const Positions& positions) {
  Schedule& schedule = memory_.schedule();
  const std::int64_t columns = columns_of(weights, weight);
  const bool is_lightning = shape_.is_lightning(kind_);
  Slice row = is_normed(name) || is_lightning ? memory_.kept("raw_" + name, columns)
              : turns(name)                   ? memory_.working("raw_" + name, columns)
                                              : memory_.kept(name, columns);
  products_.project_through(weights, weight, n, row);
  if (is_lightning) baton::record<SwiGlu>(schedule, rows(columns), {row, {}, memory_.kept(name, columns)});
  if (is_normed(name)) {
    const Slice normed =
        turns(name) ? memory_.working("normed_" + name, columns) : memory_.kept(name, columns);
    baton::record<RmsNorm>(schedule, head_rows(columns), {row, weights[weight + "_norm"].slice, normed});
    row = normed;
  }
  if (turns(name))
    baton::record<Rotate>(schedule, rotation(columns, shape_.softmax.d_k, positions, false),
                          {row, memory_.kept(name, columns)});
}

/// Records the gradient of q's, k's or v's projection for that of q, k or v.
Slice MixerRows::record_row_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                     const Slice& d, const std::string& name, const std::string& weight,
                                     const Positions& positions) {
  Schedule& schedule = memory_.schedule();
  const std::int64_t columns = columns_of(weights, weight);
  Slice row = d;
  if (turns(name)) {
    row = memory_.working("d_normed_" + name, columns);
    baton::record<Rotate>(schedule, rotation(columns, shape_.softmax.d_k, positions, true), {d, row});
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

/// Records k and v of latent rows, and the part of k that all heads share.
void MixerRows::record_latent(const LayerWeights& weights, const Slice& n, const Positions& positions) {
  const SoftmaxLayers& of = shape_.softmax;
  const Slice c = products_.project_down(weights, "latent", n);
  products_.project(memory_.kept("v", of.heads * of.d_v), c, weights["value"]);
  const Slice k = memory_.kept("k", of.heads * of.d_k);
  if (of.shared_k == 0) return products_.project(k, c, weights["key"]);
  const Slice own = memory_.working("own_k", weights["key"].weight.columns);
  products_.project(own, c, weights["key"]);
  Slice shared = memory_.working("shared_k", of.shared_k);
  products_.project(shared, n, weights["shared_key"]);
  if (of.rotated > 0) {
    const Slice straight = std::exchange(shared, memory_.working("turned_k", of.shared_k));
    baton::record<Rotate>(memory_.schedule(), rotation(of.shared_k, of.shared_k, positions, false),
                          {straight, shared});
  }
  baton::record<JoinKeys>(memory_.schedule(), key_parts(), {shared, own, k});
}

/// Cuts the gradient dk into `d_own` and that of the shared part's projection, which it returns.
Slice MixerRows::record_shared_backward(const Slice& dk, const Slice& d_own, const Positions& positions) {
  const SoftmaxLayers& of = shape_.softmax;
  Slice d_shared = memory_.working("d_turned_k", of.shared_k);
  baton::record<JoinKeyGradients>(memory_.schedule(), key_parts(), {dk, d_shared, d_own});
  if (of.rotated == 0) return d_shared;
  const Slice d_turned = std::exchange(d_shared, memory_.working("d_shared_k", of.shared_k));
  baton::record<Rotate>(memory_.schedule(), rotation(of.shared_k, of.shared_k, positions, true),
                        {d_turned, d_shared});
  return d_shared;
}

/// Records the gradients of what makes k and v of latent rows. Returns that of the latent rows'
/// projection.
Slice MixerRows::record_latent_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                        const Slice& d_own, const Slice& dv) {
  const Slice c = products_.between(weights, "latent"), d_c = memory_.working("d_c", shape_.softmax.kv_rank);
  products_.record_gradient(gradients["key"], c, d_own);
  products_.record_gradient(gradients["value"], c, dv);
  products_.project_back(d_c, d_own, weights["key"]);
  products_.project_back(d_c, dv, weights["value"], d_c);
  return products_.between_gradient(weights, gradients, "latent", d_c);
}

void MixerRows::record(const LayerWeights& weights, const Slice& n, const Positions& positions) {
  record_row(weights, n, "q", "query", positions);
  if (shape_.is_latent(kind_)) return record_latent(weights, n, positions);
  record_row(weights, n, "k", "key", positions);
  record_row(weights, n, "v", "value", positions);
}

ProjectionGradients MixerRows::record_backward(const LayerWeights& weights, const LayerWeights& gradients,
                                               const Positions& positions, const LayerTensors& x) {
  const auto row = [&](const Slice& d, const char* name, const char* weight) {
    return record_row_backward(weights, gradients, d, name, weight, positions);
  };
  ProjectionGradients all{{"query", row(x.dq, "q", "query")}};
  if (!shape_.is_latent(kind_)) {
    all.emplace_back("key", row(x.dk, "k", "key"));
    all.emplace_back("value", row(x.dv, "v", "value"));
    return all;
  }
  Slice d_own = x.dk;
  if (shape_.softmax.shared_k > 0) {
    d_own = memory_.working("d_own_k", weights["key"].weight.columns);
    all.emplace_back("shared_key", record_shared_backward(x.dk, d_own, positions));
  }
  all.emplace_back("latent_down", record_latent_backward(weights, gradients, d_own, x.dv));
  return all;
}

}  // namespace baton
