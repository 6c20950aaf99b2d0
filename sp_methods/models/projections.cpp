// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/projections.hpp"

#include "sp_methods/sp_method.hpp"

namespace baton {

void Projections::project(const Slice& into, const Slice& x, const PlacedWeight& weight, const Slice& c) {
  record<Matmul>(memory_.schedule(),
                 {.rows = memory_.tokens(),
                  .columns = weight.weight.columns,
                  .depth = weight.weight.rows,
                  .adds = !c.empty(),
                  .dtype = x.dtype,
                  .out = into.dtype},
                 {.a = x, .b = weight.slice, .c = c, .out = into});
}

void Projections::project_back(const Slice& into, const Slice& d_y, const PlacedWeight& weight,
                               const Slice& c) {
  record<Matmul>(memory_.schedule(),
                 {.rows = memory_.tokens(),
                  .columns = weight.weight.rows,
                  .depth = weight.weight.columns,
                  .transposes_b = true,
                  .adds = !c.empty(),
                  .dtype = d_y.dtype,
                  .out = into.dtype},
                 {.a = d_y, .b = weight.slice, .c = c, .out = into});
}

void Projections::record_gradient(const PlacedWeight& gradient, const Slice& x, const Slice& d_y) {
  record<Matmul>(memory_.schedule(),
                 {.rows = gradient.weight.rows,
                  .columns = gradient.weight.columns,
                  .depth = memory_.tokens(),
                  .transposes_a = true,
                  .dtype = x.dtype,
                  .out = gradient.slice.dtype},
                 {.a = x, .b = d_y, .out = gradient.slice});
}

Slice Projections::project_down(const LayerWeights& weights, const std::string& name, const Slice& n) {
  const PlacedWeight& down = weights[name + "_down"];
  project(memory_.kept(name + "_between", down.weight.columns), n, down);
  return between(weights, name);
}

Slice Projections::between(const LayerWeights& weights, const std::string& name) {
  const Slice raw = memory_.kept(name + "_between");
  const std::string norm = name + "_down_norm";
  if (!weights.has(norm)) return raw;
  const std::int64_t rank = weights[norm].weight.columns;
  const Slice normed = memory_.working(name + "_normed", rank);
  record<RmsNorm>(memory_.schedule(), rows(rank), {raw, weights[norm].slice, normed});
  return normed;
}

Slice Projections::between_gradient(const LayerWeights& weights, const LayerWeights& gradients,
                                    const std::string& name, const Slice& d) {
  const std::string norm = name + "_down_norm";
  if (!weights.has(norm)) return d;
  const std::int64_t rank = weights[norm].weight.columns;
  const Slice d_raw = memory_.working("d_" + name + "_raw", rank);
  record<RmsNormGradients>(
      memory_.schedule(), rows(rank),
      {memory_.kept(name + "_between"), weights[norm].slice, d, {}, d_raw, gradients[norm].slice});
  return d_raw;
}

void Projections::project_through(const LayerWeights& weights, const std::string& name, const Slice& n,
                                  const Slice& into) {
  if (weights.has(name)) return project(into, n, weights[name]);
  project(into, project_down(weights, name, n), weights[name + "_up"]);
}

void Projections::project_back_through(const LayerWeights& weights, const LayerWeights& gradients,
                                       const std::string& name, const Slice& n, const Slice& d_y,
                                       const Slice& d_n, const Slice& c) {
  const bool is_one = weights.has(name);
  Slice d = d_y;
  if (!is_one) {
    const Slice rows = between(weights, name);
    d = memory_.schedule().scratch("d_" + name + "_between", rows.count, memory_.dtype());
    record_gradient(gradients[name + "_up"], rows, d_y);
    project_back(d, d_y, weights[name + "_up"]);
    d = between_gradient(weights, gradients, name, d);
  }
  const std::string first = is_one ? name : name + "_down";
  record_gradient(gradients[first], n, d);
  project_back(d_n, d, weights[first], c);
}

}  // namespace baton
