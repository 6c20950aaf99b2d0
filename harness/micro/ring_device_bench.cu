// SPDX-License-Identifier: Apache-2.0
// Times each compute step of Ring Attention by itself on one device.
//
//   ring_device_bench [tokens] [heads] [d] [ranks]      default: 16384 16 128 2
//
// Softmax blocks run by our own kernels and by cuDNN, where it is found. A time is the median of 7
// rounds after 2, between two events. Flops are those of the contracts,
// which count each visible pair once.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "harness/micro/device_times.cuh"
#include "sp_methods/sp_method.hpp"
#include "tests/collectives/executors/cuda/ranks_on_one_gpu.cuh"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"

namespace baton {
namespace {

/// Times a step by two events.
class StepTimer {
 public:
  StepTimer() {
    cuda(cudaEventCreate(&start_));
    cuda(cudaEventCreate(&stop_));
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  ~StepTimer() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }

  void start() const { cuda(cudaEventRecord(start_)); }
  double stop() const {
    cuda(cudaEventRecord(stop_));
    cuda(cudaEventSynchronize(stop_));
    float milliseconds = 0;
    cuda(cudaEventElapsedTime(&milliseconds, start_, stop_));
    return milliseconds;
  }

 private:
  cudaEvent_t start_, stop_;
};

void draw_inputs(const RanksOnOneGpu& gpu) {
  for (int rank : gpu.local_ranks()) {
    unsigned seed = static_cast<unsigned>(100 * rank + 1);
    for (const Buffer& buffer : gpu.prepared()[rank].buffers()) {
      if (buffer.role != Role::input) continue;
      const Slice all = gpu.prepared()[rank].buffer(buffer.name);
      auto* at = reinterpret_cast<__nv_bfloat16*>(gpu.memory_of(rank).at(all));
      cuda(fill_normal(at, all.count, seed++ << 8, buffer.name == "g" ? 1.0F / 16.0F : 0.0F));
    }
  }
}

/// Milliseconds of every step, by rank and number.
std::map<std::pair<int, int>, double> median_times(RanksOnOneGpu& gpu) {
  constexpr int warm_up = 2, rounds = 7;
  const StepTimer timer;
  std::map<std::pair<int, int>, std::vector<double>> all;
  for (int round = 0; round < warm_up + rounds; ++round)
    gpu.run_between([&](int, int) { timer.start(); },
                    [&](int rank, int step) {
                      const double time = timer.stop();
                      if (round >= warm_up) all[{rank, step}].push_back(time);
                    });
  std::map<std::pair<int, int>, double> medians;
  for (auto& [step, times] : all) {
    std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
    medians[step] = times[rounds / 2];
  }
  return medians;
}

void time_method(const std::string& name, const LayerShape& share, int ranks,
                 SoftmaxBody kernel = SoftmaxBody::own) {
  Layer layer{.share = share, .pass = Pass::both, .dtype = Dtype::bf16};
  layer.kernels.softmax = kernel;
  RanksOnOneGpu gpu(ranks);
  gpu.prepare(build_all(find_method(name), layer, ranks));
  draw_inputs(gpu);
  std::printf("%s, %d ranks, gates %s, blocks by %s\n", name.c_str(), ranks, to_string(share.gate),
              to_string(kernel));
  for (const auto& [at, time] : median_times(gpu)) {
    const Schedule& schedule = gpu.prepared()[at.first];
    const Step& step = schedule.steps()[at.second];
    if (step.verb != Verb::compute) continue;
    const Kernel& kernel = schedule.kernels()[step.body];
    std::printf("  rank %d  %-32s %9.4f ms  %7.1f TFLOP/s\n", at.first, kernel.name.c_str(), time,
                kernel.flops / time * 1e-9);
  }
}

/// Times softmax attention by both bodies, on one rank and on several.
void time_softmax(const LayerShape& share, int ranks) {
  for (const SoftmaxBody kernel : {SoftmaxBody::own, SoftmaxBody::cudnn}) {
    const Refusal lacking = kernel == SoftmaxBody::cudnn ? cudnn_library().lacking() : Refusal{};
    if (lacking) {
      std::printf("no blocks by cudnn: %s\n", lacking.reason().c_str());
      continue;
    }
    time_method("ring_attention_softmax", share, 1, kernel);
    time_method("ring_attention_softmax", share, ranks, kernel);
    time_method("ring_attention_zigzag", share, ranks, kernel);
  }
}

}  // namespace
}  // namespace baton

int main(int count, char** arguments) {
  const auto argument = [&](int i, std::int64_t otherwise) {
    return i < count ? std::strtoll(arguments[i], nullptr, 10) : otherwise;
  };
  baton::LayerShape share{argument(1, 16384),   argument(2, 16), argument(3, 128), argument(3, 128), 64,
                          baton::GateKind::none};
  const int ranks = static_cast<int>(argument(4, 2));
  return baton::run_device_bench("ring_device_bench", [&] {
    baton::time_softmax(share, ranks);
    baton::time_method("ring_attention", share, ranks);
    for (const auto gate : {baton::GateKind::vector, baton::GateKind::scalar}) {
      share.gate = gate;
      baton::time_method("ring_attention", share, ranks);
    }
  });
}
