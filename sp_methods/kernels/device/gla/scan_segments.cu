// SPDX-License-Identifier: Apache-2.0
// Scans over a head's segments: states of single segments become states at their edges. The kernels
// of scan_segments and segment_starts.
//
//   carry = 0, log = 0      (segment_starts: carry = what came in)
//   for each segment:  write (carry, log) at its edge
//                      carry = e^total (.) carry + state;  log += total
//   scan_segments: the last edge, and the rank's map (e^log, carry)
//
// scan_segments works in place and serves both passes; segment_starts writes bf16, true states in
// pieces (state_pieces.cuh), for segment_gradients to add to the states of chunks.
// Every thread has four elements of one row and reads eight segments ahead of its writes.
// Cost: heads segments d_k d_v, read and written once.
#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/gla/state_pieces.cuh"

namespace baton {
namespace {

using ScanOperands = ScanSegments::Operands<OnDevice>;
using StartsOperands = SegmentStarts::Operands<OnDevice>;

constexpr int scan_threads = 128;
constexpr int ahead = 8;

/// The elements of a state that one thread computes.
struct ScanPlace {
  std::int64_t head, size;  // of a head's state
  int segments, d_k;
  int row, element;  // of the state

  __device__ ScanPlace(int segments, int d_k, int d_v)
      : head(static_cast<std::int64_t>(blockIdx.x)),
        size(static_cast<std::int64_t>(d_k) * d_v),
        segments(segments),
        d_k(d_k),
        row(4 * thread() / d_v),
        element(4 * thread()) {}

  __device__ bool begins_row(int d_v) const { return element % d_v == 0; }
  /// Offset of this thread's elements in state `number` of [heads, states, d_k, d_v].
  __device__ std::int64_t at(int states, int number) const {
    return (head * states + number) * size + element;
  }
  /// Offset of this thread's row in totals or gates [heads, states, d_k].
  __device__ std::int64_t row_at(int states, int number) const {
    return (head * states + number) * d_k + row;
  }

 private:
  __device__ static int thread() { return static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); }
};

__device__ float4 decayed_sum(float decay, float4 carry, float4 x) {
  return {decay * carry.x + x.x, decay * carry.y + x.y, decay * carry.z + x.z, decay * carry.w + x.w};
}

/// The prefix of the maps for one thread's elements.
struct Carry {
  float4 state{0.0F, 0.0F, 0.0F, 0.0F};
  float log = 0.0F;
};

/// Scans up to `ahead` segments from `first` on, and calls at_edge(segment) before it adds each
/// one.
template <class Function>
__device__ void scan_some(Carry& carry, const float* states, const float* totals, const ScanPlace& place,
                          int first, Function at_edge) {
  const int count = min(ahead, place.segments - first);
  float4 state[ahead];
  float total[ahead];
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i >= count) break;
    state[i] = *reinterpret_cast<const float4*>(states + place.at(place.segments + 1, first + i));
    total[i] = totals[place.row_at(place.segments, first + i)];
  }
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (i >= count) break;
    at_edge(first + i);
    carry.state = decayed_sum(decay_of(total[i]), carry.state, state[i]);
    carry.log += total[i];
  }
}

__global__ __launch_bounds__(scan_threads) void scan_segments_kernel(ScanOperands x, int segments, int d_k,
                                                                     int d_v) {
  const ScanPlace place(segments, d_k, d_v);
  const int edges = segments + 1;
  Carry carry;
  const auto write = [&](int edge) {
    *reinterpret_cast<float4*>(x.states + place.at(edges, edge)) = carry.state;
    if (place.begins_row(d_v)) x.gates[place.row_at(edges, edge)] = carry.log;
  };
  for (int first = 0; first < segments; first += ahead)
    scan_some(carry, x.states, x.totals, place, first, write);
  write(segments);
  *reinterpret_cast<float4*>(x.map_state + place.at(1, 0)) = carry.state;
  if (place.begins_row(d_v)) x.map_decay[place.row_at(1, 0)] = decay_of(carry.log);
}

__global__ __launch_bounds__(scan_threads) void segment_starts_kernel(StartsOperands x, int segments, int d_k,
                                                                      int d_v) {
  const ScanPlace place(segments, d_k, d_v);
  Carry carry;
  if (x.incoming != nullptr) carry.state = *reinterpret_cast<const float4*>(x.incoming + place.at(1, 0));
  const auto write = [&](int segment) {
    const float4 state = carry.state;
    Bf16* const starts = x.starts + (place.head * segments + segment) * place.size;
    const int column = place.element % d_v;
    store_pair(starts + pair_in_pieces(d_v, place.row, column), {state.x, state.y});
    store_pair(starts + pair_in_pieces(d_v, place.row, column + 2), {state.z, state.w});
  };
  for (int first = 0; first < segments; first += ahead)
    scan_some(carry, x.states, x.totals, place, first, write);
}

/// Launches a kernel with one thread for four elements of a call's states.
template <class Operands>
cudaError_t launch_on_states(cudaStream_t stream, const Segments& cut,
                             void (*kernel)(Operands, int, int, int), const Operands& x) {
  const auto d_k = static_cast<int>(cut.shape.d_k), d_v = static_cast<int>(cut.shape.d_v);
  const dim3 grid(static_cast<unsigned>(cut.work.heads(cut.shape)),
                  static_cast<unsigned>(d_k * d_v / (4 * scan_threads)));
  kernel<<<grid, scan_threads, 0, stream>>>(x, static_cast<int>(cut.count), d_k, d_v);
  return cudaGetLastError();
}

cudaError_t scan_segments(cudaStream_t stream, const ScanOperands& x, const Segments& cut) {
  return launch_on_states(stream, cut, scan_segments_kernel, x);
}

cudaError_t segment_starts(cudaStream_t stream, const StartsOperands& x, const Segments& cut) {
  return launch_on_states(stream, cut, segment_starts_kernel, x);
}

const RegisteredCudaKernel registered[]{
    device_body<ScanSegments>(scan_segments),
    device_body<SegmentStarts>(segment_starts),
};

}  // namespace
}  // namespace baton
