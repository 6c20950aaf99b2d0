// SPDX-License-Identifier: Apache-2.0
// Times of the kernels of linear attention with a delta rule on one device, built by preset cuda.
//
// Medians of 50 runs after 5, with inputs that turn and are larger than the L2. Their results are
// checked by tests/sp_methods/kernels/device/delta/passes_test.cu.
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "harness/micro/device_times.cuh"
#include "sp_methods/kernels/device/delta/factors.cuh"
#include "sp_methods/kernels/device/delta/forward_sweep.cuh"
#include "tests/sp_methods/kernels/device/delta/layer_rank.cuh"

namespace baton {
namespace {

/// Turns normal numbers into keys of about length one, and others into strengths in (0, 1).
__global__ void finish_kernel(Bf16* keys, std::int64_t key_elements, float scale, Bf16* beta,
                              std::int64_t strengths) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (i < key_elements) keys[i] = __float2bfloat16(scale * __bfloat162float(keys[i]));
  if (i < strengths) beta[i] = __float2bfloat16(1.0F / (1.0F + expf(-__bfloat162float(beta[i]))));
}

void draw(const DeltaLayerMemory& x, const LayerShape& s, unsigned seed, float strength) {
  for (const auto* normal : {&x.of.q, &x.of.k, &x.of.v, &x.of.d_o, &x.beta})
    cuda(fill_normal(normal->at(), normal->count(), seed++ << 8, 0.0F));
  cuda(fill_normal(x.of.g.at(), x.of.g.count(), seed << 8, strength));
  const auto blocks = static_cast<unsigned>(x.of.k.count() / 256 + 1);
  finish_kernel<<<blocks, 256>>>(x.of.k.at(), x.of.k.count(), 1.0F / std::sqrt(static_cast<float>(s.d_k)),
                                 x.beta.at(), x.beta.count());
  cuda(cudaGetLastError());
}

constexpr int sets = 2;  // of inputs, which turn

/// Layers with drawn inputs, and a rank for each.
struct Layers {
  std::vector<std::unique_ptr<DeltaLayerMemory>> layers;
  std::vector<std::unique_ptr<DeltaRank>> ranks;

  Layers(const LayerShape& s, float strength) {
    for (int i = 0; i < sets; ++i) {
      layers.push_back(std::make_unique<DeltaLayerMemory>(s));
      draw(*layers.back(), s, static_cast<unsigned>(1 + 10 * i), strength);
      ranks.push_back(std::make_unique<DeltaRank>(*layers.back(), s, Work{}, 0));
      for (const auto* state : {&ranks.back()->before, &ranks.back()->after})
        cuda(cudaMemset(state->at(), 0, size(state->count()) * sizeof(float)));
    }
    cuda(cudaDeviceSynchronize());
  }
};

void time_shape(const LayerShape& s, float strength = 1.0F / 16.0F) {
  const Layers all(s, strength);
  std::printf("T=%d H=%d d_k=%d d_v=%d gate width %d, gates log sigmoid x %.4f\n", static_cast<int>(s.tokens),
              static_cast<int>(s.heads), static_cast<int>(s.d_k), static_cast<int>(s.d_v),
              static_cast<int>(s.gate_width()), strength);
  const Chunks p{s, {}, Dtype::bf16};
  char* const records = delta_workspace();
  const auto timed = [&](const char* what, double bytes, const std::function<void(const DeltaRank&)>& call) {
    print_time(what, bytes, [&](int i) { call(*all.ranks[size(i % sets)]); });
  };
  timed("records", 0, [&](const DeltaRank& x) { cuda(delta_factors({}, records, x.in(), p, {})); });
  timed("records without queries", 0,
        [&](const DeltaRank& x) { cuda(delta_factors({}, records, x.in(), p, {.queries = false})); });
  timed("sweep of the map", 0, [&](const DeltaRank& x) {
    cuda(forward_sweep({}, {.map_state = x.map_state.at(), .map_matrix = x.map_matrix.at()}, records, nullptr,
                       p));
  });
  timed("sweep of the output", 0, [&](const DeltaRank& x) {
    cuda(forward_sweep({}, {.o = x.layer.of.o.at()}, records, x.before.at(), p));
  });
  timed("delta_map", DeltaMap::bytes(p), &DeltaRank::map);
  timed("delta_output", DeltaOutput::bytes(p), [](const DeltaRank& x) { x.output(); });
  timed("delta_correction, delta_correct", 0, &DeltaRank::corrected);
  timed("delta_state_gradients", DeltaStateGradients::bytes(p), &DeltaRank::state_gradients);
  timed("delta_gradients", DeltaGradients::bytes(p), &DeltaRank::gradients);
}

void time_all() {
  cudaDeviceProp device;
  cuda(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", device.name, device.multiProcessorCount,
              device.l2CacheSize >> 20);
  for (const GateKind kind : {GateKind::scalar, GateKind::vector, GateKind::none})
    time_shape({16384, 16, 128, 128, 64, kind});
  time_shape({8192, 32, 128, 128, 64, GateKind::scalar});
  time_shape({16384, 16, 128, 128, 64, GateKind::vector}, 8.0F);  // every chunk is strong
}

}  // namespace
}  // namespace baton

int main() { return baton::run_device_bench("delta_device_bench", baton::time_all); }
