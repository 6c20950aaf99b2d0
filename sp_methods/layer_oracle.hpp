// SPDX-License-Identifier: Apache-2.0
// Random layers and their results by the double-precision references over the whole sequence, cut
// into ranks.
//
//   draw q, k, v, g, d_o of all P L tokens in the kernels' type
//   for each head and sequence: reference forward and backward in double
//   a rank's tensors are the rows of its positions
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sp_methods/sp_method.hpp"

namespace baton {

/// How log gates are drawn: as gated linear attention's layer makes them, logsigmoid(N(0,1)) / 16;
/// or uniform in [-8, 0], strong enough to need the kernels' safe path.
enum class GateDraw { layer, strong };

const char* to_string(GateDraw draw);

/// One layer over all ranks with its inputs and its results.
class LayerOracle {
 public:
  /// Draws numbers that `dtype` holds exactly, and solves. `alone` makes every rank's tokens a
  /// sequence of their own. Throws nothing.
  LayerOracle(Attention attention, const GlaShape& share, int ranks, bool alone, GateDraw gates,
              std::uint64_t seed, Dtype dtype = Dtype::f32);

  /// The values of an input called q, k, v, g, d_o, prefix, out or lse for the tokens at
  /// `positions` of `rank`.
  std::vector<float> input(const std::string& name, int rank, const Positions& positions) const;

  /// What the output called o, dq, dk, dv or dg must hold there.
  std::vector<double> expected(const std::string& name, const Positions& positions) const;

 private:
  using Tensor = std::vector<double>;  // [tokens, heads, width]

  void draw(GateDraw gates, std::uint64_t seed, Dtype dtype);
  void solve(std::int64_t first_token, std::int64_t tokens);
  void solve_head(std::int64_t first_token, std::int64_t tokens, std::int64_t head);
  Tensor head_rows(const std::string& name, std::int64_t first_token, std::int64_t tokens,
                   std::int64_t head) const;
  void put_head(const std::string& name, std::int64_t first_token, std::int64_t head, const Tensor& rows);
  std::vector<float> prefix(int rank) const;
  std::int64_t width(const std::string& name) const;

  Attention attention_;
  GlaShape share_;
  int ranks_;
  bool alone_;
  std::map<std::string, Tensor> tensors_;
};

/// ||got - expected|| / ||expected||, or ||got|| where nothing is expected; infinite where a value
/// is not finite.
double relative_error(const std::vector<float>& got, const std::vector<double>& expected);

}  // namespace baton
