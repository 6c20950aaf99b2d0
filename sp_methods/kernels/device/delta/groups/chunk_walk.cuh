// SPDX-License-Identifier: Apache-2.0
// The chunks of all heads of a call, dealt to blocks that each take several.
//
//   item n = chunk n / heads of head n mod heads; block b takes items b, b + blocks, ..
//
// So blocks that run at one time read tokens that lie together.
#pragma once

#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/kept_maps.hpp"

namespace baton {

/// One head's chunk: the number of the head among those of the call, and of the chunk.
struct HeadChunk {
  int head, chunk;
};

/// What the block does that starts `blocks` blocks after this one, where each takes one chunk. Its
/// chunk may be past the last.
__device__ inline HeadChunk chunk_ahead(int blocks) {
  const int heads = static_cast<int>(gridDim.x), item = static_cast<int>(blockIdx.x) + blocks;
  return {item % heads, static_cast<int>(blockIdx.y) + item / heads};
}

/// The chunks that this block takes.
struct ChunkWalk {
  int heads;   ///< Heads of the call.
  int chunks;  ///< Chunks of a head.

  explicit ChunkWalk(const Chunks& p)
      : heads(static_cast<int>(p.work.heads(p.shape))), chunks(static_cast<int>(device_chunks(p))) {}

  int items() const { return heads * chunks; }
  /// Number of this block's chunks.
  __device__ int count() const {
    const int rest = heads * chunks - static_cast<int>(blockIdx.x);
    return rest <= 0 ? 0 : (rest - 1) / static_cast<int>(gridDim.x) + 1;
  }
  __device__ HeadChunk at(int step) const {
    const int item = static_cast<int>(blockIdx.x) + step * static_cast<int>(gridDim.x);
    return {item % heads, item / heads};
  }
  /// The number of a chunk in tensors [heads of the call, chunks, ..].
  __device__ std::int64_t number(HeadChunk x) const {
    return static_cast<std::int64_t>(x.head) * chunks + x.chunk;
  }
};

}  // namespace baton
