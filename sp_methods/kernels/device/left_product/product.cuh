// SPDX-License-Identifier: Apache-2.0
// The product out_I += s sum over J of f_IJ (left_I middle_J^T) right_J of rank.cuh: one block a
// head and tile of 128 rows, four warps.
//
//   inner:  left's fragments are multiplied by f_IJ as they are loaded, two bf16 an instruction
//   outer:  the sums follow the columns' decay: before tile J they are multiplied by the decay
//           between J and the tile before it, so columns go from the farthest to the nearest
//
// Shared memory holds the rows' tile and two tiles of columns, 97 KiB at d = 128: two blocks a
// multiprocessor.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {

/// The column tiles that a row tile is multiplied with.
enum class ColumnTiles { earlier, later, all };

/// The index that the decay between tiles belongs to: none, the inner one that is summed, or the
/// outer one of the result.
enum class DecayIndex { none, inner, outer };

/// One product. Exponents are [tiles + 1, heads, d_k]; log2 f_IJ is the query's exponent minus the
/// key's.
struct ProductCall {
  const Bf16* left;     ///< [rows, heads, d_in]
  const Bf16* middle;   ///< [columns, heads, d_in]
  const Bf16* right;    ///< [columns, heads, d_out]
  float* out;           ///< [rows, heads, d_out]
  std::int64_t tokens;  ///< Number of rows and of columns.
  int heads;
  float scale;
  bool adds;  ///< True if the product is added to `out`; else it replaces `out`.
  bool rows_are_queries;
  ColumnTiles columns;
  const int* row_exponents;
  const int* column_exponents;
};

/// Enqueues one product with `left` rows of d_in elements and `out` rows of d_out elements.
cudaError_t enqueue_product(cudaStream_t stream, const ProductCall& call, int d_in, int d_out,
                            DecayIndex index);

}  // namespace baton
