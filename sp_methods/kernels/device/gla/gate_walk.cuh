// SPDX-License-Identifier: Apache-2.0
// The decays of one chunk, and the scaling of its queries and keys by them.
//
//   b_i = g_0 + .. + g_i,   r = b at token 31,   all = b at token 63
//   gentle chunk: q_i <- s q_i e^{b_i - r},   k_i <- k_i e^{r - b_i}      one r for every product
//   strong chunk, |b - r| beyond the guard: q_i <- s q_i e^{b_i}, k_i <- k_i e^{all - b_i}
//                                           factors <= 1, for products
//   with states alone
//
// A warp walks 8 channels: lane 4 a + p has tokens 8 a .. 8 a + 7 of channels 2 p, 2 p + 1; b is
// scanned by shuffles, so a walk needs no barrier. Rows of a short last chunk are zero: their gate
// is 0 and their keys add nothing.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {

/// Upper bound of |b - r| in a gentle chunk, as on the host (gates.hpp).
inline constexpr float device_gate_guard = 60.0F;
/// Log gate below which e^g is at most 2^11 times as large as the rounding of f32.
inline constexpr float strong_gate = -9.0F;
/// True if a last chunk of `count` tokens can have strong gates throughout and be within the guard.
__device__ inline bool is_short(int count) {
  return static_cast<float>(count) * -strong_gate <= device_gate_guard;
}
/// The least log gate. A factor below e^-104 is zero in any format used here, and the bound keeps
/// sums of infinite gates finite.
inline constexpr float least_gate = -104.0F;

__device__ inline float2 operator+(float2 x, float2 y) { return {x.x + y.x, x.y + y.y}; }
__device__ inline float2 operator-(float2 x, float2 y) { return {x.x - y.x, x.y - y.y}; }
__device__ inline float2 operator*(float2 x, float2 y) { return {x.x * y.x, x.y * y.y}; }
__device__ inline float2 operator*(float x, float2 y) { return {x * y.x, x * y.y}; }
__device__ inline float2 decay_of(float2 x) { return {decay_of(x.x), decay_of(x.y)}; }
__device__ inline float2 shuffled(float2 x, int from) {
  return {__shfl_sync(0xffffffffU, x.x, from), __shfl_sync(0xffffffffU, x.y, from)};
}

/// The factor 2^{slope b + offset} of two channels.
struct DecayFactor {
  float slope;
  float2 offset;

  __device__ float2 at(float2 b) const {
    return {power_of_2(fmaf(slope, b.x, offset.x)), power_of_2(fmaf(slope, b.y, offset.y))};
  }
};

/// log2 of the factor s = d_k^{-1/2} of the scores, for d_k of 64 or 128.
template <int d_k>
inline constexpr float log2_scale = d_k == 128 ? -3.5F : -3.0F;

/// Factor s e^{b - r} of queries.
template <int d_k>
__device__ inline DecayFactor query_factor(float2 r) {
  return {log2_e, {log2_scale<d_k> - log2_e * r.x, log2_scale<d_k> - log2_e * r.y}};
}
/// Factor e^{r - b} of keys.
__device__ inline DecayFactor key_factor(float2 r) { return {-log2_e, log2_e * r}; }

/// The gates of one chunk in shared memory: rows of d_k, one number a token, or nothing. `Rows` is
/// the layout of a chunk's rows.
template <GateKind kind, int d_k, class Rows = Bf16Tile<d_k>>
struct GateTile {
  using Tile = Rows;
  static constexpr int channels = d_k;
  __host__ __device__ static constexpr int bytes() {
    return kind == GateKind::vector ? Bf16Tile<d_k>::bytes(device_chunk) : kind == GateKind::scalar ? 256 : 0;
  }
  __host__ __device__ static constexpr int width() {
    return kind == GateKind::vector ? d_k : kind == GateKind::scalar ? 1 : 0;
  }

  char* memory;

  /// Starts the copy of a chunk's gates; scalar gates are copied at once. `token` is the thread's
  /// number among the threads that copy.
  template <class Loader>
  __device__ void load(const DeviceLayer& layer, const Loader& loader, const Bf16* g, int chunk,
                       int token = static_cast<int>(threadIdx.x)) const {
    if constexpr (kind == GateKind::vector) loader.load({memory}, g, chunk);
    if constexpr (kind == GateKind::scalar) {
      if (token >= device_chunk) return;
      const auto rows = layer.rows(g, 1, chunk);
      reinterpret_cast<float*>(memory)[token] =
          token < rows.count ? fmaxf(__bfloat162float(*rows.row(token)), least_gate) : 0.0F;
    }
  }
  /// The gates of two channels of `token` at offset `at` of a tile of width d_k.
  __device__ float2 pair(int at, int token) const {
    if constexpr (kind == GateKind::vector) {
      const auto gates = *reinterpret_cast<const __nv_bfloat162*>(memory + at);
      const auto bounded = __hmax2(gates, __float2bfloat162_rn(least_gate));
      return unpacked_pair(*reinterpret_cast<const std::uint32_t*>(&bounded));
    } else if constexpr (kind == GateKind::scalar) {
      const float g = reinterpret_cast<const float*>(memory)[token];
      return {g, g};
    } else {
      return {0.0F, 0.0F};
    }
  }
};

/// One lane's part of a chunk's gates: 8 tokens of 2 channels.
template <GateKind kind, int d_k>
struct GateWalk {
  /// True if this warp has channels of its own. Any other walks those of another.
  __device__ static bool takes_part() { return warp() < d_k / 8; }

  int channel, first, start;  // first token; place of (first, channel) in a tile
  float2 gate[8];
  float2 before;       ///< Log decay b before the lane's first token.
  float2 middle, all;  ///< Log decays r, and b at the last token.

  __device__ explicit GateWalk(const GateTile<kind, d_k>& gates)
      : channel(8 * (warp() % (d_k / 8)) + 2 * (lane() & 3)),
        first(8 * (lane() >> 2)),
        start(Bf16Tile<d_k>::offset(first, channel)) {
    float2 total{0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      gate[i] = gates.pair(Bf16Tile<d_k>::below(start, i), first + i);
      total = total + gate[i];
    }
    float2 sum = total;
#pragma unroll
    for (int apart = 4; apart < 32; apart *= 2) {
      const float2 earlier{__shfl_up_sync(0xffffffffU, sum.x, apart),
                           __shfl_up_sync(0xffffffffU, sum.y, apart)};
      if (lane() >= apart) sum = sum + earlier;
    }
    before = sum - total;
    middle = shuffled(sum, 12 + (lane() & 3));
    all = shuffled(sum, 28 + (lane() & 3));
  }

  __device__ bool is_first_lane() const { return first == 0; }
  __device__ bool is_strong() const {
    const float2 rest = all - middle;
    return fminf(fminf(middle.x, middle.y), fminf(rest.x, rest.y)) < -device_gate_guard;
  }
  /// True if all gates of one of the lane's channels are strong in a last chunk of `count` tokens,
  /// which are too few for the guard. dg is about e^g there, and the gentle form is exact to 2^-24
  /// of what cancels in it.
  __device__ bool is_short_and_strong(int count) const {
    if (!is_first_lane() || !is_short(count)) return false;
    float2 weakest = gate[0];
#pragma unroll
    for (int i = 1; i < 8; ++i)
      if (i < count) weakest = {fmaxf(weakest.x, gate[i].x), fmaxf(weakest.y, gate[i].y)};
    return fminf(weakest.x, weakest.y) < strong_gate;
  }

  /// Multiplies the lane's part of a tile by a factor.
  __device__ void scale(const Bf16Tile<d_k>& tile, const DecayFactor& factor) const {
    float2 b = before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      b = b + gate[i];
      const int at = tile.below(start, i);
      tile.set_pair(at, factor.at(b) * tile.pair(at));
    }
  }

  /// Multiplies the lane's parts of the tiles of queries and keys by their factors.
  __device__ void scale(const Bf16Tile<d_k>& q, const DecayFactor& q_factor, const Bf16Tile<d_k>& k,
                        const DecayFactor& k_factor) const {
    float2 b = before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      b = b + gate[i];
      const int at = q.below(start, i);
      q.set_pair(at, q_factor.at(b) * q.pair(at));
      k.set_pair(at, k_factor.at(b) * k.pair(at));
    }
  }

  /// Sets the lane's part of a tile to factor (.) x, where x is read from a chunk's rows in global
  /// memory.
  __device__ void scale_from(const HeadRows<const Bf16>& x, const Bf16Tile<d_k>& tile,
                             const DecayFactor& factor) const {
    float2 b = before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      b = b + gate[i];
      float2 value{0.0F, 0.0F};
      if (first + i < x.count) value = load_pair(x.row(first + i) + channel);
      tile.set_pair(tile.below(start, i), factor.at(b) * value);
    }
  }
};

/// Scales a chunk's queries and keys in place in the gentle form. Keys do not change without gates.
template <GateKind kind, int d_k>
__device__ inline void scale_gently(const GateWalk<kind, d_k>& walk, const Bf16Tile<d_k>& q,
                                    const Bf16Tile<d_k>& k) {
  if constexpr (kind == GateKind::none) {
    walk.scale(q, query_factor<d_k>(walk.middle));
  } else {
    walk.scale(q, query_factor<d_k>(walk.middle), k, key_factor(walk.middle));
  }
}

/// Sets a chunk's queries and keys in the strong form from their rows in global memory.
template <GateKind kind, int d_k>
__device__ inline void scale_strongly(const GateTile<kind, d_k>& gates, const Bf16Tile<d_k>& q,
                                      const Bf16Tile<d_k>& k, const HeadRows<const Bf16>& q_rows,
                                      const HeadRows<const Bf16>& k_rows) {
  using Walk = GateWalk<kind, d_k>;
  if (!Walk::takes_part()) return;
  const Walk walk(gates);
  walk.scale_from(q_rows, q, query_factor<d_k>({0.0F, 0.0F}));
  walk.scale_from(k_rows, k, key_factor(walk.all));
}

}  // namespace baton
