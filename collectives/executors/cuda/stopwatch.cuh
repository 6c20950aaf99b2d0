// SPDX-License-Identifier: Apache-2.0
// Seconds between two points of a stream.
#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "collectives/executors/cuda/error.cuh"

namespace baton {

/// CUDA events that are made once and used again.
class Stopwatch {
 public:
  Stopwatch() = default;
  ~Stopwatch() {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// Marks this point of the stream as number `mark`.
  void mark(int mark, cudaStream_t stream) {
    while (static_cast<int>(events_.size()) <= mark) cuda(cudaEventCreate(&events_.emplace_back()));
    cuda(cudaEventRecord(events_[mark], stream));
  }

  /// Waits until the stream has come to `mark`.
  void wait(int mark) const { cuda(cudaEventSynchronize(events_[mark])); }

  /// Whether the stream has come to `mark`.
  bool has_come(int mark) const {
    const cudaError_t code = cudaEventQuery(events_[mark]);
    if (code != cudaErrorNotReady) cuda(code);
    return code == cudaSuccess;
  }

  /// Seconds from one mark to another that has been waited for.
  double seconds(int from, int to) const {
    float milliseconds = 0;
    cuda(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]));
    return milliseconds * 1e-3;
  }

  /// Seconds of what `enqueue` puts into the stream; waits for it.
  template <class Enqueue>
  double time(cudaStream_t stream, const Enqueue& enqueue) {
    mark(0, stream);
    enqueue();
    mark(1, stream);
    wait(1);
    return seconds(0, 1);
  }

 private:
  std::vector<cudaEvent_t> events_;
};

}  // namespace baton
