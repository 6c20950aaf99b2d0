// SPDX-License-Identifier: Apache-2.0
// The device bodies of left_product_own_gradients, _block_gradients, _home_gradients and
// _edge_gradients.
//
//   products:  dq_scaled, dk_scaled, dv in the accumulators (rank.cuh)
//   sums:      dq = dq_scaled times the decay of its query, dk likewise, and the gate terms
//   gates:     dg_i += sum over u >= i of the gate terms, from the last tile to the first. Terms of
//              later ranks may cancel this rank's, so nothing is rounded before they are added.
#include "sp_methods/kernels/device/left_product/rank.cuh"

namespace baton {
namespace {

/// Accumulators of one rank's gradients that need its decays.
struct GradientSums {
  float* dq;  ///< [tokens, heads, d_k], as `dk` and `gate_terms`.
  float* dk;
  float* gate_terms;
};

template <GateKind kind>
__global__ void left_product_own_gradients_sums_kernel(const __grid_constant__ LeftProductRank x,
                                                       GradientSums sums) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> decays(x);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    decays.enter(i);
    const std::int64_t at = x.at(i);
    const float2 dq_scaled = pair_at(sums.dq, at), dk_scaled = pair_at(sums.dk, at);
    pair_at(sums.dq, at) = decays.of_query() * dq_scaled;
    pair_at(sums.dk, at) = decays.of_key() * dk_scaled;
    pair_at(sums.gate_terms, at) =
        load_pair(x.q_scaled + at) * dq_scaled - load_pair(x.k_scaled + at) * dk_scaled;
  }
}

template <GateKind kind>
__global__ void left_product_block_gradients_sums_kernel(const __grid_constant__ LeftProductRank x,
                                                         GradientSums sums, const Bf16* q_block,
                                                         const float* block_dq, const float* between) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> decays(x);
  decays.span_rank();
  const float2 more = between_ranks(between);
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    decays.enter(i);
    const std::int64_t at = x.at(i);
    const float2 dq_scaled = pair_at(block_dq, at);
    pair_at(sums.dq, at) = pair_at(sums.dq, at) + more * decays.of_query() * dq_scaled;
    pair_at(sums.gate_terms, at) = pair_at(sums.gate_terms, at) + load_pair(q_block + at) * dq_scaled;
  }
}

/// Adds the returned gradients of the keys to dk and to the gate terms, and sums the gate terms of
/// each tile. `returned` is null on one rank.
template <GateKind kind>
__global__ void left_product_home_gradients_keys_kernel(const __grid_constant__ LeftProductRank x,
                                                        GradientSums sums, float* tile_sums,
                                                        const float* returned) {
  if (LeftProductRank::channel() >= x.channels()) return;
  RowDecays<kind> decays(x);
  decays.span_rank();
  float2 total{0.0F, 0.0F};
#pragma unroll 4
  for (int i = 0; i < x.rows(); ++i) {
    decays.enter(i);
    const std::int64_t at = x.at(i);
    float2 term = pair_at(sums.gate_terms, at);
    if (returned != nullptr) {
      const float2 dk_scaled = pair_at(returned, at), key = decays.of_key() * load_pair(x.in.k + at);
      pair_at(sums.dk, at) = pair_at(sums.dk, at) + decays.of_key() * dk_scaled;
      // The key as it circulated: rounded.
      term = term - unpacked_pair(packed_pair(key.x, key.y)) * dk_scaled;
      pair_at(sums.gate_terms, at) = term;
    }
    total = total + term;
  }
  pair_at(tile_sums, x.table_at(LeftProductRank::tile_number())) = total;
}

/// Replaces the sum of each tile by the sum over all later tiles, and adds the sum over all tiles
/// to boundary_gate_sum.
__global__ void left_product_home_gradients_tiles_kernel(const __grid_constant__ LeftProductRank x,
                                                         float* tile_sums, float* boundary_gate_sum) {
  const int channel = static_cast<int>(blockIdx.x * walk_threads + threadIdx.x), stride = x.channels();
  if (channel >= stride) return;
  float later = 0.0F;
#pragma unroll 8
  for (int t = x.tiles - 1; t >= 0; --t) {
    float& total = tile_sums[static_cast<std::int64_t>(t) * stride + channel];
    const float own = total;
    total = later;
    later += own;
  }
  if (boundary_gate_sum != nullptr) boundary_gate_sum[channel] += later;
}

/// Adds one f32 tensor, or two, to a tensor of bf16.
__global__ void left_product_home_gradients_add_kernel(Bf16* into, const float* first, const float* second,
                                                       std::int64_t pairs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * walk_threads + threadIdx.x;
  if (i >= pairs) return;
  float2 sum = load_pair(into + 2 * i) + pair_at(first, 2 * i);
  if (second != nullptr) sum = sum + pair_at(second, 2 * i);
  store_pair(into + 2 * i, sum);
}

__global__ void left_product_edge_gradients_vector_kernel(const __grid_constant__ LeftProductRank x, Bf16* dg,
                                                          const float* gate_terms, const float* later_ranks) {
  if (LeftProductRank::channel() >= x.channels()) return;
  float2 sum = pair_at(x.decays.totals, x.table_at(LeftProductRank::tile_number()));
  if (later_ranks != nullptr) sum = sum + pair_at(later_ranks, LeftProductRank::channel());
#pragma unroll 8
  for (int i = x.rows() - 1; i >= 0; --i) {
    sum = sum + pair_at(gate_terms, x.at(i));
    store_pair(dg + x.at(i), load_pair(dg + x.at(i)) + sum);
  }
}

/// Adds the suffix sums to dg of scalar gates. A warp has one head of one tile: grid (heads,
/// tiles).
__global__ void left_product_edge_gradients_scalar_kernel(const __grid_constant__ LeftProductRank x, Bf16* dg,
                                                          const float* gate_terms, const float* later_ranks) {
  const int head = static_cast<int>(blockIdx.x), first = head * x.d_k + lane();
  const float* later_tiles =
      x.decays.totals + static_cast<std::int64_t>(LeftProductRank::tile_number()) * x.channels();
  float sum = 0.0F;
  for (int c = 0; c < x.d_k; c += 32) {
    sum += later_tiles[first + c];
    if (later_ranks != nullptr) sum += later_ranks[first + c];
  }
  for (int i = x.rows() - 1; i >= 0; --i) {
    const std::int64_t token = x.first_token() + i;
    for (int c = 0; c < x.d_k; c += 32) sum += gate_terms[token * x.channels() + first + c];
    const float all = warp_sum(sum);
    Bf16& into = dg[token * x.heads + head];
    if (lane() == 0) into = __float2bfloat16(__bfloat162float(into) + all);
  }
}

cudaError_t left_product_own_gradients(cudaStream_t stream,
                                       const LeftProductOwnGradients::Operands<OnDevice>& x,
                                       const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.rank.scaled, x.rank.decay_table);
  cuda(on_device<SegmentGradients>(stream, {.in = x.in, .d_o = x.d_o, .out = x.out},
                                   {.shape = p.shape, .count = rank.tiles}));
  const ProductInputs in{rank.q_scaled, rank.k_scaled, x.in.v, x.d_o};
  const auto multiply = [&](ProductResult result, float* out) {
    cuda(left_product(stream, rank, result, ProductPairs::own_tiles, in, out, false));
  };
  multiply(ProductResult::dq_scaled, x.dq_accumulator);
  multiply(ProductResult::dk_scaled, x.dk_accumulator);
  multiply(ProductResult::dv, x.dv_accumulator);
  with_gate(rank.gate, [&](auto kind) {
    left_product_own_gradients_sums_kernel<kind()><<<walk_grid(rank), walk_threads, 0, stream>>>(
        rank, {x.dq_accumulator, x.dk_accumulator, x.gate_terms});
  });
  return cudaGetLastError();
}

cudaError_t left_product_block_gradients(cudaStream_t stream,
                                         const LeftProductBlockGradients::Operands<OnDevice>& x,
                                         const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.rank.scaled, x.rank.decay_table);
  const Bf16* q_block = scale_block_queries(stream, rank, x.q_block, x.between);
  const ProductInputs in{q_block, x.block.k, x.block.v, x.d_o};
  const auto multiply = [&](ProductResult result, float* out, bool adds) {
    cuda(left_product(stream, rank, result, ProductPairs::other_rank, in, out, adds));
  };
  if (rank.is_gated())
    multiply(ProductResult::dq_scaled, x.block_dq, false);
  else
    multiply(ProductResult::dq_scaled, x.dq_accumulator, true);
  multiply(ProductResult::dk_scaled, x.block_dk, true);
  multiply(ProductResult::dv, x.block_dv, true);
  with_gate(rank.gate, [&](auto kind) {
    left_product_block_gradients_sums_kernel<kind()><<<walk_grid(rank), walk_threads, 0, stream>>>(
        rank, {x.dq_accumulator, nullptr, x.gate_terms}, q_block, x.block_dq, x.between);
  });
  return cudaGetLastError();
}

cudaError_t left_product_home_gradients(cudaStream_t stream,
                                        const LeftProductHomeGradients::Operands<OnDevice>& x,
                                        const LeftProduct& p) {
  const LeftProductRank rank(p, x.in, x.scaled, x.decay_table);
  float* const tile_sums = x.decay_table + DecayTableLayout::totals();
  with_gate(rank.gate, [&](auto kind) {
    left_product_home_gradients_keys_kernel<kind()><<<walk_grid(rank), walk_threads, 0, stream>>>(
        rank, {nullptr, x.dk_accumulator, x.gate_terms}, tile_sums, x.returned_dk);
  });
  const auto add = [&](Bf16* into, const float* first, const float* second, std::int64_t count) {
    left_product_home_gradients_add_kernel<<<walk_blocks(count / 2), walk_threads, 0, stream>>>(
        into, first, second, count / 2);
  };
  const std::int64_t keys = rank.tokens * rank.channels(), values = rank.tokens * rank.heads * rank.d_v;
  add(x.out.dq, x.dq_accumulator, nullptr, keys);
  add(x.out.dk, x.dk_accumulator, rank.is_gated() ? nullptr : x.returned_dk, keys);
  add(x.out.dv, x.dv_accumulator, x.returned_dv, values);
  if (rank.is_gated())
    left_product_home_gradients_tiles_kernel<<<walk_blocks(rank.channels()), walk_threads, 0, stream>>>(
        rank, tile_sums, x.boundary_gate_sum);
  return cudaGetLastError();
}

cudaError_t left_product_edge_gradients(cudaStream_t stream,
                                        const LeftProductEdgeGradients::Operands<OnDevice>& x,
                                        const LeftProductEdgeGradients::Parameters& p) {
  const LeftProductRank rank(p, {}, nullptr, x.decay_table);
  if (rank.gate == GateKind::vector)
    left_product_edge_gradients_vector_kernel<<<walk_grid(rank), walk_threads, 0, stream>>>(
        rank, x.dg, x.gate_terms, x.later);
  const dim3 heads(static_cast<unsigned>(rank.heads), static_cast<unsigned>(rank.tiles));
  if (rank.gate == GateKind::scalar)
    left_product_edge_gradients_scalar_kernel<<<heads, 32, 0, stream>>>(rank, x.dg, x.gate_terms, x.later);
  return cudaGetLastError();
}

const RegisteredCudaKernel registered[]{
    device_body<LeftProductOwnGradients>(left_product_own_gradients),
    device_body<LeftProductBlockGradients>(left_product_block_gradients),
    device_body<LeftProductHomeGradients>(left_product_home_gradients),
    device_body<LeftProductEdgeGradients>(left_product_edge_gradients),
};

}  // namespace
}  // namespace baton
