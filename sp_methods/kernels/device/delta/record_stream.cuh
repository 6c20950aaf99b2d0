// SPDX-License-Identifier: Apache-2.0
// The chunks' records of one head on their way into the shared memory of the blocks that sweep over
// them: the blocks of a cluster read each record once together.
//
//   a ring of stages; block c of C copies part c of a record into the same stage of all C blocks
//   full [stage]    in every block: the bytes of a record have come
//   empty [stage]   in every block: all C blocks have read it
//
// A warp of its own copies, so that no block that multiplies waits for the others of its cluster.
// A block's own rows of U and the strengths come with the record.
// Needs compute capability 9.0 (PTX ISA, "cp.async.bulk", "mbarrier").
// Cost: the L2 gives each record once a cluster.
#pragma once

#include "sp_methods/kernels/device/delta/layer.cuh"

namespace baton {

/// A barrier (mbarrier) in shared memory.
struct SharedBarrier {
  std::uint32_t address;

  __device__ void start(int arrivals) const {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address), "r"(arrivals) : "memory");
  }
  __device__ void arrive_and_expect(int bytes) const {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address), "r"(bytes)
                 : "memory");
#endif
  }
  /// Arrives at the barrier at this address in block `block` of the cluster.
  __device__ void arrive_at(int block) const {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(address),
        "r"(block)
        : "memory");
#endif
  }
  /// Waits until the phase of parity `parity` is complete.
  __device__ void wait(int parity) const {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n.reg .pred done;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\nbra again;\nover:\n}" ::"r"(address),
        "r"(parity)
        : "memory");
#endif
  }
};

__device__ inline int blocks_of_cluster() {
  int count = 1;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
#endif
  return count;
}
__device__ inline int block_in_cluster() {
  int rank = 0;
#if __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
  return rank;
}
/// Synchronizes all threads of all blocks of the cluster.
__device__ inline void meet_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

/// Starts a copy of `bytes` bytes, a multiple of 16, into this block's shared memory.
__device__ inline void copy_bulk(std::uint32_t into, const void* from, int bytes, SharedBarrier full) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(into),
      "l"(from), "r"(bytes), "r"(full.address)
      : "memory");
#endif
}
/// Starts a copy of `bytes` bytes into the first `blocks` blocks of the cluster. Each block's
/// barrier counts the bytes.
__device__ inline void copy_bulk_to_all(std::uint32_t into, const void* from, int bytes, SharedBarrier full,
                                        int blocks) {
#if __CUDA_ARCH__ >= 900
  const auto mask = static_cast<std::uint16_t>((1 << blocks) - 1);
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1], %2, [%3], %4;" ::"r"(into),
      "l"(from), "r"(bytes), "r"(full.address), "h"(mask)
      : "memory");
#endif
}

/// A run of bytes in a step's record, or in a tensor that belongs to the step.
struct RecordRun {
  const char* from;
  int bytes;
};

/// A ring buffer of records. A stage has the bytes that all blocks share, then this block's own two
/// runs.
template <int stages, int shared_run, int own_run, int small_run>
struct RecordStream {
  static constexpr int stage_bytes = shared_run + own_run + small_run;
  /// Bytes of the ring buffer, a multiple of 256 so that tiles may follow.
  static constexpr int bytes = (stages * stage_bytes + 16 * stages + 255) / 256 * 256;

  __device__ static char* stage(int step) { return shared_space() + step % stages * stage_bytes; }
  __device__ static SharedBarrier full(int step) {
    return {shared_address(shared_space()) + stages * stage_bytes + step % stages * 8};
  }
  __device__ static SharedBarrier empty(int step) { return {full(step).address + 8 * stages}; }

  /// Initializes the barriers; all threads call it.
  __device__ static void start() {
    if (threadIdx.x == 0) {
      for (int i = 0; i < stages; ++i) full(i).start(1), empty(i).start(blocks_of_cluster());
#if __CUDA_ARCH__ >= 900
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
    __syncwarp();
    meet_cluster();
  }

  /// Copies the records of all steps; one thread calls it. run(step), own(step) and small(step) are
  /// the sources, where a run of 0 bytes is not copied.
  template <class Run, class Own, class Small>
  __device__ static void copy(int steps, Run run, Own own, Small small) {
    const int blocks = blocks_of_cluster(), part = shared_run / blocks;
    for (int step = 0; step < steps; ++step) {
      if (step >= stages) empty(step).wait((step / stages - 1) & 1);
      const RecordRun mine = own(step), last = small(step);
      full(step).arrive_and_expect(part * blocks + mine.bytes + last.bytes);
      const std::uint32_t into = shared_address(stage(step));
      const int at = block_in_cluster() * part;
      if (blocks > 1) {
        copy_bulk_to_all(into + at, run(step) + at, part, full(step), blocks);
      } else {
        copy_bulk(into, run(step), part, full(step));
      }
      if (mine.bytes > 0) copy_bulk(into + shared_run, mine.from, mine.bytes, full(step));
      if (last.bytes > 0) copy_bulk(into + shared_run + own_run, last.from, last.bytes, full(step));
    }
  }

  __device__ static void wait(int step) { full(step).wait((step / stages) & 1); }
  /// Signals that this block has read a step's stage; one warp calls it, behind a barrier.
  __device__ static void release(int step) {
    if (lane() < blocks_of_cluster()) empty(step).arrive_at(lane());
  }
};

}  // namespace baton
