// SPDX-License-Identifier: Apache-2.0
// Products of matrices by OpenBLAS, on the thread that calls.
#include <cblas.h>

#include <algorithm>

#include "models/kernels/dense.hpp"

namespace baton {
namespace {

/// Its own threads would take cores from other ranks (docs/decisions/0027-products-by-openblas.md).
void stay_on_this_thread() {
  static const bool is_told = [] {
    openblas_set_num_threads(1);
    return true;
  }();
  static_cast<void>(is_told);
}

}  // namespace

void Matmul::on_host(const Operands<OnHost>& x, const Product& p) {
  stay_on_this_thread();
  if (x.c != nullptr && x.c != x.out) std::copy_n(x.c, p.rows * p.columns, x.out);
  const auto transposed = [](bool is) { return is ? CblasTrans : CblasNoTrans; };
  const auto size = [](std::int64_t n) { return static_cast<blasint>(n); };
  cblas_sgemm(CblasRowMajor, transposed(p.transposes_a), transposed(p.transposes_b), size(p.rows),
              size(p.columns), size(p.depth), 1, x.a, size(p.transposes_a ? p.rows : p.depth), x.b,
              size(p.transposes_b ? p.depth : p.columns), x.c == nullptr ? 0 : 1, x.out, size(p.columns));
}

}  // namespace baton
