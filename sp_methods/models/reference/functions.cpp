// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/reference/functions.hpp"

#include <algorithm>
#include <cmath>

namespace baton {

Matrix sigmoid(const Matrix& x) {
  return x.unaryExpr([](double z) { return 1 / (1 + std::exp(-z)); });
}

Matrix silu(const Matrix& x) { return x.cwiseProduct(sigmoid(x)); }

Matrix silu_slope(const Matrix& x) {
  return x.unaryExpr([](double z) {
    const double s = 1 / (1 + std::exp(-z));
    return s * (1 + z * (1 - s));
  });
}

std::vector<Matrix> sums_by_rank(const Matrix& x, const Matrix& d_y, int ranks) {
  std::vector<Matrix> all;
  const auto tokens = x.rows() / ranks;
  for (int rank = 0; rank < ranks; ++rank)
    all.emplace_back(x.middleRows(rank * tokens, tokens).transpose() * d_y.middleRows(rank * tokens, tokens));
  return all;
}

Matrix rounded(Matrix x, Roundings& roundings) {
  roundings.round({x.data(), static_cast<std::size_t>(x.size())});
  return x;
}

Matrix reference_norm(const Matrix& x, const Matrix& weight, std::int64_t group) {
  Matrix y(x.rows(), x.cols());
  for (Eigen::Index row = 0; row < x.rows(); ++row)
    for (Eigen::Index at = 0; at < x.cols(); at += group) {
      const auto part = x.row(row).segment(at, group);
      const double scale =
          1 / std::sqrt(part.squaredNorm() / static_cast<double>(group) + static_cast<double>(norm_epsilon));
      y.row(row).segment(at, group) =
          scale * part.cwiseProduct(weight.row(0).segment(at % weight.cols(), group));
    }
  return y;
}

Matrix reference_norm_backward(const Matrix& x, const Matrix& weight, std::int64_t group, const Matrix& d_y,
                               int ranks, std::vector<Matrix>& gradients, Roundings& roundings) {
  Matrix d_x(x.rows(), x.cols());
  gradients.assign(ranks, Matrix::Zero(1, weight.cols()));
  for (Eigen::Index row = 0; row < x.rows(); ++row)
    for (Eigen::Index at = 0; at < x.cols(); at += group) {
      const Matrix part = x.row(row).segment(at, group), d = d_y.row(row).segment(at, group);
      const double n = static_cast<double>(group), mean = part.squaredNorm() / n + double{norm_epsilon};
      const Matrix weighted = d.cwiseProduct(weight.row(0).segment(at % weight.cols(), group));
      // y_i = w_i x_i m^(-1/2), so dy_i/dx_j = w_i (delta_ij m^(-1/2) - x_i x_j / n m^(-3/2)).
      const double dot = weighted.cwiseProduct(part).sum();
      d_x.row(row).segment(at, group) = rounded(weighted / std::sqrt(mean), roundings) -
                                        rounded(part * (dot / n / std::pow(mean, 1.5)), roundings);
      gradients[row * ranks / x.rows()].row(0).segment(at % weight.cols(), group) +=
          d.cwiseProduct(part) / std::sqrt(mean);
    }
  return d_x;
}

Matrix turned(const Matrix& x, const SoftmaxLayers& of, std::int64_t period, bool back) {
  Matrix y = x;
  const std::int64_t half = of.rotated / 2;
  for (Eigen::Index t = 0; t < x.rows(); ++t)
    for (std::int64_t at = 0; at < x.cols(); at += of.d_k)
      for (std::int64_t i = 0; i < half; ++i) {
        const double turn = static_cast<double>(t % period) *
                            std::pow(of.rotation_base, -static_cast<double>(i) / static_cast<double>(half)),
                     cosine = std::cos(turn), sine = back ? -std::sin(turn) : std::sin(turn);
        y(t, at + i) = cosine * x(t, at + i) - sine * x(t, at + half + i);
        y(t, at + half + i) = cosine * x(t, at + half + i) + sine * x(t, at + i);
      }
  return y;
}

Matrix softplus(const Matrix& x) {
  return x.unaryExpr([](double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))); });
}

Matrix times_heads(const Matrix& x, const Matrix& of_heads) {
  const auto group = x.cols() / of_heads.cols();
  Matrix y = x;
  for (Eigen::Index c = 0; c < x.cols(); ++c) y.col(c) *= of_heads(0, c / group);
  return y;
}

}  // namespace baton
