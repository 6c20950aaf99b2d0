// SPDX-License-Identifier: Apache-2.0
// The carried state over the chunks of one segment, in either direction: one block a head and
// segment. The kernels of segment_states, segment_state_gradients and chunk_starts, and below
// them the scan over segments.
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

namespace baton {
namespace {

enum class Sweep { left_to_right, right_to_left };

/// What one sweep reads: k and v, or q and d_o; and the gates.
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
  float2 total{0.0F, 0.0F};  ///< The log decay of the chunks walked, in lanes that walk.

  __device__ StateSweep(const DeviceLayer& layer, const SweepInputs& in)
      : layer_(layer),
        in_(in),
        left_loader_(layer.loader<d_k>()),
        right_loader_(layer.loader<d_v>()),
        first_(layer.first_chunk(DeviceLayer::segment())),
        count_(layer.first_chunk(DeviceLayer::segment() + 1) - first_) {}

  /// Runs over all chunks of the segment; calls before_chunk(chunk) when `state` is that before a
  /// chunk.
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

/// Writes a segment's state from zero and its total log decay, numbered the way the sweep goes.
template <int d_k, int d_v, GateKind kind, Sweep sweep>
__device__ void write_segment_state(const DeviceLayer& layer, const SweepInputs& in, float* states,
                                    float* totals) {
  StateSweep<d_k, d_v, kind, sweep> block(layer, in);
  block.state.clear();
  block.run([](int) {});
  using Place = StatePlace<d_k, d_v>;
  const int segment = DeviceLayer::segment();
  const std::int64_t edge = sweep == Sweep::left_to_right ? segment : layer.segments - 1 - segment;
  const std::int64_t head = DeviceLayer::place();
  float* state = states + (head * (layer.segments + 1) + edge) * d_k * d_v;
  block.state.for_each([&](int r, int c, float2& x) {
    *reinterpret_cast<float2*>(state + (Place::row() + r) * d_v + Place::column() + c) = x;
  });
  if (warp() < d_k / 8 && lane() < 4) {
    float* total = totals + (head * layer.segments + edge) * d_k + 8 * warp() + 2 * lane();
    *reinterpret_cast<float2*>(total) = block.total;
  }
}

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void segment_states_kernel(const __grid_constant__ DeviceLayer layer,
                                                           float* states, float* totals,
                                                           const __grid_constant__ SweepInputs in) {
  write_segment_state<d_k, d_v, kind, Sweep::left_to_right>(layer, in, states, totals);
}

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void segment_state_gradients_kernel(const __grid_constant__ DeviceLayer layer,
                                                                    float* states, float* totals,
                                                                    const __grid_constant__ SweepInputs in) {
  write_segment_state<d_k, d_v, kind, Sweep::right_to_left>(layer, in, states, totals);
}

/// Writes the true state before every chunk.
template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads,
                             1) void chunk_starts_kernel(const __grid_constant__ DeviceLayer layer,
                                                         Bf16* starts, SegmentEdges<OnDevice> before,
                                                         const __grid_constant__ SweepInputs in) {
  using Place = StatePlace<d_k, d_v>;
  StateSweep<d_k, d_v, kind, Sweep::left_to_right> block(layer, in);
  read_edge<d_k, d_v>(block.state, before, layer.segments, DeviceLayer::segment());
  block.run([&](int chunk) {
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer.chunks() + chunk;
    Bf16* at = starts + (number * d_k + Place::row()) * d_v + Place::column();
    store_sums(HeadRows<Bf16>{at, d_v, d_k}, block.state);
  });
}

const RegisteredCudaKernel registered[]{
    device_body<SegmentStates>(segment_states),
    device_body<SegmentStateGradients>(segment_state_gradients),
    device_body<ChunkStarts>(chunk_starts),
};

}  // namespace

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
        chunk_starts_kernel<d_k(), d_v(), kind()>, x.starts, x.before, SweepInputs{x.in.k, x.in.v, x.in.g});
  });
}

// The exclusive scan over a head's segments, in place: states of single segments become states at
// edges.
//
//   carry = 0, log = 0
//   for each segment:  write (carry, log) at its edge
//                      carry = e^total (.) carry + state;  log += total
//   the last edge, and the rank's map (e^log, carry)
//
// Every thread has four elements of one row and reads eight segments ahead of its writes.
// Cost: heads segments d_k d_v, read and written once.

namespace {

using ScanOperands = ScanSegments::Operands<OnDevice>;

constexpr int scan_threads = 128;
constexpr int ahead = 8;

struct ScanPlace {
  std::int64_t head;
  int row, element;  // of the state
};

__device__ float4 decayed_sum(float decay, float4 carry, float4 x) {
  return {decay * carry.x + x.x, decay * carry.y + x.y, decay * carry.z + x.z, decay * carry.w + x.w};
}

/// The running map of one thread's elements.
struct Carry {
  float4 state{0.0F, 0.0F, 0.0F, 0.0F};
  float log = 0.0F;
};

/// Up to `ahead` segments from `first` on.
__device__ void scan_some(const ScanOperands& x, Carry& carry, const ScanPlace& place, int first,
                          int segments, int d_k, int d_v) {
  const std::int64_t edge = place.head * (segments + 1) + first, size = static_cast<std::int64_t>(d_k) * d_v;
  const int count = min(ahead, segments - first);
  float4 state[ahead];
  float total[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i >= count) break;
    state[i] = *reinterpret_cast<const float4*>(x.states + (edge + i) * size + place.element);
    total[i] = x.totals[(place.head * segments + first + i) * d_k + place.row];
  }
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i >= count) break;
    *reinterpret_cast<float4*>(x.states + (edge + i) * size + place.element) = carry.state;
    if (place.element % d_v == 0) x.gates[(edge + i) * d_k + place.row] = carry.log;
    carry.state = decayed_sum(decay_of(total[i]), carry.state, state[i]);
    carry.log += total[i];
  }
}

__global__ __launch_bounds__(scan_threads) void scan_segments_kernel(ScanOperands x, int segments, int d_k,
                                                                     int d_v) {
  const int element = 4 * static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const ScanPlace place{static_cast<std::int64_t>(blockIdx.x), element / d_v, element};
  Carry carry;
  for (int first = 0; first < segments; first += ahead) scan_some(x, carry, place, first, segments, d_k, d_v);
  const std::int64_t edge = place.head * (segments + 1) + segments,
                     size = static_cast<std::int64_t>(d_k) * d_v;
  *reinterpret_cast<float4*>(x.states + edge * size + element) = carry.state;
  *reinterpret_cast<float4*>(x.map_state + place.head * size + element) = carry.state;
  if (element % d_v != 0) return;
  x.gates[edge * d_k + place.row] = carry.log;
  x.map_decay[place.head * d_k + place.row] = decay_of(carry.log);
}

const RegisteredCudaKernel scan_registered = device_body<ScanSegments>(scan_segments);

}  // namespace

cudaError_t scan_segments(cudaStream_t stream, const ScanSegments::Operands<OnDevice>& x,
                          const Segments& cut) {
  const auto d_k = static_cast<int>(cut.shape.d_k), d_v = static_cast<int>(cut.shape.d_v);
  const dim3 grid(static_cast<unsigned>(cut.work.heads(cut.shape)),
                  static_cast<unsigned>(d_k * d_v / (4 * scan_threads)));
  scan_segments_kernel<<<grid, scan_threads, 0, stream>>>(x, static_cast<int>(cut.count), d_k, d_v);
  return cudaGetLastError();
}

}  // namespace baton
