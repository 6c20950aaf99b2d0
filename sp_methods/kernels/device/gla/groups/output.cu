// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/gla/groups/chunk_scaler.cuh"
#include "sp_methods/kernels/device/gla/groups/output.cuh"
#include "sp_methods/kernels/device/gla/scores.cuh"
#include "sp_methods/kernels/device/tile/turned_panel.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, GateKind kind>
class SegmentOutputBlock {
 public:
  using Memory = ScaledChunks<d_k, d_v, kind>;
  static constexpr int scores_bytes = PanelTile<device_chunk>::bytes;
  static constexpr int shared_bytes = Memory::shared_bytes + 2 * scores_bytes;

  __device__ SegmentOutputBlock(const DeviceLayer& layer, Bf16* o, const GlaDeviceInputs& in)
      : layer_(layer),
        o_(o),
        in_(in),
        first_(layer.first_chunk(DeviceLayer::segment())),
        count_(layer.first_chunk(DeviceLayer::segment() + 1) - first_) {}

  __device__ void run(const SegmentEdges<OnDevice>& before) {
    if (group() == Memory::groups) return ChunkScaler<d_k, d_v, kind>(layer_, in_, first_, count_).run();
    read_state(before);
#pragma unroll 1
    for (int next = 0; next < count_; ++next) {
      const int step = same_in_warp(next);
      Memory::full(step).wait();
      GroupSums<device_chunk> o;  // o^T: this group's columns of v, all tokens
      multiply(step, o);
      turn(step, o);
      write(step);
    }
  }

 private:
  static constexpr int score_columns = device_chunk / Memory::groups;  // of one group
  __device__ static GroupBarrier scores_there() { return {Memory::barriers, Memory::groups * group_threads}; }
  __device__ static GroupBarrier turned() { return {Memory::barriers + 1 + group(), group_threads}; }
  __device__ static PanelTile<device_chunk> scores(int step) {
    return {shared_space() + Memory::shared_bytes + (step & 1) * scores_bytes};
  }
  /// This group's columns of v, later its columns of o.
  __device__ static PanelTile<64> values(int step) {
    return {Memory::v(step).memory + group() * PanelTile<64>::bytes};
  }

  __device__ void read_state(const SegmentEdges<OnDevice>& before) {
    const EdgeState<d_k, d_v> edge(before, layer_.segments, DeviceLayer::segment());
    state_.for_each([&](int n, int half, float2& x) {
      const int row = 8 * n + state_.column(), column = 64 * group() + state_.row() + 8 * half;
      x = {edge.at(row, column), edge.at(row + 1, column)};
    });
  }

  __device__ void scale_state(const float* factors) {
    state_.for_each([&](int n, int, float2& x) { x = x * pair_at(factors, n); });
  }
  /// Scales the state by both factors, one after the other. Their product may be too small for f32
  /// while the result is not.
  __device__ void scale_state(const float* factors, const float* others) {
    state_.for_each([&](int n, int, float2& x) { x = (x * pair_at(factors, n)) * pair_at(others, n); });
  }
  __device__ static float2 pair_at(const float* x, int n) {
    return *reinterpret_cast<const float2*>(x + 8 * n + GroupSums<d_k>::column());
  }

  __device__ void multiply(int step, GroupSums<device_chunk>& o) {
    using Along = PanelsAlong;
    const PanelOperand<Along::summed> q(Memory::q(step).memory);
    const PanelOperand<Along::outer> v(values(step).memory), k(Memory::k(step).memory);
    const bool strong = kind != GateKind::none && same_in_warp(Memory::strong(step)) != 0;
    if constexpr (kind != GateKind::none) scale_state(Memory::carry(step + 3), Memory::to(step));
    set_scores(step, strong);

    std::uint32_t state[d_k / 16][4];
#pragma unroll
    for (int i = 0; i < d_k / 16; ++i) pack_left(state[i], state_, i);
    if (strong) scale_state(Memory::through(step));
    begin_products();
    start_product<d_k / 16>(o, state, q, false);
    start_product<device_chunk / 16>(state_, v, k, true);
    scores_there().wait();
    begin_products();
    start_product<device_chunk / 16>(o, v, PanelOperand<Along::summed>(scores(step).memory), true);
    commit_products();
    wait_for_products<0>();
    o.arrived();
    state_.arrived();
  }

  /// Sets this group's scores.
  __device__ void set_scores(int step, bool strong) {
    using Along = PanelsAlong;
    GroupSums<score_columns> products;
    begin_products();
    start_product<d_k / 16>(products, PanelOperand<Along::summed>(Memory::q(step).memory),
                            PanelOperand<Along::summed>(own_keys(step)), false);
    commit_products();
    wait_for_products<0>();
    products.arrived();
    put_scores(step, products, strong);
    show_to_products();
  }

  __device__ static const char* own_keys(int step) {
    return Memory::k(step).memory + group() * score_columns * PanelTile<d_k>::row_bytes;
  }

  __device__ void put_scores(int step, GroupSums<score_columns>& products, bool strong) const {
    const auto into = scores(step);
    if (strong) {
      const QueryKeyRows rows{layer_.rows(in_.q, d_k, first_ + step), layer_.rows(in_.k, d_k, first_ + step)};
      return strong_scores<4 * Memory::groups, device_chunk>(into, Memory::gates(step), rows);
    }
    const GroupPlace<PanelTile<device_chunk>> place(0, group() * score_columns);
    products.for_each([&](int n, int half, float2& x) {
      const int row = products.row() + 8 * half, column = group() * score_columns + products.column() + 8 * n;
      if (column > row) x.x = 0.0F;
      if (column + 1 > row) x.y = 0.0F;
      into.set_pair(place.at(n, half), x);
    });
  }

  /// Stores o, transposed, in the memory of this group's columns of v.
  __device__ void turn(int step, const GroupSums<device_chunk>& o) const {
    const TurnedPanel into(values(step).memory);
#pragma unroll
    for (int i = 0; i < TurnedPanel::pieces; ++i) {
      std::uint32_t x[4];
      pack_left(x, o, i);
      into.store(i, x);
    }
    turned().wait();
  }

  /// Writes this group's columns of o; the slot is free once they are read.
  __device__ void write(int step) const {
    const PanelRows o(values(step).memory);
    if (step + Memory::slots < count_) Memory::empty(step).arrive();
    const auto rows = layer_.rows(o_, d_v, first_ + step);
    o.write({rows.first + 64 * group(), rows.stride, rows.count});
  }

  const DeviceLayer& layer_;
  Bf16* o_;
  const GlaDeviceInputs& in_;
  int first_, count_;
  GroupSums<d_k> state_;  // S^T: this group's columns of v, all channels
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(ScaledChunks<d_k, d_v, kind>::threads,
                             1) void segment_output_kernel(const __grid_constant__ DeviceLayer layer, Bf16* o,
                                                           const __grid_constant__ GlaDeviceInputs in,
                                                           SegmentEdges<OnDevice> before) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if (kind != GateKind::none && belongs_to_sixteen_warps<d_k>(before, layer, DeviceLayer::segment())) return;
  SegmentOutputBlock<d_k, d_v, kind>(layer, o, in).run(before);
#endif
}

}  // namespace

cudaError_t segment_output_by_groups(cudaStream_t stream, const SegmentOutput::Operands<OnDevice>& x,
                                     const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments<ScaledChunks<d_k(), d_v(), kind()>::threads>(
        stream, cut, SegmentOutputBlock<d_k(), d_v(), kind()>::shared_bytes,
        segment_output_kernel<d_k(), d_v(), kind()>, x.o, x.in, x.before);
  });
}

}  // namespace baton
