// SPDX-License-Identifier: Apache-2.0
// The output of one segment, its chunks in order from the true state before it: one block a head
// and segment.
//
//   for each chunk, with r = b at its middle and q, k scaled as in gate_walk.cuh:
//     S' = e^r (.) S             A = tril(q k^T)                    | next chunk's tiles are copied
//     o = q S' + A v             S <- e^{all - r} (.) (S' + k^T v)  | next chunk is scaled by turns
//
// S stays in registers, its bf16 copy is an operand. Two barriers a chunk.
// Cost: 4 tokens d_v (d_k + 64) flop a head; q, k, v, g read and o written once.
#include "sp_methods/kernels/device/gla/groups/output.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"
#include "sp_methods/kernels/device/gla/scores.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, GateKind kind>
class SegmentOutputBlock {
 public:
  using Gates = GateTile<kind, d_k>;
  using Place = StatePlace<d_k, d_v>;
  static constexpr int k_bytes = Bf16Tile<d_k>::bytes(device_chunk),
                       v_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int k_at = 3 * k_bytes, v_at = k_at + 3 * k_bytes, g_at = v_at + 2 * v_bytes;
  static constexpr int state_at = g_at + 3 * Gates::bytes(), scores_at = state_at + Bf16Tile<d_v>::bytes(d_k);
  static constexpr int decays_at = scores_at + Bf16Tile<device_chunk>::bytes(device_chunk);
  static constexpr int shared_bytes = decays_at + 4 * d_k * static_cast<int>(sizeof(float));

  __device__ SegmentOutputBlock(const DeviceLayer& layer, Bf16* o, const GlaDeviceInputs& in)
      : layer_(layer),
        o_(o),
        in_(in),
        key_loader_(layer.loader<d_k>()),
        value_loader_(layer.loader<d_v>()),
        first_(layer.first_chunk(DeviceLayer::segment())),
        count_(layer.first_chunk(DeviceLayer::segment() + 1) - first_) {}

  __device__ void run(const SegmentEdges<OnDevice>& before) {
    load_scaled(0);
    load_values(0);
    commit_copies();
    load_scaled(1);
    commit_copies();
    read_edge<d_k, d_v>(state_, before, layer_.segments, DeviceLayer::segment());
    wait_for_copies<1>();
    __syncthreads();
    bool strong = scale(0);
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      strong = __syncthreads_or(strong);
      load_values(step + 1);
      load_scaled(step + 2);
      commit_copies();
      prepare(step, strong);
      wait_for_copies<1>();
      __syncthreads();
      strong = multiply_and_scale_next(step, strong);
    }
  }

 private:
  __device__ Bf16Tile<d_k> q(int step) const { return {shared_space() + step % 3 * k_bytes}; }
  __device__ Bf16Tile<d_k> k(int step) const { return {shared_space() + k_at + step % 3 * k_bytes}; }
  __device__ Bf16Tile<d_v> v(int step) const { return {shared_space() + v_at + (step & 1) * v_bytes}; }
  __device__ Gates gates(int step) const { return {shared_space() + g_at + step % 3 * Gates::bytes()}; }
  __device__ Bf16Tile<d_v> state_tile() const { return {shared_space() + state_at}; }
  __device__ Bf16Tile<device_chunk> scores() const { return {shared_space() + scores_at}; }
  /// e^r [d_k].
  __device__ float* to_middle(int step) const {
    return reinterpret_cast<float*>(shared_space() + decays_at) + (step & 1) * 2 * d_k;
  }
  /// e^{all - r} [d_k].
  __device__ float* from_middle(int step) const { return to_middle(step) + d_k; }

  __device__ void load_scaled(int step) const {
    if (step >= count_) return;
    key_loader_.load(q(step), in_.q, first_ + step);
    key_loader_.load(k(step), in_.k, first_ + step);
    gates(step).load(layer_, key_loader_, in_.g, first_ + step);
  }
  __device__ void load_values(int step) const {
    if (step < count_) value_loader_.load(v(step), in_.v, first_ + step);
  }

  /// Scales a chunk gently, and returns true if it must be scaled strongly instead.
  __device__ bool scale(int step) const {
    using Walk = GateWalk<kind, d_k>;
    if (!Walk::takes_part()) return false;
    const Walk walk(gates(step));
    scale_gently(walk, q(step), k(step));
    if (walk.is_first_lane()) {
      *reinterpret_cast<float2*>(to_middle(step) + walk.channel) = decay_of(walk.middle);
      *reinterpret_cast<float2*>(from_middle(step) + walk.channel) = decay_of(walk.all - walk.middle);
    }
    return kind != GateKind::none && walk.is_strong();
  }

  /// Prepares the operands of a chunk: the copy of the state and the scores.
  __device__ void prepare(int step, bool strong) {
    if (strong) {
      const QueryKeyRows rows{layer_.rows(in_.q, d_k, first_ + step), layer_.rows(in_.k, d_k, first_ + step)};
      scale_strongly(gates(step), q(step), k(step), rows.q, rows.k);
      strong_scores(scores(), gates(step), rows);
    } else {
      if constexpr (kind != GateKind::none) state_.scale_rows(to_middle(step) + Place::row());
      if (warp_column() <= warp_row()) put_scores(step);
    }
    put_sums(state_tile(), Place::row(), Place::column(), state_);
  }

  __device__ void put_scores(int step) const {
    const int row = 16 * warp_row(), column = 16 * warp_column();
    Sums<1, 1> sums;
    add_products(scores_product(sums, q(step), k(step), row, column));
    put_lower(scores(), sums, row, column);
  }

  __device__ bool multiply_and_scale_next(int step, bool strong) {
    bool next_strong = false;
#pragma unroll 1
    for (int turn = 0; turn < 2; ++turn) {
      if (turn == (warp() & 1)) {
        multiply(step, strong);
      } else if (step + 1 < count_) {
        next_strong = scale(step + 1);
      }
    }
    return next_strong;
  }

  __device__ void multiply(int step, bool strong) {
    const int row = 16 * warp_row(), column = Place::column();
    if (strong) {
      state_.scale_rows(to_middle(step) + Place::row());
      state_.scale_rows(from_middle(step) + Place::row());
    }
    Sums<1, d_v / 64> o;
    o.clear();
    add_products(product<d_k / 16>(o, left_operand<RowsAre::outer>(q(step), row),
                                   right_operand<RowsAre::summed>(state_tile(), column)),
                 product<device_chunk / 16>(state_, left_operand<RowsAre::summed>(k(step), Place::row()),
                                            right_operand<RowsAre::summed>(v(step), column)));
    add_product<device_chunk / 16>(o, left_operand<RowsAre::outer>(scores(), row),
                                   right_operand<RowsAre::summed>(v(step), column), 0, warp_row() + 1);
    auto rows = layer_.rows(o_, d_v, first_ + step);
    store_sums(HeadRows<Bf16>{rows.row(row) + column, rows.stride, rows.count - row}, o);
    if constexpr (kind != GateKind::none) {
      if (!strong) state_.scale_rows(from_middle(step) + Place::row());
    }
  }

  const DeviceLayer& layer_;
  Bf16* o_;
  const GlaDeviceInputs& in_;
  TileLoader<d_k> key_loader_;
  TileLoader<d_v> value_loader_;
  int first_, count_;
  StateSums<d_k, d_v> state_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void segment_output_kernel(const __grid_constant__ DeviceLayer layer, Bf16* o,
                                                           const __grid_constant__ GlaDeviceInputs in,
                                                           SegmentEdges<OnDevice> before, bool strong_alone) {
  if (strong_alone && !belongs_to_sixteen_warps<d_k>(before, layer, DeviceLayer::segment())) return;
  SegmentOutputBlock<d_k, d_v, kind>(layer, o, in).run(before);
}

cudaError_t segment_output(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                           const Segments& cut) {
  const bool groups = has_warp_groups();
  if (groups) {
    const cudaError_t code = segment_output_by_groups(stream, x, cut);
    if (code != cudaSuccess || cut.shape.gate == GateKind::none) return code;
  }
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, cut, SegmentOutputBlock<d_k(), d_v(), kind()>::shared_bytes,
                              segment_output_kernel<d_k(), d_v(), kind()>, x.o, x.in, x.before, groups);
  });
}

const RegisteredCudaKernel registered = device_body<SegmentOutput>(segment_output);

}  // namespace
}  // namespace baton
