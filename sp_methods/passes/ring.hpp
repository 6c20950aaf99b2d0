// SPDX-License-Identifier: Apache-2.0
// The ring of ranks: blocks that circulate, and the elementwise steps of the ring methods.
//
//   hop:   send the held block to the next rank, receive that of the rank before, and hold it
//
// Two slots take turns: one receives while the other is still computed on. A slot is one message.
// Cost: two slots of memory; a hop sends as many elements as the block has.
// Source: arXiv 2310.01889 (Ring Attention).
#pragma once

#include <functional>
#include <source_location>
#include <string>
#include <utility>

#include "sp_methods/kernels/softmax.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// Blocks, one a rank, that circulate.
class Ring {
 public:
  using Source = std::source_location;
  /// Number of elements of the block of a rank.
  using Counts = std::function<std::int64_t(int rank)>;

  /// A ring of blocks of `count` elements each.
  Ring(Schedule& schedule, std::string name, std::int64_t count, Dtype dtype = Dtype::f32)
      : Ring(schedule, std::move(name), count, dtype, [count](int) { return count; }) {}
  /// A ring of blocks of at most `most` elements.
  Ring(Schedule& schedule, std::string name, std::int64_t most, Dtype dtype, Counts counts)
      : schedule_(schedule),
        most_(most),
        counts_(std::move(counts)),
        owner_(schedule.rank()),
        slots_(schedule.scratch(std::move(name), schedule.ranks() > 1 ? 2 * most : most, dtype)) {}

  /// Begins anew with the block of the rank so many places before this one, in the memory that is
  /// held.
  void begin(int places = 0) { owner_ = (schedule_.rank() + schedule_.ranks() - places) % schedule_.ranks(); }

  /// The block that this rank holds. After i hops it is the block of the rank i places before.
  Slice held() const { return slots_.part(turn_ * most_, counts_(owner_)); }

  /// Records a hop: the held block goes to the next rank, and the block of the rank before is held.
  /// A ring of one rank has no hops, and blocks without elements are no messages.
  void hop(Source source = Source::current()) {
    const int ranks = schedule_.ranks(), rank = schedule_.rank();
    if (ranks == 1) return;
    const Slice leaves = held();
    turn_ = 1 - turn_;
    owner_ = (owner_ + ranks - 1) % ranks;
    schedule_.send((rank + 1) % ranks, leaves, source);
    schedule_.recv(held(), (rank + ranks - 1) % ranks, source);
  }

 private:
  Schedule& schedule_;
  std::int64_t most_;
  Counts counts_;
  int owner_;  // the rank whose block is held
  Slice slots_;
  std::int64_t turn_ = 0;
};

/// Keys and values, or their gradients. Latent keys hold their values, and leave v empty.
struct RingBlock {
  Slice k;  ///< [tokens, key_heads, d_k]
  Slice v;  ///< [tokens, key_heads, value_width]
  /// Decay [heads, d_k] of f32, or empty. In a slot of bf16 each number takes two elements, since
  /// one message has one type.
  Slice decay;
};

/// The block that lies in a slot: keys, then values, then the decay.
inline RingBlock block_in(const Slice& slot, const LayerShape& share) {
  const std::int64_t keys = share.tokens * share.key_heads() * share.d_k;
  const std::int64_t values = share.tokens * share.key_heads() * share.value_width();
  return {slot.part(0, keys), slot.part(keys, values), slot.part(keys + values, slot.count - keys - values)};
}

/// Number of elements of a token's keys and values.
inline std::int64_t key_value_row(const LayerShape& share) {
  return share.key_heads() * (share.d_k + share.value_width());
}

/// Number of elements of one rank's keys and values.
inline std::int64_t key_value_elements(const LayerShape& share) {
  return share.tokens * key_value_row(share);
}

/// Makes steps recorded later wait for all recorded so far, in mode `exposed`.
inline void wait_if_exposed(Schedule& schedule, const Layer& layer) {
  if (layer.mode == Mode::exposed) schedule.fence();
}

/// Records the passes of a layer by a method's member functions `forward` and `backward`.
template <class Method>
void run_passes(Schedule& schedule, const Layer& layer, Method& method) {
  if (layer.pass != Pass::backward) method.forward();
  if (layer.pass == Pass::both) schedule.fence();  // the gradient of the output needs the output
  if (layer.pass != Pass::forward) method.backward();
}

/// Sets every element of an f32 slice to `value`. Empty slices need no step.
inline void fill(Schedule& schedule, const Slice& into, float value,
                 Ring::Source source = Ring::Source::current()) {
  if (!into.empty()) record<Fill>(schedule, {into.count, value}, {.into = into}, source);
}

/// Adds `from` to `into`, which has as many elements. Empty slices need no step.
inline void add(Schedule& schedule, const Slice& into, const Slice& from,
                Ring::Source source = Ring::Source::current()) {
  if (into.empty()) return;
  record<Add>(schedule, {into.count, into.dtype, from.dtype}, {.into = into, .from = from}, source);
}

/// The f32 memory in which `tensor` is summed: itself, or scratch called `name` if it is narrower.
inline Slice sums_of(Schedule& schedule, const Slice& tensor, std::string name) {
  return tensor.dtype == Dtype::f32 ? tensor : schedule.scratch(std::move(name), tensor.count);
}

/// Sets `into` to its f32 sums, rounded to its type.
inline void set(Schedule& schedule, const Slice& into, const Slice& sums,
                Ring::Source source = Ring::Source::current()) {
  if (into == sums || into.empty()) return;
  if (into.dtype == sums.dtype) return schedule.copy(into, sums, source);
  record<Narrow>(schedule, {into.count, into.dtype}, {.into = into, .from = sums}, source);
}

/// The reason why no ring method can run this layer; empty if one can.
inline Refusal unsupported_in_a_ring(const Layer& layer) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  if (layer.mode == Mode::compute_only) return "its work is on what the exchange brings";
  if (layer.groups != 1) return "its exchange is not cut into head groups";
  return {};
}

}  // namespace baton
