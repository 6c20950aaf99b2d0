// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/scan.cuh"
#include "sp_methods/kernels/device/delta/groups/turned.cuh"

namespace baton {
namespace {

template <int d_k, bool backward>
class ScanBlock {
 public:
  using Matrix = PanelTile<d_k, d_k>;
  static constexpr int slots = 3, slot_bytes = 2 * Matrix::bytes, shared_bytes = slots * slot_bytes;

  __device__ ScanBlock(const DeviceLayer& layer, const SegmentScan& x, int value_blocks, int d_v)
      : x_(x),
        head_(DeviceLayer::place()),
        segments_(layer.segments),
        has_values_(static_cast<int>(blockIdx.y) < value_blocks),
        row_(64 * (static_cast<int>(blockIdx.y) - (has_values_ ? 0 : value_blocks))),
        rows_(has_values_ ? d_v : d_k),
        edges_(has_values_ ? x.edges : x.matrix_edges) {}

  __device__ void run() {
    load(0);
    load(1);
    start();
    read_added(0);
#pragma unroll 1
    for (int step = 0; step < segments_; ++step) {
      load(step + 2);
      if (edges_ != nullptr) write_rows(edges_ + at_segment(step), state_);
      add(step);
      __syncthreads();
    }
    finish();
  }

 private:
  __device__ static Matrix high(int step) { return {shared_space() + step % slots * slot_bytes}; }
  __device__ static Matrix low(int step) { return {high(step).memory + Matrix::bytes}; }
  __device__ std::int64_t number(int step) const {
    return head_ * segments_ + (backward ? segments_ - 1 - step : step);
  }
  /// Offset of the block's rows at a segment.
  __device__ std::int64_t at_segment(int step) const { return (number(step) * rows_ + row_) * d_k; }
  __device__ std::int64_t at_head() const { return (head_ * rows_ + row_) * d_k; }

  __device__ void load(int step) const {
    if (step < segments_) {
      const char* const from = x_.matrices + number(step) * slot_bytes + 16 * group_thread();
      const std::uint32_t into = shared_address(high(step).memory) + 16 * group_thread();
#pragma unroll 8
      for (int at = 0; at < slot_bytes; at += 16 * group_threads) copy_16_async(into + at, from + at, true);
    }
    commit_copies();
  }
  __device__ void start() {
    if (!has_values_) return set_identity(state_, row_);
    read_rows(state_, x_.incoming == nullptr ? nullptr : x_.incoming + at_head());
  }

  /// Reads B of a segment, a step before it is added.
  __device__ void read_added(int step) {
    read_rows(added_, has_values_ && step < segments_ ? x_.added + at_segment(step) : nullptr);
  }
  /// Moves the state over a segment.
  __device__ void add(int step) {
    using Right = PanelOperand<backward ? PanelsAlong::summed : PanelsAlong::outer, d_k>;
    GroupSums<d_k> next = added_;
    read_added(step + 1);
    const PackedRows<d_k> top(state_);
    state_.for_each([](int, int, float2& x) { x = x - unpacked_pair(packed_pair(x.x, x.y)); });
    const PackedRows<d_k> rest(state_);
    wait_for_copies<slots - 1>();
    show_to_products();
    __syncthreads();
    begin_products();
    start_product<d_k / 16>(next, top.of, Right(high(step).memory), true);
    start_product<d_k / 16>(next, top.of, Right(low(step).memory), true);
    start_product<d_k / 16>(next, rest.of, Right(high(step).memory), true);
    commit_products();
    wait_for_products<0>();
    next.arrived();
    state_ = next;
  }

  __device__ void finish() {
    if (has_values_) {
      if (x_.last != nullptr) write_rows(x_.last + at_head(), state_);
    } else if (x_.map_matrix != nullptr) {
      float* const matrix = x_.map_matrix + head_ * d_k * d_k;
      state_.for_each([&](int n, int half, const float2& x) {
        const int row = row_ + state_.row() + 8 * half, column = state_.column() + 8 * n;
        matrix[column * d_k + row] = x.x;
        matrix[(column + 1) * d_k + row] = x.y;
      });
    }
  }

  const SegmentScan& x_;
  std::int64_t head_;
  int segments_;
  bool has_values_;
  int row_, rows_;
  float* edges_;
  GroupSums<d_k> state_, added_;
};

template <int d_k, bool backward>
__global__ __launch_bounds__(group_threads, 1) void scan_kernel(const __grid_constant__ DeviceLayer layer,
                                                                const __grid_constant__ SegmentScan x,
                                                                int value_blocks, int d_v) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  ScanBlock<d_k, backward>(layer, x, value_blocks, d_v).run();
#endif
}

template <int d_k, bool backward>
cudaError_t launch(cudaStream_t stream, const SegmentScan& x, const Segments& cut) {
  const auto d_v = static_cast<int>(cut.shape.d_v);
  const bool has_values = x.edges != nullptr || x.last != nullptr;
  const bool has_matrix = x.matrix_edges != nullptr || x.map_matrix != nullptr;
  const int value_blocks = has_values ? d_v / 64 : 0, blocks = value_blocks + (has_matrix ? d_k / 64 : 0);
  constexpr int bytes = ScanBlock<d_k, backward>::shared_bytes;
  const auto code =
      cudaFuncSetAttribute(scan_kernel<d_k, backward>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (code != cudaSuccess) return code;
  const dim3 grid(static_cast<unsigned>(cut.work.heads(cut.shape)), static_cast<unsigned>(blocks));
  scan_kernel<d_k, backward><<<grid, group_threads, bytes, stream>>>(DeviceLayer(cut), x, value_blocks, d_v);
  return cudaGetLastError();
}

}  // namespace

cudaError_t scan_segment_maps(cudaStream_t stream, const SegmentScan& x, const Segments& cut) {
  if (cut.shape.d_k == 128)
    return x.backward ? launch<128, true>(stream, x, cut) : launch<128, false>(stream, x, cut);
  return x.backward ? launch<64, true>(stream, x, cut) : launch<64, false>(stream, x, cut);
}

}  // namespace baton
