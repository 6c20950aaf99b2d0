// SPDX-License-Identifier: Apache-2.0
// Operations on two streams: those between ranks in the caller's, local kernels in one beside it, events where one waits
// for the other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "collectives/executors/cuda/stopwatch.cuh"

namespace baton {

/// One operation, as the order of enqueuing sees it.
struct StreamedOperation {
  /// On the stream beside.
  bool computes = false;
  /// An earlier operation of the other stream, -1 for none.
  int waits_for = -1;
};

class TwoStreams {
 public:
  /// Enqueues operation number `operation` into a stream.
  using Enqueue = std::function<void(std::size_t operation, cudaStream_t stream)>;

  explicit TwoStreams(std::vector<StreamedOperation> operations);
  ~TwoStreams();
  TwoStreams(const TwoStreams&) = delete;
  TwoStreams& operator=(const TwoStreams&) = delete;

  /// Enqueues all operations in order, with a fork to the stream beside and a join; may be captured. Where there are
  /// `marks`, with one before and behind each operation.
  void enqueue(cudaStream_t stream, const Enqueue& enqueue_one, Stopwatch* marks) const;

  /// When an operation of a marked round began and ended, once the round has, in seconds since its start.
  static double start_seconds(const Stopwatch& marks, std::size_t operation);
  static double finish_seconds(const Stopwatch& marks, std::size_t operation);

 private:
  std::vector<StreamedOperation> operations_;
  std::vector<cudaEvent_t> done_;  // of each operation that another waits for
  cudaStream_t beside_ = nullptr;  // only where something computes
  cudaEvent_t forked_ = nullptr;
  cudaEvent_t joined_ = nullptr;
};

}  // namespace baton
