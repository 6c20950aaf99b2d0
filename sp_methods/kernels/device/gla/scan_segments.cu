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
__device__ void scan_some(const GlaDeviceSegments& x, Carry& carry, const ScanPlace& place, int first,
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

__global__ __launch_bounds__(scan_threads) void scan_segments_kernel(GlaDeviceSegments x, float* map_decay,
                                                                     float* map_state, int segments, int d_k,
                                                                     int d_v) {
  const int element = 4 * static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  const ScanPlace place{static_cast<std::int64_t>(blockIdx.x), element / d_v, element};
  Carry carry;
  for (int first = 0; first < segments; first += ahead) scan_some(x, carry, place, first, segments, d_k, d_v);
  const std::int64_t edge = place.head * (segments + 1) + segments,
                     size = static_cast<std::int64_t>(d_k) * d_v;
  *reinterpret_cast<float4*>(x.states + edge * size + element) = carry.state;
  *reinterpret_cast<float4*>(map_state + place.head * size + element) = carry.state;
  if (element % d_v != 0) return;
  x.gates[edge * d_k + place.row] = carry.log;
  map_decay[place.head * d_k + place.row] = decay_of(carry.log);
}

}  // namespace

cudaError_t gla_scan_segments(const GlaDeviceCall& call, const GlaDeviceSegments& segments, float* map_decay,
                              float* map_state) {
  const auto d_k = static_cast<int>(call.shape.d_k), d_v = static_cast<int>(call.shape.d_v);
  const dim3 grid(static_cast<unsigned>(call.work.heads(call.shape)),
                  static_cast<unsigned>(d_k * d_v / (4 * scan_threads)));
  scan_segments_kernel<<<grid, scan_threads, 0, call.stream>>>(segments, map_decay, map_state, call.segments,
                                                               d_k, d_v);
  return cudaGetLastError();
}

Refusal gla_device_refuses(const GlaShape& shape) {
  const auto fits = [](std::int64_t width) { return width == 64 || width == 128; };
  if (!fits(shape.d_k) || !fits(shape.d_v)) return "the device kernels take d_k and d_v of 64 or 128";
  return shape.tokens < 1 ? "no tokens" : "";
}

int gla_device_segments(const GlaShape& shape, const Work& work, int multiprocessors) {
  const std::int64_t chunks = (shape.tokens + device_chunk - 1) / device_chunk;
  return static_cast<int>(std::clamp<std::int64_t>(multiprocessors / work.heads(shape), 1, chunks));
}

}  // namespace baton
