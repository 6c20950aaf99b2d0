// SPDX-License-Identifier: Apache-2.0
// The contract of a product of matrices, which a library computes: OpenBLAS on the host.
#pragma once

#include <cstdint>
#include <tuple>

#include "sp_methods/kernels/contracts.hpp"

namespace baton {

/// out [rows, columns] = c [rows, columns] + a [rows, depth] b [depth, columns], row-major.
struct Product {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  bool transposes_a = false;  ///< a lies as [depth, rows].
  bool transposes_b = false;  ///< b lies as [columns, depth].
  bool adds = false;          ///< There is a c.
};

struct Matmul {
  static constexpr const char* name = "matmul";
  using Parameters = Product;
  template <class A>
  struct Operands {
    In<A, Tensor> a{};
    In<A, Tensor> b{};
    In<A, Tensor> c{};  ///< What the product is added to, which may be `out`; null means zero.
    Out<A, Tensor> out{};
    auto reads() { return std::tie(a, b, c); }
    auto writes() { return std::tie(out); }
  };
  static double flops(const Product& p) {
    return 2.0 * static_cast<double>(p.rows) * static_cast<double>(p.columns) * static_cast<double>(p.depth);
  }
  static double bytes(const Product& p) {
    return 4.0 * static_cast<double>(p.rows * p.depth + p.depth * p.columns +
                                     (p.adds ? 2 : 1) * p.rows * p.columns);
  }
  static void on_host(const Operands<OnHost>& x, const Product& p);
};

}  // namespace baton
