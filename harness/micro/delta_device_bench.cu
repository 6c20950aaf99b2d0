// SPDX-License-Identifier: Apache-2.0
// Times of the kernels of linear attention with a delta rule and with a low-rank rule on one
// device, built by preset cuda.
//
// Medians of 50 runs after 5, with inputs that turn and are larger than the L2. Their results are
// checked by passes_test.cu of tests/sp_methods/kernels/device/delta/ and low_rank/.
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "harness/micro/device_times.cuh"
#include "sp_methods/kernels/device/delta/factors.cuh"
#include "sp_methods/kernels/device/delta/forward_sweep.cuh"
#include "sp_methods/kernels/device/low_rank/factors.cuh"
#include "tests/sp_methods/kernels/device/low_rank/layer_rank.cuh"

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

/// Turns normal numbers into keys a of about length one, and b into -a (.) rates in (0, 1).
__global__ void finish_kernel(Bf16* keys, Bf16* a, Bf16* b, std::int64_t elements, float scale) {
  const std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x;
  if (i >= elements) return;
  const float read = scale * __bfloat162float(a[i]);
  keys[i] = __float2bfloat16(scale * __bfloat162float(keys[i]));
  a[i] = __float2bfloat16(read);
  b[i] = __float2bfloat16(-read / (1.0F + expf(-__bfloat162float(b[i]))));
}

void draw(const LowRankLayerMemory& x, const LayerShape& s, unsigned seed, float strength) {
  for (const auto* normal : {&x.of.q, &x.of.k, &x.of.v, &x.of.d_o, &x.a, &x.b})
    cuda(fill_normal(normal->at(), normal->count(), seed++ << 8, 0.0F));
  cuda(fill_normal(x.of.g.at(), x.of.g.count(), seed << 8, strength));
  finish_kernel<<<static_cast<unsigned>(x.a.count() / 256 + 1), 256>>>(
      x.of.k.at(), x.a.at(), x.b.at(), x.a.count(), 1.0F / std::sqrt(static_cast<float>(s.d_k)));
  cuda(cudaGetLastError());
}

constexpr int sets = 2;  // of inputs, which turn

/// Layers with drawn inputs, and a rank for each.
template <class Memory>
struct Layers {
  std::vector<std::unique_ptr<Memory>> layers;
  std::vector<std::unique_ptr<MatrixRank<Memory>>> ranks;

  Layers(const LayerShape& s, float strength) {
    for (int i = 0; i < sets; ++i) {
      layers.push_back(std::make_unique<Memory>(s));
      draw(*layers.back(), s, static_cast<unsigned>(1 + 10 * i), strength);
      ranks.push_back(std::make_unique<MatrixRank<Memory>>(*layers.back(), s, Work{}, 0));
      for (const auto* state : {&ranks.back()->before, &ranks.back()->after})
        cuda(cudaMemset(state->at(), 0, size(state->count()) * sizeof(float)));
    }
    cuda(cudaDeviceSynchronize());
  }
};

cudaError_t put_records(char* records, const DeltaRank& x, const Chunks& p, bool queries) {
  return delta_factors({}, records, x.in(), p, {.queries = queries});
}
cudaError_t put_records(char* records, const LowRankRank& x, const Chunks& p, bool queries) {
  return low_rank_factors({}, records, x.in(), p, {.queries = queries});
}

template <class Memory>
void time_shape(const LayerShape& s, ChunkRule rule, float strength = 1.0F / 16.0F) {
  using Rank = MatrixRank<Memory>;
  const Layers<Memory> all(s, strength);
  std::printf("T=%d H=%d d_k=%d d_v=%d gate width %d, gates log sigmoid x %.4f\n", static_cast<int>(s.tokens),
              static_cast<int>(s.heads), static_cast<int>(s.d_k), static_cast<int>(s.d_v),
              static_cast<int>(s.gate_width()), strength);
  const Chunks p{s, {}, Dtype::bf16};
  char* const records = delta_workspace();
  const auto timed = [&](const char* what, double bytes, const std::function<void(const Rank&)>& call) {
    print_time(what, bytes, [&](int i) { call(*all.ranks[size(i % sets)]); });
  };
  timed("records", 0, [&](const Rank& x) { cuda(put_records(records, x, p, true)); });
  timed("records without queries", 0, [&](const Rank& x) { cuda(put_records(records, x, p, false)); });
  timed("sweep of the map", 0, [&](const Rank& x) {
    cuda(forward_sweep({}, {.map_state = x.map_state.at(), .map_matrix = x.map_matrix.at()}, records, nullptr,
                       p, rule));
  });
  timed("sweep of the output", 0, [&](const Rank& x) {
    cuda(forward_sweep({}, {.o = x.layer.of.o.at()}, records, x.before.at(), p, rule));
  });
  timed(Memory::Map::name, Memory::Map::bytes(p), &Rank::map);
  timed(Memory::Output::name, Memory::Output::bytes(p), [](const Rank& x) { x.output(); });
  timed("correction, delta_correct", 0, &Rank::corrected);
  timed(Memory::StateGradients::name, Memory::StateGradients::bytes(p), &Rank::state_gradients);
  timed(Memory::Gradients::name, Memory::Gradients::bytes(p), &Rank::gradients);
}
void time_delta(const LayerShape& s, float strength = 1.0F / 16.0F) {
  time_shape<DeltaLayerMemory>(s, ChunkRule::delta, strength);
}
void time_low_rank(const LayerShape& s, float strength = 1.0F / 16.0F) {
  time_shape<LowRankLayerMemory>(s, ChunkRule::low_rank, strength);
}

void time_all() {
  cudaDeviceProp device;
  cuda(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", device.name, device.multiProcessorCount,
              device.l2CacheSize >> 20);
  for (const GateKind kind : {GateKind::scalar, GateKind::vector, GateKind::none})
    time_delta({16384, 16, 128, 128, 64, kind});
  time_delta({8192, 32, 128, 128, 64, GateKind::scalar});
  time_delta({16384, 16, 128, 128, 64, GateKind::vector}, 8.0F);  // every chunk is strong
  time_low_rank({16384, 16, 128, 128, 64, GateKind::vector});
  time_low_rank({16384, 32, 64, 64, 64, GateKind::vector});  // the widths of RWKV-7
  time_low_rank({16384, 16, 128, 128, 64, GateKind::vector}, 8.0F);
}

}  // namespace
}  // namespace baton

int main() { return baton::run_device_bench("delta_device_bench", baton::time_all); }
