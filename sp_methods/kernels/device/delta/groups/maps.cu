// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/delta/groups/value_keys.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, ChunkRule rule>
class MapsBlock {
 public:
  static constexpr int groups = std::max(d_k, d_v) / 64;
  using Slots = ChunkSlots<d_k, d_v, rule, SlotParts::values, groups>;
  using Matrix = PanelTile<d_k, d_k>;

  __device__ MapsBlock(const DeviceLayer& layer, const SegmentMapsOut& out)
      : out_(out), order_(ChunkOrder::forward(layer)) {
    const std::int64_t segment =
        static_cast<std::int64_t>(DeviceLayer::place()) * layer.segments + DeviceLayer::segment();
    if (out.added != nullptr) added_ = out.added + (segment * d_v + row()) * d_k;
    matrix_ = {out.matrices + segment * 2 * Matrix::bytes};
  }

  __device__ void run() const {
    const bool has_values = (d_v >= d_k || row() < d_v) && out_.added != nullptr;
    const bool has_matrix = d_k >= d_v || row() < d_k;
    if (has_values) return has_matrix ? sweep<true, true>() : sweep<true, false>();
    has_matrix ? sweep<false, true>() : sweep<false, false>();
  }

 private:
  __device__ static int row() { return 64 * group(); }

  template <bool has_values, bool has_matrix>
  __device__ void sweep() const {
    GroupSums<d_k> values, matrix;
    if constexpr (has_values) values.clear();
    if constexpr (has_matrix) set_identity(matrix, row());
#pragma unroll 1
    for (int step = 0; step < order_.count; ++step) {
      Slots::full(step).wait();
      if constexpr (has_values) move<true>(values, step);
      if constexpr (has_matrix) move<false>(matrix, step);
      if (step + Slots::slots < order_.count) Slots::empty(step).arrive();
    }
    if constexpr (has_values) write_rows(added_, values);
    if constexpr (has_matrix) write_matrix(matrix);
  }

  template <bool has_values>
  __device__ static void move(GroupSums<d_k>& state, int step) {
    const ForwardChunk<Slots> chunk{step};
    chunk.decays().enter(state);
    const ValueWrites<Slots, has_values> writes(step);
    GroupSums<device_chunk> missing;
    {
      const PackedRows<d_k> x(state);
      begin_products();
      start_product<d_k / 16>(missing, x.of, chunk.keys(), false);
      writes.start_reads(missing);
      commit_products();
      wait_for_products<0>();
      missing.arrived();
    }
    chunk.template set_missing<has_values>(missing);
    PackedTokens written;
    chunk.start_move(state, written, missing);
    writes.start_state(state);
    commit_products();
    wait_for_products<0>();
    state.arrived();
    chunk.decays().leave(state);
  }

  /// Writes M as tiles of the high and the low halves of its numbers.
  __device__ void write_matrix(GroupSums<d_k>& matrix) const {
    const GroupPlace<Matrix> place(row());
    matrix.for_each([&](int n, int half, const float2& x) {
      const std::uint32_t high = packed_pair(x.x, x.y);
      const float2 low = x - unpacked_pair(high);
      *reinterpret_cast<std::uint32_t*>(matrix_.memory + place.at(n, half)) = high;
      matrix_.set_pair(Matrix::bytes + place.at(n, half), low);
    });
  }

  const SegmentMapsOut& out_;
  ChunkOrder order_;
  float* added_ = nullptr;
  Matrix matrix_;
};

template <int d_k, int d_v, ChunkRule rule>
__global__ __launch_bounds__(MapsBlock<d_k, d_v, rule>::Slots::threads,
                             1) void segment_maps_kernel(const __grid_constant__ DeviceLayer layer,
                                                         const __grid_constant__ ChunkTensors x,
                                                         const __grid_constant__ SegmentMapsOut out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Block = MapsBlock<d_k, d_v, rule>;
  feed_and_multiply<typename Block::Slots, 40, 232>(layer, x, ChunkOrder::forward(layer),
                                                    [&] { Block(layer, out).run(); });
#endif
}

}  // namespace

cudaError_t segment_maps(cudaStream_t stream, const SegmentMapsOut& out, const ChunkTensors& x,
                         const Segments& cut) {
  return with_rule(cut.shape, x.rule, [&](auto d_k, auto d_v, auto rule) {
    using Slots = typename MapsBlock<d_k(), d_v(), rule()>::Slots;
    return launch_on_segments<Slots::threads>(stream, cut, Slots::shared_bytes,
                                              segment_maps_kernel<d_k(), d_v(), rule()>, x, out);
  });
}

}  // namespace baton
