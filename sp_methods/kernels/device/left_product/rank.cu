// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sp_methods/kernels/device/left_product/product.cuh"
#include "sp_methods/kernels/device/left_product/rank.cuh"

namespace baton {
namespace {

template <GateKind kind>
__global__ void left_product_block_queries_kernel(const __grid_constant__ LeftProductRank x, Bf16* q_block,
                                                  const float* between) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> in_rank(x);
  in_rank.span_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    in_rank.enter(i);
    store_pair(q_block + x.at(i), more * in_rank.of_query() * load_pair(x.in.q + x.at(i)));
  }
}

/// The call of one product without its tensors: the tiles of columns, and the exponents.
ProductCall call_of(const LeftProductRank& rank, bool rows_are_queries, ProductPairs pairs) {
  ProductCall call{};
  call.tokens = rank.tokens;
  call.heads = rank.heads;
  call.scale = 1.0F / std::sqrt(static_cast<float>(rank.d_k));
  call.rows_are_queries = rows_are_queries;
  call.columns = pairs == ProductPairs::other_rank ? ColumnTiles::all
                 : rows_are_queries                ? ColumnTiles::earlier
                                                   : ColumnTiles::later;
  if (!rank.is_gated()) return call;
  // A query's tile counts from its start, which is boundary I, a key's to its end, boundary J + 1.
  const int* of_queries = rank.decays.exponents;
  const int* of_keys = of_queries + rank.channels();
  call.row_exponents = rows_are_queries ? of_queries : of_keys;
  call.column_exponents = rows_are_queries ? of_keys : of_queries;
  return call;
}

}  // namespace

cudaError_t left_product(cudaStream_t stream, const LeftProductRank& rank, ProductResult result,
                         ProductPairs pairs, const ProductInputs& in, float* out, bool adds) {
  const bool rows_are_queries = result == ProductResult::o || result == ProductResult::dq_scaled;
  const bool scores_are_qk = result == ProductResult::o || result == ProductResult::dv;
  ProductCall call = call_of(rank, rows_are_queries, pairs);
  const Bf16 *of_queries = scores_are_qk ? in.q : in.d_o, *of_keys = scores_are_qk ? in.k : in.v;
  call.left = rows_are_queries ? of_queries : of_keys;
  call.middle = rows_are_queries ? of_keys : of_queries;
  call.right = result == ProductResult::o           ? in.v
               : result == ProductResult::dq_scaled ? in.k
               : result == ProductResult::dk_scaled ? in.q
                                                    : in.d_o;
  call.out = out;
  call.adds = adds;
  const bool decays = rank.is_gated() && pairs == ProductPairs::own_tiles;
  const DecayIndex index = !decays ? DecayIndex::none : scores_are_qk ? DecayIndex::inner : DecayIndex::outer;
  return enqueue_product(stream, call, scores_are_qk ? rank.d_k : rank.d_v,
                         scores_are_qk ? rank.d_v : rank.d_k, index);
}

const Bf16* scale_block_queries(cudaStream_t stream, const LeftProductRank& rank, Bf16* q_block,
                                const float* between) {
  if (!rank.is_gated()) return rank.in.q;
  with_gate(rank.gate, [&](auto kind) {
    left_product_block_queries_kernel<kind()>
        <<<walk_grid(rank), walk_threads, 0, stream>>>(rank, q_block, between);
  });
  cuda(cudaGetLastError());
  return q_block;
}

}  // namespace baton
