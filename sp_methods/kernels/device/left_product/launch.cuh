// SPDX-License-Identifier: Apache-2.0
// Linear attention in the left-product manner on one device: bf16 tensors [tokens, heads, width], fp32 sums.
//
//   once a pass:   Q~ = q e^{b - r_I},  K^ = k e^{r_J+1 - b}          b cumulative log gate, r_I its value near edge I
//   any product:   C_I += s sum over J of f_IJ (L_I M_J^T) N_J        with L, M, N as the table says
//   at the end:    dq = w (.) X,  dk = w' (.) Y,  dg by suffix sums of Z = Q~ (.) X - K^ (.) Y
//
//   | C  | L  | M  | N  | rows    |
//   | o  | Q~ | K^ | V  | queries |
//   | X  | dO | V  | K^ | queries |
//   | Y  | V  | dO | Q~ | keys    |
//   | dV | K^ | Q~ | dO | keys    |
//
// Edges are those of tiles of 64 tokens. e^{r_I} is the power of two nearest to e^{b_I}, so that f_IJ = e^{r_I - r_J+1},
// which stands between a query's tile and a key's, scales bf16 without rounding. With another rank's keys f is one: those
// keys are decayed to their rank's end, and the queries from there on, rounded once for that block. So the two terms of
// dg that a pair adds to, at its query and at its key, hold the same rounded factors and cancel to fp32 accuracy.
// Pairs within one tile are the chunks of gla_device.cuh, which know strong gates.
// Cost: the block's pairs times (2 d_k + 2 d_v) flop forward, (6 d_k + 6 d_v) backward: the scores of dA are made twice.
// Source: "LASP-2", arXiv 2502.07563, section 4.1; "Gated Linear Attention Transformers", arXiv 2312.06635.
#pragma once

#include "sp_methods/kernels/device/gla/launch.cuh"

namespace baton {

/// Which column tiles a row tile is multiplied with: earlier ones, later ones, or all.
enum class Columns { earlier, later, all };

/// One product. Exponents are of tiles of 64 tokens, [tiles, heads, d_k]; f_IJ is 2 to the power of query's minus key's.
struct LeftProductCall {
  const __nv_bfloat16* left = nullptr;    ///< [rows, heads, d_in]
  const __nv_bfloat16* middle = nullptr;  ///< [columns, heads, d_in]
  const __nv_bfloat16* right = nullptr;   ///< [columns, heads, d_out]
  float* out = nullptr;                   ///< [rows, heads, d_out]
  std::int64_t tokens = 0;                ///< Rows, and columns.
  int heads = 1;
  float scale = 1.0F;
  bool adds = false;  ///< To what `out` holds.
  bool rows_are_queries = true;
  Columns columns = Columns::all;
  const int* row_exponents = nullptr;
  const int* column_exponents = nullptr;
};

/// Where the decay between tiles belongs: nowhere, to the index that makes scores, or to that of the result.
enum class Scaled { nothing, inner, outer };

/// Enqueues one product; d_in and d_out are 64 or 128.
cudaError_t left_product(cudaStream_t stream, const LeftProductCall& call, int d_in, int d_out,
                         Scaled scaled);

/// The decays of a rank's tiles. Edge 0 is the rank's start.
struct TileEdges {
  /// [tiles, heads, d_k], log2 of each tile's decay; then sums of gates' gradients.
  float* totals = nullptr;
  float* fractions = nullptr;  ///< [tiles + 1, heads, d_k], log2 of e^{b - r}, within half of one.
  int* exponents = nullptr;    ///< [tiles + 1, heads, d_k], log2 of e^r.
};

/// A layer's rank as the kernels of this file take it.
struct LeftProductRank {
  GlaShape shape;  ///< `chunk` is not read.
  GlaDeviceInputs in;
  TileEdges edges;
  __nv_bfloat16* q = nullptr;  ///< Q~ [tokens, heads, d_k]
  __nv_bfloat16* k = nullptr;  ///< K^ [tokens, heads, d_k]
  cudaStream_t stream = nullptr;
};

/// Sets Q~, K^ and the edges; where `travelling` is not null, also the keys decayed to the rank's end, and its decay
/// [heads, d_k]. Only for layers with gates, as the two that follow.
cudaError_t left_product_scale(const LeftProductRank& rank, __nv_bfloat16* travelling, float* decay);

/// Sets queries [tokens, heads, d_k] to those decayed from the end of an earlier rank; `between` [heads, d_k] is the decay
/// of the ranks between, null for one.
cudaError_t left_product_queries(const LeftProductRank& rank, __nv_bfloat16* queries, const float* between);

/// A rank's gradients as they are summed up, fp32: those of pairs within tiles lie elsewhere.
struct LeftProductSums {
  float* dq = nullptr;  ///< [tokens, heads, d_k]
  float* dk = nullptr;  ///< [tokens, heads, d_k]
  float* dv = nullptr;  ///< [tokens, heads, d_v]
  float* z = nullptr;   ///< [tokens, heads, d_k]; null where there is no gate.
};

/// Of the pairs within the rank: what holds X and Y becomes dq and dk, and z is set.
cudaError_t left_product_own_sums(const LeftProductRank& rank, const LeftProductSums& sums);
/// Of the pairs with an earlier rank's keys: X of `queries`, which left_product_queries made, is added to dq and z.
cudaError_t left_product_block_sums(const LeftProductRank& rank, const LeftProductSums& sums,
                                    const __nv_bfloat16* queries, const float* x, const float* between);

/// Gradients of a rank's keys, decayed to its end, and values, as they come home; null where none travelled.
struct LeftProductHome {
  const float* dk = nullptr;
  const float* dv = nullptr;
};

/// Adds the sums and what came home to dq, dk and dv and, where it is not null, z of all tokens to edge [heads, d_k].
cudaError_t left_product_finish(const LeftProductRank& rank, const GlaDeviceGradients& out,
                                const LeftProductSums& sums, const LeftProductHome& home, float* edge);

/// Behind left_product_finish: adds suffix sums of z and the edges of later ranks, [heads, d_k] or null, to dg. Of `rank`
/// it needs shape, edges and stream.
cudaError_t left_product_gates(const LeftProductRank& rank, __nv_bfloat16* dg, const float* z,
                               const float* later);

}  // namespace baton
