// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/projections.hpp"

#include "sp_methods/models/kernels/block.hpp"
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

void Projections::project_through(const LayerWeights& weights, const std::string& name, const Slice& n,
                                  const Slice& into) {
  if (weights.has(name)) return project(into, n, weights[name]);
  const PlacedWeight& down = weights[name + "_down"];
  const Slice between = memory_.kept(name + "_between", down.weight.columns);
  project(between, n, down);
  project(into, between, weights[name + "_up"]);
}

void Projections::project_back_through(const LayerWeights& weights, const LayerWeights& gradients,
                                       const std::string& name, const Slice& n, const Slice& d_y,
                                       const Slice& d_n, const Slice& c) {
  const bool is_one = weights.has(name);
  Slice d = d_y;
  if (!is_one) {
    const Slice between = memory_.kept(name + "_between");
    d = memory_.schedule().scratch("d_" + name + "_between", between.count, memory_.dtype());
    record_gradient(gradients[name + "_up"], between, d_y);
    project_back(d, d_y, weights[name + "_up"]);
  }
  const std::string first = is_one ? name : name + "_down";
  record_gradient(gradients[first], n, d);
  project_back(d_n, d, weights[first], c);
}

}  // namespace baton
