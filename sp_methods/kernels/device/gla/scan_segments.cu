// SPDX-License-Identifier: Apache-2.0
// The exclusive scan over a head's segments, in place: states of single segments become states at edges.
//
//   carry = 0, log = 0;  for each segment:  write (carry, log) at its edge;  carry = e^total (.) carry + state;  log += total
//   the last edge, and the rank's map (e^log, carry)
//
// Every thread has four elements of one row and reads eight segments ahead of its writes.
// Cost: heads segments d_k d_v, read and written once.
#include "sp_methods/kernels/device/gla/layer.cuh"

namespace baton {
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

const RegisteredCudaKernel registered = device_body<ScanSegments>(scan_segments);

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
