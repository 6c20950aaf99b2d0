// SPDX-License-Identifier: Apache-2.0
// The gradients of one head's chunk under a delta rule in double precision, from the state S before
// the chunk and the gradient D of the state behind it, values first. With b the sums of the log
// gates, B = diag(beta), G = tril_{-1}(k k^T), A = s tril(q k^T), both decayed by e^{b_i - b_j}:
//
//   (I + G B) R = v - e^b S k                    Vn = B R
//   (I + G^T B) Z = e^{all-b} D k + A^T dO       dv = B Z
//   dA = s dO Vn^T      dG = -dv Vn^T            pair by pair
//
// Cost: 64 tokens (20 d_k + 8 d_v) + 8 tokens d_k d_v flop, and one exponential a pair and channel.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace baton::test {

/// Rows of numbers.
struct Rows {
  std::size_t width = 0;
  std::vector<double> x;

  Rows(std::size_t rows, std::size_t columns) : width(columns), x(rows * columns) {}
  double* at(std::size_t row) { return x.data() + row * width; }
  const double* at(std::size_t row) const { return x.data() + row * width; }
};

/// The inputs of one head's chunk.
struct ChunkInputs {
  Rows q, k, v, d_o;
  Rows b;  ///< Sums of log gates, of each token and channel.
  std::vector<double> beta;
  Rows state, gradient;  ///< S and D [d_v, d_k].

  std::size_t tokens() const { return beta.size(); }
};

/// What the writes lacked (R), Z, and the gradients of a chunk's inputs; dg is one a channel.
class ChunkOracle {
 public:
  explicit ChunkOracle(const ChunkInputs& x)
      : missing(x.v),
        z(x.tokens(), x.v.width),
        dq(x.tokens(), x.k.width),
        dk(dq),
        dv(z),
        dg(dq),
        dbeta(x.tokens()),
        x_(x),
        over_chunk_(1, x.k.width) {
    solve_missing();
    solve_z();
    add_states();
    for (std::size_t i = 0; i < x.tokens(); ++i)
      for (std::size_t j = 0; j <= i; ++j) add_pair(i, j);
    sum_gates();
  }

  Rows missing, z, dq, dk, dv, dg;
  std::vector<double> dbeta;

 private:
  double scale() const { return 1 / std::sqrt(static_cast<double>(x_.k.width)); }
  double from_start(std::size_t i, std::size_t c) const { return std::exp(x_.b.at(i)[c]); }
  double to_end(std::size_t i, std::size_t c) const {
    return std::exp(x_.b.at(x_.tokens() - 1)[c] - x_.b.at(i)[c]);
  }
  double decay(std::size_t later, std::size_t earlier, std::size_t c) const {
    return std::exp(x_.b.at(later)[c] - x_.b.at(earlier)[c]);
  }
  /// The product of row i of `later` and key j, decayed.
  double score(const Rows& later, std::size_t i, std::size_t j) const {
    double sum = 0;
    for (std::size_t c = 0; c < later.width; ++c) sum += later.at(i)[c] * x_.k.at(j)[c] * decay(i, j, c);
    return sum;
  }
  static double product(const Rows& x, std::size_t i, const Rows& y, std::size_t j) {
    double sum = 0;
    for (std::size_t n = 0; n < x.width; ++n) sum += x.at(i)[n] * y.at(j)[n];
    return sum;
  }
  static void add(Rows& into, std::size_t i, double factor, const Rows& from, std::size_t j) {
    for (std::size_t n = 0; n < into.width; ++n) into.at(i)[n] += factor * from.at(j)[n];
  }

  void solve_missing() {
    for (std::size_t i = 0; i < x_.tokens(); ++i) {
      for (std::size_t n = 0; n < missing.width; ++n)
        for (std::size_t c = 0; c < dk.width; ++c)
          missing.at(i)[n] -= from_start(i, c) * x_.k.at(i)[c] * x_.state.at(n)[c];
      for (std::size_t j = 0; j < i; ++j) add(missing, i, -score(x_.k, i, j) * x_.beta[j], missing, j);
    }
  }
  void solve_z() {
    for (std::size_t i = x_.tokens(); i-- > 0;) {
      for (std::size_t n = 0; n < z.width; ++n)
        for (std::size_t c = 0; c < dk.width; ++c)
          z.at(i)[n] += to_end(i, c) * x_.k.at(i)[c] * x_.gradient.at(n)[c];
      for (std::size_t j = i; j < x_.tokens(); ++j) {
        add(z, i, scale() * score(x_.q, j, i), x_.d_o, j);
        if (j > i) add(z, i, -score(x_.k, j, i) * x_.beta[j], z, j);
      }
      add(dv, i, x_.beta[i], z, i);
      dbeta[i] = product(z, i, missing, i);
    }
  }

  /// Adds what S and D give, and their part of the gradient of b in dg.
  void add_states() {
    for (std::size_t i = 0; i < x_.tokens(); ++i)
      for (std::size_t c = 0; c < dk.width; ++c) {
        double query = 0, later = 0, earlier = 0;
        for (std::size_t n = 0; n < z.width; ++n) {
          query += scale() * from_start(i, c) * x_.d_o.at(i)[n] * x_.state.at(n)[c];
          later -= from_start(i, c) * dv.at(i)[n] * x_.state.at(n)[c];
          earlier += to_end(i, c) * x_.beta[i] * missing.at(i)[n] * x_.gradient.at(n)[c];
        }
        dq.at(i)[c] += query;
        dk.at(i)[c] += later + earlier;
        dg.at(i)[c] += x_.q.at(i)[c] * query + x_.k.at(i)[c] * (later - earlier);
        over_chunk_.at(0)[c] += x_.k.at(i)[c] * earlier;
      }
    for (std::size_t n = 0; n < z.width; ++n)
      for (std::size_t c = 0; c < dk.width; ++c)
        over_chunk_.at(0)[c] += from_start(x_.tokens() - 1, c) * x_.state.at(n)[c] * x_.gradient.at(n)[c];
  }

  /// Adds what token j gives token i, j <= i.
  void add_pair(std::size_t i, std::size_t j) {
    const double query = scale() * x_.beta[j] * product(x_.d_o, i, missing, j);
    const double key = i == j ? 0 : -x_.beta[j] * product(dv, i, missing, j);
    for (std::size_t c = 0; c < dk.width; ++c) {
      const double q = x_.q.at(i)[c], later = x_.k.at(i)[c], earlier = x_.k.at(j)[c];
      const double factor = decay(i, j, c);
      dq.at(i)[c] += query * factor * earlier;
      dk.at(i)[c] += key * factor * earlier;
      dk.at(j)[c] += (query * q + key * later) * factor;
      const double passes = (query * q + key * later) * factor * earlier;
      if (i == j) continue;
      dg.at(i)[c] += passes;
      dg.at(j)[c] -= passes;
    }
  }

  /// Turns the gradients of b into those of the gates.
  void sum_gates() {
    add(dg, x_.tokens() - 1, 1, over_chunk_, 0);
    for (std::size_t i = x_.tokens() - 1; i-- > 0;) add(dg, i, 1, dg, i + 1);
  }

  const ChunkInputs& x_;
  Rows over_chunk_;  // the gradient of b at the chunk's end, from what passes it
};

}  // namespace baton::test
