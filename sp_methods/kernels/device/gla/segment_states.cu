// SPDX-License-Identifier: Apache-2.0
// The carried state over the chunks of one segment, in either direction: one block a head and
// segment. The kernels of segment_states, segment_state_gradients and chunk_starts.
//
//   forward:  for chunks left to right:  S <- e^all (.) S + (k e^{all - b})^T v
//   reversed: for chunks right to left:  D <- e^all (.) D + (s q e^b)^T d_o
//
// All factors are <= 1, so any gate is safe. While a chunk is multiplied, the next one is scaled:
// one barrier a chunk; half of the warps do the one first, half the other, so that the matrix and
// the exponential units work side by side.
// Cost: 2 tokens d_k d_v flop a head; reads each input once. Shared memory holds four chunks.
#include "sp_methods/kernels/device/gla/gate_walk.cuh"
#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/gla/state_pieces.cuh"

namespace baton {
namespace {

enum class Sweep { left_to_right, right_to_left };

/// The inputs of one sweep: k and v, or q and d_o; and the gates.
struct SweepInputs {
  const Bf16* left;
  const Bf16* right;
  const Bf16* g;
};

template <int d_k, int d_v, GateKind kind, Sweep sweep>
class StateSweep {
 public:
  static constexpr int slots = 4;
  static constexpr int left_bytes = Bf16Tile<d_k>::bytes(device_chunk);
  static constexpr int right_bytes = Bf16Tile<d_v>::bytes(device_chunk);
  static constexpr int slot_bytes = left_bytes + right_bytes + GateTile<kind, d_k>::bytes();
  static constexpr int shared_bytes = slots * slot_bytes + 2 * d_k * static_cast<int>(sizeof(float));

  StateSums<d_k, d_v> state;
  /// Log decays from the segment's first chunk to the chunk of before_chunk, and to the segment's
  /// end. Lanes that walk hold them.
  float2 before{0.0F, 0.0F}, total{0.0F, 0.0F};

  __device__ StateSweep(const DeviceLayer& layer, const SweepInputs& in)
      : layer_(layer),
        in_(in),
        left_loader_(layer.loader<d_k>()),
        right_loader_(layer.loader<d_v>()),
        first_(layer.first_chunk(DeviceLayer::segment())),
        count_(layer.first_chunk(DeviceLayer::segment() + 1) - first_) {}

  /// Walks over all chunks of the segment, and calls before_chunk(chunk) when `state` is the one
  /// before the chunk.
  template <class Function>
  __device__ void run(Function before_chunk) {
    for (int step = 0; step < slots - 1; ++step) load(step);
    wait_for_copies<slots - 2>();
    __syncthreads();
    scale(0);
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<slots - 3>();
      __syncthreads();
      load(step + slots - 1);
      before_chunk(chunk_of(step));
#pragma unroll 1
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == (warp() & 1)) {
          add(step);
        } else if (step + 1 < count_) {
          scale(step + 1);
        }
      }
    }
  }

 private:
  __device__ int chunk_of(int step) const {
    return sweep == Sweep::left_to_right ? first_ + step : first_ + count_ - 1 - step;
  }
  __device__ char* slot(int step) const { return shared_space() + step % slots * slot_bytes; }
  __device__ Bf16Tile<d_k> left(int step) const { return {slot(step)}; }
  __device__ Bf16Tile<d_v> right(int step) const { return {slot(step) + left_bytes}; }
  __device__ GateTile<kind, d_k> gates(int step) const { return {slot(step) + left_bytes + right_bytes}; }
  __device__ float* decay(int step) const {
    return reinterpret_cast<float*>(shared_space() + slots * slot_bytes) + (step & 1) * d_k;
  }

  __device__ void load(int step) const {
    if (step < count_) {
      left_loader_.load(left(step), in_.left, chunk_of(step));
      right_loader_.load(right(step), in_.right, chunk_of(step));
      gates(step).load(layer_, left_loader_, in_.g, chunk_of(step));
    }
    commit_copies();
  }

  __device__ void scale(int step) {
    using Walk = GateWalk<kind, d_k>;
    if (!Walk::takes_part()) return;
    const Walk walk(gates(step));
    if constexpr (sweep == Sweep::right_to_left) {
      walk.scale(left(step), query_factor<d_k>({0.0F, 0.0F}));
    } else if constexpr (kind != GateKind::none) {
      walk.scale(left(step), key_factor(walk.all));
    }
    before = total;
    total = total + walk.all;
    if (walk.is_first_lane()) *reinterpret_cast<float2*>(decay(step) + walk.channel) = decay_of(walk.all);
  }

  __device__ void add(int step) {
    using Place = StatePlace<d_k, d_v>;
    if constexpr (kind != GateKind::none) state.scale_rows(decay(step) + Place::row());
    add_product<device_chunk / 16>(state, left_operand<RowsAre::summed>(left(step), Place::row()),
                                   right_operand<RowsAre::summed>(right(step), Place::column()));
  }

  const DeviceLayer& layer_;
  const SweepInputs& in_;
  TileLoader<d_k> left_loader_;
  TileLoader<d_v> right_loader_;
  int first_, count_;
};

/// Writes two numbers of every lane that walks to their channels of a row [d_k].
template <int d_k>
__device__ void put_channels(float* row, float2 x) {
  if (warp() < d_k / 8 && lane() < 4) *reinterpret_cast<float2*>(row + 8 * warp() + 2 * lane()) = x;
}

/// Writes a segment's state and its total log decay, numbered in the order of the sweep.
template <int d_k, int d_v, GateKind kind, Sweep sweep>
__device__ void write_segment_state(StateSweep<d_k, d_v, kind, sweep>& block, const DeviceLayer& layer,
                                    float* states, float* totals) {
  using Place = StatePlace<d_k, d_v>;
  const int segment = DeviceLayer::segment();
  const std::int64_t edge = sweep == Sweep::left_to_right ? segment : layer.segments - 1 - segment;
  const std::int64_t head = DeviceLayer::place();
  float* state = states + (head * (layer.segments + 1) + edge) * d_k * d_v;
  block.state.for_each([&](int r, int c, float2& x) {
    *reinterpret_cast<float2*>(state + (Place::row() + r) * d_v + Place::column() + c) = x;
  });
  put_channels<d_k>(totals + (head * layer.segments + edge) * d_k, block.total);
}

/// Computes a segment's state from zero.
template <int d_k, int d_v, GateKind kind, Sweep sweep>
__device__ void make_segment_state(const DeviceLayer& layer, const SweepInputs& in, float* states,
                                   float* totals) {
  StateSweep<d_k, d_v, kind, sweep> block(layer, in);
  block.state.clear();
  block.run([](int) {});
  write_segment_state(block, layer, states, totals);
}

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void segment_states_kernel(const __grid_constant__ DeviceLayer layer,
                                                           float* states, float* totals,
                                                           const __grid_constant__ SweepInputs in) {
  make_segment_state<d_k, d_v, kind, Sweep::left_to_right>(layer, in, states, totals);
}

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void segment_state_gradients_kernel(const __grid_constant__ DeviceLayer layer,
                                                                    float* states, float* totals,
                                                                    const __grid_constant__ SweepInputs in) {
  make_segment_state<d_k, d_v, kind, Sweep::right_to_left>(layer, in, states, totals);
}

/// Writes the state before every chunk, in pieces, and the state and the decay that the segment
/// adds if these pointers are not null.
template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads, 1) void chunk_starts_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ ChunkStarts::Operands<OnDevice> x,
    const __grid_constant__ SweepInputs in) {
  using Place = StatePlace<d_k, d_v>;
  StateSweep<d_k, d_v, kind, Sweep::left_to_right> block(layer, in);
  read_edge<d_k, d_v>(block.state, x.before, layer.segments, DeviceLayer::segment());
  block.run([&](int chunk) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk;
    store_pieces<d_v>(x.starts + number * d_k * d_v, Place::row(), Place::column(), block.state);
    if (x.decays != nullptr) put_channels<d_k>(x.decays + number * d_k, decay_of(block.before));
  });
  if (x.states != nullptr) write_segment_state(block, layer, x.states, x.totals);
}

cudaError_t segment_states(cudaStream_t stream, const SegmentStates::Operands<OnDevice>& x,
                           const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(
        stream, cut, StateSweep<d_k(), d_v(), kind(), Sweep::left_to_right>::shared_bytes,
        segment_states_kernel<d_k(), d_v(), kind()>, x.states, x.totals, SweepInputs{x.in.k, x.in.v, x.in.g});
  });
}

cudaError_t segment_state_gradients(cudaStream_t stream, const SegmentStateGradients::Operands<OnDevice>& x,
                                    const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, cut,
                              StateSweep<d_k(), d_v(), kind(), Sweep::right_to_left>::shared_bytes,
                              segment_state_gradients_kernel<d_k(), d_v(), kind()>, x.states, x.totals,
                              SweepInputs{x.in.q, x.d_o, x.in.g});
  });
}

cudaError_t chunk_starts(cudaStream_t stream, const ChunkStarts::Operands<OnDevice>& x, const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(
        stream, cut, StateSweep<d_k(), d_v(), kind(), Sweep::left_to_right>::shared_bytes,
        chunk_starts_kernel<d_k(), d_v(), kind()>, x, SweepInputs{x.in.k, x.in.v, x.in.g});
  });
}

const RegisteredCudaKernel registered[]{
    device_body<SegmentStates>(segment_states),
    device_body<SegmentStateGradients>(segment_state_gradients),
    device_body<ChunkStarts>(chunk_starts),
};

}  // namespace
}  // namespace baton
