// SPDX-License-Identifier: Apache-2.0
// What the matrices of affine maps cost a case: their share of the bytes, and the products.
#pragma once

#include <cstdint>
#include <optional>

namespace baton {

struct Case;

/// The cost of the matrices of affine maps.
struct MatrixCost {
  /// Bytes of matrices sent by the rank that sends most bytes.
  std::int64_t sent_bytes = 0;
  /// Floating-point operations of matrix products on the rank that has most of them.
  double product_flops = 0;
};

/// The cost of the matrices of a collective under affine maps, counted from its schedules; empty
/// for other workloads.
std::optional<MatrixCost> matrix_cost_of(const Case& bench_case, int blocks);

}  // namespace baton
