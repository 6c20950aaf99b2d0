// SPDX-License-Identifier: Apache-2.0
// Linear attention in left-product form on one device: bf16 tensors [tokens, heads, width], f32
// sums.
//
// Besides the layer's tensors the kernels use
//   q_scaled   queries times their decay since their tile's start
//   k_scaled   keys times their decay to their tile's end
//   dq_scaled, dk_scaled   gradients of these two
//   gate_terms = q_scaled (.) dq_scaled - k_scaled (.) dk_scaled, whose suffix sums are dg
//
// Every product has one form, out_I += s sum over J of f_IJ (left_I middle_J^T) right_J, over tiles
// of 64 tokens. f_IJ is the decay between the tile of the queries and that of the keys.
//
//   | out       | left     | middle   | right    | rows    |
//   | o         | q_scaled | k_scaled | v        | queries |
//   | dq_scaled | d_o      | v        | k_scaled | queries |
//   | dk_scaled | v        | d_o      | q_scaled | keys    |
//   | dv        | k_scaled | q_scaled | d_o      | keys    |
//
// The decay from the rank's start to a boundary between tiles is 2^(n + f) with an integer exponent
// n and a fraction f, |f| <= 1/2. Fractions are part of q_scaled and k_scaled, so f_IJ is a power
// of two and scales bf16 without rounding. With another rank's keys f_IJ is one: those keys are
// decayed to their rank's end and the queries from there on, rounded once for that block. So the
// two terms of dg that a pair adds, at its query and at its key, have the same rounded factors and
// cancel to f32 accuracy. Pairs within one tile are the chunks of device/gla, which handle strong
// gates.
// Cost: pairs times 2 d_k + 2 d_v flop forward, 6 d_k + 6 d_v backward: d_o v^T is formed twice.
// Source: "LASP-2", arXiv 2502.07563, section 4.1; "Gated Linear Attention Transformers", arXiv
// 2312.06635.
#pragma once

#include <cstdint>

#include "sp_methods/kernels/device/gla/gate_walk.cuh"
#include "sp_methods/kernels/left_product.hpp"

namespace baton {

inline constexpr int walk_threads = 128;
static_assert(device_chunk == KernelTraits{}.tile, "DecayTableLayout has these tiles");

/// The arrays of DecayTableLayout; null without gates.
struct DecayTable {
  const float* totals = nullptr;
  const float* fractions = nullptr;
  const int* exponents = nullptr;
};

/// One rank as its kernels take it. In elementwise kernels a thread takes two channels of one tile,
/// row by row, and neighbouring threads take neighbouring channels.
struct LeftProductRank {
  GlaDeviceInputs in;
  DecayTable decays;
  const Bf16* q_scaled;  ///< [tokens, heads, d_k], as `k_scaled`.
  const Bf16* k_scaled;
  std::int64_t tokens;
  int heads, d_k, d_v, tiles;
  GateKind gate;

  /// Makes the rank from the `scaled` and `decay_table` of ScaledRank, which are not read without
  /// gates.
  LeftProductRank(const LeftProduct& p, const GlaDeviceInputs& inputs, const Bf16* scaled,
                  const float* decay_table)
      : in(inputs),
        q_scaled(inputs.q),
        k_scaled(inputs.k),
        tokens(p.shape.tokens),
        heads(static_cast<int>(p.shape.heads)),
        d_k(static_cast<int>(p.shape.d_k)),
        d_v(static_cast<int>(p.shape.d_v)),
        tiles(static_cast<int>((p.shape.tokens + device_chunk - 1) / device_chunk)),
        gate(p.shape.gate) {
    if (!is_gated()) return;
    const DecayTableLayout layout(p);
    q_scaled = scaled;
    k_scaled = scaled + p.shape.tokens * p.shape.heads * p.shape.d_k;
    decays = {decay_table + layout.totals(), decay_table + layout.fractions(),
              reinterpret_cast<const int*>(decay_table + layout.exponents())};
  }

  bool is_gated() const { return gate != GateKind::none; }
  __host__ __device__ int channels() const { return heads * d_k; }
  /// This thread's first channel among heads * d_k.
  __device__ static int channel() { return 2 * static_cast<int>(blockIdx.x * walk_threads + threadIdx.x); }
  /// This thread's tile.
  __device__ static int tile_number() { return static_cast<int>(blockIdx.y); }
  __device__ std::int64_t first_token() const {
    return static_cast<std::int64_t>(tile_number()) * device_chunk;
  }
  __device__ int rows() const {
    return static_cast<int>(min(static_cast<std::int64_t>(device_chunk), tokens - first_token()));
  }
  /// The offset of this thread's channels in row i of the tile.
  __device__ std::int64_t at(int i) const { return (first_token() + i) * channels() + channel(); }
  /// The offset of this thread's channels in an array of the decay table, at tile or boundary
  /// `number`.
  __device__ std::int64_t table_at(int number) const {
    return static_cast<std::int64_t>(number) * channels() + channel();
  }

  /// log2 of the decay of row i.
  template <GateKind kind>
  __device__ float2 log2_decay(int i) const {
    float2 g{0.0F, 0.0F};
    if constexpr (kind == GateKind::vector) g = load_pair(in.g + at(i));
    if constexpr (kind == GateKind::scalar) {
      g.x = __bfloat162float(in.g[(first_token() + i) * heads + channel() / d_k]);
      g.y = g.x;
    }
    return {log2_e * fmaxf(g.x, least_gate), log2_e * fmaxf(g.y, least_gate)};
  }
};

__device__ inline float2& pair_at(float* x, std::int64_t at) { return *reinterpret_cast<float2*>(x + at); }
__device__ inline float2 pair_at(const float* x, std::int64_t at) {
  return *reinterpret_cast<const float2*>(x + at);
}
__device__ inline int2 pair_at(const int* x, std::int64_t at) {
  return *reinterpret_cast<const int2*>(x + at);
}
__device__ inline float2 powers_of_2(float2 x) { return {power_of_2(x.x), power_of_2(x.y)}; }

/// The decays that queries and keys of one tile are multiplied by, row by row.
template <GateKind kind>
class RowDecays {
 public:
  __device__ explicit RowDecays(const LeftProductRank& x)
      : x_(x),
        from_start_(fraction(LeftProductRank::tile_number())),
        to_end_(total() - fraction(LeftProductRank::tile_number() + 1)) {}

  /// Moves on to a row; to be called for every row in order.
  __device__ void enter(int row) { sum_ = sum_ + x_.log2_decay<kind>(row); }
  __device__ float2 of_query() const { return powers_of_2(from_start_ + sum_); }
  __device__ float2 of_key() const { return powers_of_2(to_end_ - sum_); }

  /// Makes queries decay from the rank's start and keys to its end, instead of the tile's. To be
  /// called before the first row.
  __device__ void span_rank() {
    const int2 begin = exponent(LeftProductRank::tile_number()),
               end = exponent(LeftProductRank::tile_number() + 1), last = exponent(x_.tiles);
    from_start_ = from_start_ + float2{static_cast<float>(begin.x), static_cast<float>(begin.y)};
    to_end_ = to_end_ + (float2{static_cast<float>(last.x - end.x), static_cast<float>(last.y - end.y)} +
                         fraction(x_.tiles));
  }
  /// The decay of the whole rank.
  __device__ float2 of_rank() const {
    const int2 last = exponent(x_.tiles);
    return powers_of_2(float2{static_cast<float>(last.x), static_cast<float>(last.y)} + fraction(x_.tiles));
  }

 private:
  __device__ float2 total() const {
    return pair_at(x_.decays.totals, x_.table_at(LeftProductRank::tile_number()));
  }
  __device__ float2 fraction(int boundary) const {
    return pair_at(x_.decays.fractions, x_.table_at(boundary));
  }
  __device__ int2 exponent(int boundary) const { return pair_at(x_.decays.exponents, x_.table_at(boundary)); }

  const LeftProductRank& x_;
  float2 from_start_, to_end_, sum_{0.0F, 0.0F};
};

/// The decay between two ranks at this thread's channels; null means one.
__device__ inline float2 between_ranks(const float* between) {
  return between == nullptr ? float2{1.0F, 1.0F} : pair_at(between, LeftProductRank::channel());
}

inline unsigned walk_blocks(std::int64_t count) {
  return static_cast<unsigned>((count + walk_threads - 1) / walk_threads);
}

/// The grid of an elementwise kernel: x counts pairs of channels, y tiles.
inline dim3 walk_grid(const LeftProductRank& x) {
  return {walk_blocks(x.channels() / 2), static_cast<unsigned>(x.tiles)};
}

/// Calls f with the gate's kind as a type; not called without gates.
template <class Function>
void with_gate(GateKind kind, Function f) {
  if (kind == GateKind::vector) f(GateConstant<GateKind::vector>{});
  if (kind == GateKind::scalar) f(GateConstant<GateKind::scalar>{});
}

/// The results of a product: the output, or a gradient.
enum class ProductResult { o, dq_scaled, dk_scaled, dv };

/// The keys that a rank's queries are multiplied with: its own in other tiles, or all of another
/// rank.
enum class ProductPairs { own_tiles, other_rank };

/// The scaled queries and keys of a product, v and d_o. Tensors that the result does not need may
/// be null.
struct ProductInputs {
  const Bf16* q;
  const Bf16* k;
  const Bf16* v;
  const Bf16* d_o;
};

/// Enqueues one product, which replaces `out` or is added to it.
cudaError_t left_product(cudaStream_t stream, const LeftProductRank& rank, ProductResult result,
                         ProductPairs pairs, const ProductInputs& in, float* out, bool adds);

/// Sets q_block [tokens, heads, d_k] to the queries decayed from the end of an earlier rank, and
/// returns it. Returns the queries without gates.
const Bf16* scale_block_queries(cudaStream_t stream, const LeftProductRank& rank, Bf16* q_block,
                                const float* between);

}  // namespace baton
