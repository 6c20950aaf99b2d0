// SPDX-License-Identifier: Apache-2.0
// Where the chunks of one head lie in the shared memory of a block that sweeps over them: a ring of
// slots, and the barriers between the groups that fill and read it.
//
//   slot:   k', k", N~, values (v or d_o);  with queries q' and A besides;  numbers
//   a gate a head or none:   k' = k" = k, q' = q as they are; e^b, e^{all-b} of every token
//   a gate a channel, and a low-rank rule:   the parts of a record (chunk_record.cuh), in its order
#pragma once

#include "sp_methods/kernels/device/delta/groups/chunk_record.cuh"

namespace baton {

/// The tensors that a sweep in segments reads; those that are null are not copied.
struct ChunkTensors {
  const Bf16 *q = nullptr, *k = nullptr;
  const Bf16* values = nullptr;  ///< v or d_o
  const Bf16 *g = nullptr, *beta = nullptr;
  /// N~ of all chunks, [heads of the call, chunks] tiles [64, 64], or their records.
  const char* chunks = nullptr;
  ChunkRule rule = ChunkRule::ungated;
};

/// What a sweep has in its slots beside k', k" and N~.
enum class SlotParts {
  values,          ///< v, and of a low-rank rule the keys that it writes along
  queries,         ///< q', A and room for a result, or d_o
  queries_values,  ///< both
};

/// A ring of chunks in shared memory for `groups_` groups that multiply; values have `width`
/// columns.
template <int d_k, int width, ChunkRule rule_, SlotParts parts, int groups_ = width / 64>
struct ChunkSlots {
  using Keys = PanelTile<d_k>;
  using Values = PanelTile<width>;
  using Pairs = PanelTile<device_chunk>;
  using Record = ChunkRecord<d_k, rule_>;
  static constexpr ChunkRule rule = rule_;
  static constexpr bool has_queries = parts != SlotParts::values, is_low_rank = rule == ChunkRule::low_rank,
                        by_channel = is_low_rank || rule == ChunkRule::gate_a_channel,
                        by_head = rule == ChunkRule::gate_a_head,
                        has_keys = is_low_rank && parts != SlotParts::queries;
  static constexpr int key_width = d_k, value_width = width;
  static constexpr int slots = is_low_rank || (by_channel && has_queries) ? 2 : 3;
  static constexpr int groups = groups_, threads = (groups + 1) * group_threads;
  // Offsets are those of a record from its first part here on.
  static constexpr int q_at = 0, a_at = Keys::bytes, in_at = has_queries ? a_at + Pairs::bytes : 0,
                       out_at = in_at + (by_channel ? Keys::bytes : 0), n_at = out_at + Keys::bytes,
                       keys_at = n_at + Pairs::bytes;
  static constexpr int read_values_at = keys_at + Keys::bytes,
                       query_values_at = read_values_at + Pairs::bytes;
  static constexpr int v_at = !has_keys ? keys_at : query_values_at + (has_queries ? Pairs::bytes : 0);
  static constexpr int slot_bytes = v_at + Values::bytes;
  static constexpr int strengths = is_low_rank ? 0 : device_chunk;  // of a slot
  static constexpr int floats = strengths + (by_channel ? 3 * d_k : 3 * device_chunk);
  static constexpr int shared_bytes = slots * (slot_bytes + 4 * floats);
  static_assert(shared_bytes <= 227 * 1024);

  __device__ static char* slot(int step) { return shared_space() + step % slots * slot_bytes; }
  __device__ static Keys keys_in(int step) { return {slot(step) + in_at}; }
  __device__ static Keys keys_out(int step) { return {slot(step) + out_at}; }
  __device__ static Pairs inverse(int step) { return {slot(step) + n_at}; }
  __device__ static Keys q(int step) { return {slot(step) + q_at}; }
  __device__ static Pairs scores(int step) { return {slot(step) + a_at}; }
  __device__ static Values values(int step) { return {slot(step) + v_at}; }
  // Of a low-rank rule: the keys that values are written along, and the scores of reads and of
  // queries with them.
  __device__ static Keys value_keys(int step) { return {slot(step) + keys_at}; }
  __device__ static Pairs read_values(int step) { return {slot(step) + read_values_at}; }
  __device__ static Pairs query_values(int step) { return {slot(step) + query_values_at}; }

  /// The strengths of the tokens; a low-rank rule has none.
  __device__ static float* beta(int step) {
    return reinterpret_cast<float*>(shared_space() + slots * slot_bytes) + step % slots * floats;
  }
  // Of a gate a channel, [d_k] each.
  __device__ static float* to(int step) { return beta(step) + strengths; }
  __device__ static float* through(int step) { return to(step) + d_k; }
  __device__ static float* from(int step) { return through(step) + d_k; }
  // Of a gate a head, [64] each.
  /// The decays e^b from the chunk's start to behind each token's gate.
  __device__ static float* head(int step) { return beta(step) + device_chunk; }
  /// The decays e^{all - b} from each token to the chunk's end.
  __device__ static float* tail(int step) { return head(step) + device_chunk; }
  /// The log decays b.
  __device__ static float* sums(int step) { return tail(step) + device_chunk; }

  __device__ static GroupBarrier feeding() { return {1, group_threads}; }
  __device__ static GroupBarrier full(int step) { return {2 + step % slots, threads}; }
  __device__ static GroupBarrier empty(int step) { return {2 + slots + step % slots, threads}; }
  /// The barrier of one group that multiplies.
  __device__ static GroupBarrier own() { return {2 + 2 * slots + group(), group_threads}; }
};

/// The chunks that a block takes one after the other.
struct ChunkOrder {
  int first, count, turn;  ///< Chunk of step i: first + i turn, turn 1 or -1.

  __device__ int chunk(int step) const { return first + turn * step; }
  /// The chunks of the block's segment from left to right.
  __device__ static ChunkOrder forward(const DeviceLayer& layer) {
    const int first = layer.first_chunk(DeviceLayer::segment());
    return {first, layer.first_chunk(DeviceLayer::segment() + 1) - first, 1};
  }
  __device__ static ChunkOrder backward(const DeviceLayer& layer) {
    const ChunkOrder there = forward(layer);
    return {there.first + there.count - 1, there.count, -1};
  }
};

}  // namespace baton
