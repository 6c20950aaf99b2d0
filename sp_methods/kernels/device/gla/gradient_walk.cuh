// SPDX-License-Identifier: Apache-2.0
// The shared memory of a block that computes gradients, how the states before chunks come there,
// and the last part of a chunk's gradients: from the sums X, Y of the products to dq, dk and dg.
//
//   dq_i = s e^{b_i - r} (.) X_i        dk_j = e^{r - b_j} (.) Y_j
//   dg_i = R + sum over u >= i of q_u X_u - k_u Y_u
//   R = e^all (.) rowsum(S (.) D) + sum over j of k_j Y'_j,  Y' = what Y has from D
//
// with q, k as scaled. Pairs that do not pass a gate stand in the sums twice with the same rounded
// factors and cancel to fp32 accuracy; R written as rowsum over the state at the right edge would
// round them differently. A strong chunk has X, Y of states alone; the pairs within come from
// scores.cuh. A thread has two channels of a group of neighbouring tokens, so that a warp writes
// 128 bytes of a row at once.
#pragma once

#include "sp_methods/kernels/device/gla/scores.cuh"
#include "sp_methods/kernels/device/gla/state_pieces.cuh"

namespace baton {

/// Operands of the walk over one chunk.
template <GateKind kind, int d_k>
struct GradientChunk {
  Bf16Tile<d_k> q, k;  ///< Scaled queries and keys.
  GateTile<kind, d_k> gates;
  FloatTile<d_k> x, y;
  Bf16Tile<device_chunk> d_scores;
  const float* starts;   ///< [groups, d_k]: log decay b before each group's first token.
  const float* middles;  ///< [d_k]: log decay r.
  const float* alls;     ///< [d_k]: log decay b at the last token.
  QueryKeyRows rows;
};

/// The chunk's rows of the results.
struct GradientRows {
  HeadRows<Bf16> dq, dk, dg;
};

/// One thread's part of a walk over the rows of a chunk's gradients.
template <GateKind kind, int d_k>
class GradientWalk {
 public:
  static constexpr int tokens = d_k / 16;  ///< Tokens of a group.
  static constexpr int groups = device_chunk / tokens;

  __device__ GradientWalk()
      : channel_(2 * (static_cast<int>(threadIdx.x) % (d_k / 2))),
        group_(static_cast<int>(threadIdx.x) / (d_k / 2)),
        start_(Bf16Tile<d_k>::offset(first(), channel_)),
        sums_start_(FloatTile<d_k>::offset(first(), channel_)) {}

  /// Writes dq and dk, keeps the terms of dg, and writes their sum over the group to sums [groups,
  /// d_k].
  __device__ void write_rows(const GradientChunk<kind, d_k>& chunk, const GradientRows& out, bool strong,
                             float* sums) {
    if (strong) {
      write_rows_of<true>(chunk, out);
    } else {
      write_rows_of<false>(chunk, out);
    }
    float2 sum{0.0F, 0.0F};
#pragma unroll
    for (int i = 0; i < tokens; ++i) sum = sum + terms_[i];
    *reinterpret_cast<float2*>(sums + group_ * d_k + channel_) = sum;
  }

  /// Writes dg, behind a barrier. `right` [6, d_k] are the parts of R.
  __device__ void write_gates(const GradientRows& out, const float* sums, const float* right, float* room) {
    float2 dg = at_channel(right);
#pragma unroll
    for (int part = 1; part < 6; ++part) dg = dg + at_channel(right + part * d_k);
    for (int later = groups - 1; later > group_; --later) dg = dg + at_channel(sums + later * d_k);
#pragma unroll
    for (int i = tokens - 1; i >= 0; --i) {
      dg = dg + terms_[i];
      write_gate(out.dg, first() + i, dg, room);
    }
  }

  /// Writes dg of a scalar gate as a sum over warps, behind another barrier.
  __device__ static void write_scalar_gates(const GradientRows& out, const float* room) {
    const int token = static_cast<int>(threadIdx.x);
    if (token >= out.dg.count) return;
    float sum = room[token];
    if constexpr (d_k == 128) sum += room[device_chunk + token];
    *out.dg.row(token) = __float2bfloat16(sum);
  }

 private:
  __device__ int first() const { return group_ * tokens; }
  __device__ float2 at_channel(const float* x) const {
    return *reinterpret_cast<const float2*>(x + channel_);
  }
  __device__ void write(const HeadRows<Bf16>& rows, int token, float2 x) const {
    if (token < rows.count) store_pair(rows.row(token) + channel_, x);
  }

  template <bool strong>
  __device__ void write_rows_of(const GradientChunk<kind, d_k>& chunk, const GradientRows& out) {
    const float2 r = at_channel(chunk.middles);
    const DecayFactor q_factor = query_factor<d_k>(strong ? float2{0.0F, 0.0F} : r);
    const DecayFactor k_factor = key_factor(strong ? at_channel(chunk.alls) : r);
    float2 b = at_channel(chunk.starts + group_ * d_k);
#pragma unroll
    for (int i = 0; i < tokens; ++i) {
      const int token = first() + i, at = FloatTile<d_k>::below(sums_start_, i);
      b = b + chunk.gates.pair(Bf16Tile<d_k>::below(start_, i), token);
      const float2 x = chunk.x.pair(at), y = chunk.y.pair(at);
      const float2 dq = q_factor.at(b) * x, dk = k_factor.at(b) * y;
      if constexpr (strong) {
        terms_[i] = write_strong(chunk, out, token, dq, dk);
      } else {
        write(out.dq, token, dq);
        write(out.dk, token, dk);
        terms_[i] = gentle_term(chunk, i, x, y);
      }
    }
  }

  __device__ float2 gentle_term(const GradientChunk<kind, d_k>& chunk, int i, float2 x, float2 y) const {
    if constexpr (kind == GateKind::none) return {0.0F, 0.0F};
    const int at = Bf16Tile<d_k>::below(start_, i);
    return chunk.q.pair(at) * x - chunk.k.pair(at) * y;
  }

  /// Adds the pairs within the chunk to dq and dk, which have the states' part, and writes both.
  /// Returns the term of dg.
  __device__ float2 write_strong(const GradientChunk<kind, d_k>& chunk, const GradientRows& out, int token,
                                 float2 dq, float2 dk) const {
    if (token >= out.dq.count) return {0.0F, 0.0F};
    const float s = power_of_2(log2_scale<d_k>);
    const float2 q = load_pair(chunk.rows.q.row(token) + channel_);
    const float2 k = load_pair(chunk.rows.k.row(token) + channel_);
    dq = dq + s * strong_query_sum(chunk.d_scores, chunk.gates, chunk.rows.k, token, channel_).sum;
    dk = dk + s * strong_key_sum(chunk.d_scores, chunk.gates, chunk.rows.q, token, channel_).sum;
    const float own = s * chunk.d_scores.at(token, token);
    write(out.dq, token, dq + own * k);
    write(out.dk, token, dk + own * q);
    return q * dq - k * dk;
  }

  __device__ void write_gate(const HeadRows<Bf16>& rows, int token, float2 dg, float* room) const {
    if constexpr (kind == GateKind::vector) write(rows, token, dg);
    if constexpr (kind == GateKind::scalar) {
      const float sum = sum_over_warp(dg.x + dg.y);
      if (lane() == 0) room[(d_k == 128 ? (warp() & 1) * device_chunk : 0) + token] = sum;
    }
  }

  int channel_, group_, start_, sums_start_;
  float2 terms_[tokens];
};

/// Shared memory of the block: two chunks' q, k and g, one chunk's v, d_o, S, D', A and dA. X and
/// Y, 64 rows of f32, use the memory of S and D' after them. It has 222 KiB at d_k = d_v = 128, so
/// one block a multiprocessor.
template <int d_k, int d_v, GateKind kind>
struct GradientMemory {
  using Gates = GateTile<kind, d_k>;
  using Walk = GradientWalk<kind, d_k>;
  static constexpr int k_bytes = Bf16Tile<d_k>::bytes(device_chunk),
                       v_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int slot_bytes = 2 * k_bytes + Gates::bytes();
  static constexpr int v_at = 2 * slot_bytes, d_o_at = v_at + v_bytes, scores_at = d_o_at + v_bytes;
  static constexpr int d_scores_at = scores_at + Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int state_at = d_scores_at + Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int state_bytes = std::max(Bf16Tile<d_v>::bytes(d_k), FloatTile<d_k>::bytes(device_chunk));
  static constexpr int gradient_at = state_at + state_bytes, floats_at = gradient_at + state_bytes;
  static constexpr int floats = 2 * Walk::groups * d_k + 4 * d_k + 6 * d_k + 2 * device_chunk;
  static constexpr int shared_bytes = floats_at + floats * static_cast<int>(sizeof(float));

  __device__ static Bf16Tile<d_k> q(int step) { return {shared_space() + (step & 1) * slot_bytes}; }
  __device__ static Bf16Tile<d_k> k(int step) { return {shared_space() + (step & 1) * slot_bytes + k_bytes}; }
  __device__ static Gates gates(int step) { return {shared_space() + (step & 1) * slot_bytes + 2 * k_bytes}; }
  __device__ static Bf16Tile<d_v> v() { return {shared_space() + v_at}; }
  __device__ static Bf16Tile<d_v> d_o() { return {shared_space() + d_o_at}; }
  __device__ static Bf16Tile<device_chunk> scores() { return {shared_space() + scores_at}; }
  __device__ static Bf16Tile<device_chunk> d_scores() { return {shared_space() + d_scores_at}; }
  __device__ static PieceTile<d_v> state() { return {shared_space() + state_at}; }
  __device__ static Bf16Tile<d_v> gradient() { return {shared_space() + gradient_at}; }
  /// The state before the segment, in the memory of D' until D' is made.
  __device__ static PieceTile<d_v> segment_start() { return {shared_space() + gradient_at}; }
  __device__ static FloatTile<d_k> x() { return {shared_space() + state_at}; }
  __device__ static FloatTile<d_k> y() { return {shared_space() + gradient_at}; }

  __device__ static float* starts() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  __device__ static float* sums() { return starts() + Walk::groups * d_k; }
  __device__ static float* middles() { return sums() + Walk::groups * d_k; }
  __device__ static float* alls() { return middles() + d_k; }
  __device__ static float* to_middle() { return alls() + d_k; }
  __device__ static float* from_middle() { return to_middle() + d_k; }
  /// Four parts [4, d_k] of R, for pairs that pass the whole chunk.
  __device__ static float* passing() { return from_middle() + d_k; }
  /// Two parts [2, d_k] of R, for keys.
  __device__ static float* leaving() { return passing() + 4 * d_k; }
  __device__ static float* room() { return leaving() + 2 * d_k; }

  /// Zeroes the pieces of dA above the diagonal, of which X and Y read two.
  __device__ static void clear_scores() {
    static_assert(Bf16Tile<device_chunk>::bytes(device_chunk) == 16 * tile_threads);
    reinterpret_cast<uint4*>(d_scores().memory)[threadIdx.x] = uint4{0, 0, 0, 0};
  }

  /// Sets b before every group of the gradient walk.
  __device__ static void put_starts(const GateWalk<kind, d_k>& walk) {
    float2 b = walk.before;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i % Walk::tokens == 0) {
        const int group = (walk.first + i) / Walk::tokens;
        *reinterpret_cast<float2*>(starts() + group * d_k + walk.channel) = b;
      }
      b = b + walk.gate[i];
    }
  }
};

/// The state before a chunk: the part from its segment, and the decayed state before the segment,
/// which is added in place. Each thread adds where it copied, so no barrier is needed.
template <int d_k, int d_v, GateKind kind>
class StateBefore {
 public:
  using Memory = GradientMemory<d_k, d_v, kind>;
  using Source = ChunkStartsInSegments<OnDevice>;

  /// Starts the copies of chunk `chunk` and segment `segment` of all heads. The state is zero if
  /// `from.chunks` is null.
  __device__ static void load(const Source& from, std::int64_t chunk, std::int64_t segment) {
    copy(Memory::state(), from.chunks, chunk);
    if (from.chunks != nullptr && from.segments != nullptr)
      copy(Memory::segment_start(), from.segments, segment);
  }

  /// Reads the decays from the segment's first token to a chunk.
  __device__ StateBefore(const Source& from, std::int64_t chunk) {
#pragma unroll
    for (int i = 0; i < units; ++i) {
      decays_[i] = {1.0F, 1.0F};
      if (kind == GateKind::none || from.segments == nullptr) continue;
      const float* const decays = from.decays + chunk * d_k + row(i);
      decays_[i] = {decays[0], decays[8]};
    }
  }

  /// Adds the decayed state before the segment; this thread's copies must be complete.
  __device__ void add_segment() const {
#pragma unroll
    for (int i = 0; i < units; ++i) {
      uint4& own = unit(Memory::state(), i);
      const uint4 more = unit(Memory::segment_start(), i);
      own = {plus_decayed_pair(own.x, decays_[i].x, more.x), plus_decayed_pair(own.y, decays_[i].y, more.y),
             plus_decayed_pair(own.z, decays_[i].x, more.z), plus_decayed_pair(own.w, decays_[i].y, more.w)};
    }
  }

 private:
  static constexpr int units = d_k * d_v / 8 / tile_threads;  ///< Units of 16 bytes of a thread.
  __device__ static int number(int i) { return static_cast<int>(threadIdx.x) + i * tile_threads; }
  /// The first of the two rows that a unit has elements of; the other one is 8 rows below.
  __device__ static int row(int i) { return number(i) / (2 * d_v) * 16 + number(i) % 32 / 4; }
  __device__ static uint4& unit(const PieceTile<d_v>& tile, int i) {
    return reinterpret_cast<uint4*>(tile.memory)[number(i)];
  }
  __device__ static void copy(const PieceTile<d_v>& into, const Bf16* states, std::int64_t state) {
#pragma unroll
    for (int i = 0; i < units; ++i)
      copy_16_async(shared_address(&unit(into, i)), states + state * d_k * d_v + 8 * number(i),
                    states != nullptr);
  }

  float2 decays_[units];
};

}  // namespace baton
