// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/reference/maps.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

namespace baton {
namespace {

/// The least decay that counts: products with a smaller factor are lost in the roundings of f32
/// tensors.
constexpr double least_decay = 1e-12;

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

}  // namespace

ReferenceMap::ReferenceMap(const LayerShape& shape, bool is_forward)
    : shape_(shape), is_forward_(is_forward), decay_(shape.d_k, 1.0), state_(shape.d_k * shape.d_v, 0.0) {}

bool ReferenceMap::is_complete() const {
  return std::all_of(decay_.begin(), decay_.end(), [](double x) { return x < least_decay; });
}

std::vector<double> ReferenceMap::decay() const {
  return is_complete() ? std::vector<double>(decay_.size(), 0.0) : decay_;
}

void ReferenceMap::add(std::span<const float> left, std::span<const float> right, std::span<const float> g) {
  using Eigen::Index;
  const Index d_k = shape_.d_k, d_v = shape_.d_v, width = shape_.gate_width();
  const Index tokens = static_cast<Index>(left.size()) / d_k;
  Rows scaled(tokens, d_k), values(tokens, d_v);
  Eigen::Map<Eigen::ArrayXd> decay(decay_.data(), d_k);
  for (Index i = 0; i < tokens; ++i) {
    const Index t = is_forward_ ? tokens - 1 - i : i;
    const Eigen::Map<const Eigen::ArrayXf> row(left.data() + t * d_k, d_k);
    const auto pass = [&] {
      if (width == d_k)
        decay *= Eigen::Map<const Eigen::ArrayXf>(g.data() + t * width, width).cast<double>().exp();
      else if (width == 1)
        decay *= std::exp(double{g[t]});
    };
    // A token's own gate scales the state before it: its gradient passes that, its key does not.
    if (!is_forward_) pass();
    scaled.row(t) = (decay * row.cast<double>()).transpose();
    if (is_forward_) pass();
  }
  if (!is_forward_) scaled /= std::sqrt(static_cast<double>(d_k));
  values = Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
               right.data(), tokens, d_v)
               .cast<double>();
  Eigen::Map<Rows>(state_.data(), d_k, d_v).noalias() += scaled.transpose() * values;
}

}  // namespace baton
