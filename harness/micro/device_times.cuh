// SPDX-License-Identifier: Apache-2.0
// What the device benches share: times of work on one device, and the end of a bench. A time is the
// median of 50 runs after 5, between two events. Works that are compared take turns.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

#include "collectives/executors/cuda/error.cuh"

namespace baton {

using Timed = std::function<void(int)>;

/// Median seconds of every work(0), work(1), .. between two events; works take turns.
inline std::vector<double> median_seconds(const std::vector<Timed>& works) {
  constexpr int warm_up = 5, rounds = 50;
  cudaEvent_t start, stop;
  cuda(cudaEventCreate(&start));
  cuda(cudaEventCreate(&stop));
  std::vector<std::vector<float>> times(works.size());
  for (int i = 0; i < warm_up + rounds; ++i) {
    for (std::size_t w = 0; w < works.size(); ++w) {
      cuda(cudaEventRecord(start));
      works[w](i);
      cuda(cudaEventRecord(stop));
      cuda(cudaEventSynchronize(stop));
      float milliseconds = 0;
      cuda(cudaEventElapsedTime(&milliseconds, start, stop));
      if (i >= warm_up) times[w].push_back(milliseconds);
    }
  }
  cuda(cudaEventDestroy(start));
  cuda(cudaEventDestroy(stop));
  std::vector<double> medians;
  for (auto& of_work : times) {
    std::nth_element(of_work.begin(), of_work.begin() + rounds / 2, of_work.end());
    medians.push_back(of_work[rounds / 2] * 1e-3);
  }
  return medians;
}

inline void print_time(const char* what, double bytes, const std::function<void(int)>& work) {
  const double seconds = median_seconds({work}).front();
  std::printf("  %-34s %8.4f ms", what, seconds * 1e3);
  if (bytes > 0) std::printf("  %7.1f MB  %5.2f TB/s", bytes * 1e-6, bytes / seconds * 1e-12);
  std::printf("\n");
}

/// Runs `body` and returns the exit code of `bench`: an exception becomes one line and a 1.
inline int run_device_bench(const char* bench, const std::function<void()>& body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", bench, error.what());
    return 1;
  }
}

}  // namespace baton
