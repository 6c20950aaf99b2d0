// SPDX-License-Identifier: Apache-2.0
// The common start of a round on all GPUs.
//
//   a kernel of one block a GPU, before the round in its stream:
//     wait until the host has enqueued the round           (or 20 ms: a queue can be too short for it)
//     tell all GPUs that this one is here; wait for all    (flags in peer memory)
//     do so once more: the first time the last comer leaves one flag's way before the others, the second time
//     nobody does
//
// Cost: two flag ways. Where the GPUs do not reach one another, only the wait for the host is left, and the start is as
// even as the ranks' last barrier.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/cuda/shared_buffer.cuh"

namespace baton {

class StartLine {
 public:
  /// Collective. `ranks` must outlive it.
  explicit StartLine(const CudaRanks& ranks);
  ~StartLine();
  StartLine(const StartLine&) = delete;
  StartLine& operator=(const StartLine&) = delete;

  /// True where the GPUs tell one another.
  bool is_on_device() const { return flags_ != nullptr; }

  /// What is enqueued in `stream` after this starts on all ranks together, when each has called `release`. Every rank
  /// calls it equally often.
  void enqueue(cudaStream_t stream);
  /// The host has enqueued its round.
  void release();
  /// For which rank this one waited in vain, in words, or an empty string. After the stream has ended.
  std::string fault() const;

 private:
  /// Host memory that the GPU reads and writes.
  struct Word {
    unsigned go = 0;  // the last round that the host released
    int missing = 0;  // 1 + the rank that did not come
  };

  const CudaRanks& ranks_;
  std::unique_ptr<SharedBuffer> flags_;
  Word* word_ = nullptr;
  unsigned round_ = 0;
};

}  // namespace baton
