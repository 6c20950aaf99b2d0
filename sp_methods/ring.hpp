// SPDX-License-Identifier: Apache-2.0
// What goes round the ring of ranks, and the small local steps that go with it.
//
//   hop:   send what is held to the next rank, receive what the rank before held, and hold that
//
// Two slots take turns: while one arrives, the other is still computed on. What is one slot is one message.
// Cost: two slots of memory; a hop is as many elements as a slot has.
// Source: arXiv 2310.01889 (Ring Attention).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "sp_methods/sp_method.hpp"

namespace baton {

/// A run of elements of every rank on its way round the ring.
class Ring {
 public:
  using Source = std::source_location;

  Ring(Schedule& schedule, std::string name, std::int64_t count, Dtype dtype = Dtype::f32)
      : schedule_(schedule),
        count_(count),
        slots_(schedule.scratch(std::move(name), schedule.ranks() > 1 ? 2 * count : count, dtype)) {}

  /// What this rank holds now; after i hops what left the rank i places before.
  Slice held() const { return slots_.part(turn_ * count_, count_); }

  /// One hop. A ring of one rank has none.
  void hop(Source source = Source::current()) {
    const int ranks = schedule_.ranks(), rank = schedule_.rank();
    if (ranks == 1) return;
    const Slice leaves = held();
    turn_ = 1 - turn_;
    schedule_.send((rank + 1) % ranks, leaves, source);
    schedule_.recv(held(), (rank + ranks - 1) % ranks, source);
  }

 private:
  Schedule& schedule_;
  std::int64_t count_;
  Slice slots_;
  std::int64_t turn_ = 0;
};

/// Keys and values, or their gradients.
struct RingBlock {
  Slice k;      ///< [tokens, heads, d_k]
  Slice v;      ///< [tokens, heads, d_v]
  Slice decay;  ///< [heads, d_k], or empty
};

/// The block that lies in a slot: keys, values, and behind them the decay.
inline RingBlock block_in(const Slice& slot, const GlaShape& share) {
  const std::int64_t keys = share.tokens * share.heads * share.d_k;
  const std::int64_t values = share.tokens * share.heads * share.d_v;
  return {slot.part(0, keys), slot.part(keys, values), slot.part(keys + values, slot.count - keys - values)};
}

/// Elements of one rank's keys and values.
inline std::int64_t key_value_elements(const GlaShape& share) {
  return share.tokens * share.heads * (share.d_k + share.d_v);
}

/// In mode `exposed`, what follows waits for what was recorded so far.
inline void wait_if_exposed(Schedule& schedule, const Layer& layer) {
  if (layer.mode == Mode::exposed) schedule.fence();
}

/// Sets every element of an f32 slice.
inline void fill(Schedule& schedule, const Slice& into, float value,
                 Ring::Source source = Ring::Source::current()) {
  if (into.empty()) return;
  const auto body = [value](const HostOperands& x) { std::ranges::fill(x.writes[0], value); };
  schedule.compute({"fill", body, 0.0, static_cast<double>(into.bytes()),
                    std::vector<std::int64_t>{std::bit_cast<std::int32_t>(value)}},
                   {into}, {}, source);
}

/// Adds an f32 slice to another slice of as many elements.
inline void add(Schedule& schedule, const Slice& into, const Slice& from,
                Ring::Source source = Ring::Source::current()) {
  const auto body = [](const HostOperands& x) {
    std::ranges::transform(x.writes[0], x.reads[0], x.writes[0].begin(), std::plus<>());
  };
  const auto bytes = static_cast<double>(2 * into.bytes() + from.bytes());
  schedule.compute({"add", body, static_cast<double>(into.count), bytes,
                    std::vector<std::int64_t>{static_cast<std::int64_t>(into.dtype)}},
                   {into}, {from, into}, source);
}

/// Where a tensor is summed up in f32: in itself, or in scratch called `name` where it is narrower.
inline Slice sums_of(Schedule& schedule, const Slice& tensor, std::string name) {
  return tensor.dtype == Dtype::f32 ? tensor : schedule.scratch(std::move(name), tensor.count);
}

/// Sets a tensor to what was summed up in f32.
inline void set(Schedule& schedule, const Slice& into, const Slice& sums,
                Ring::Source source = Ring::Source::current()) {
  if (into == sums) return;
  if (into.dtype == sums.dtype) return schedule.copy(into, sums, source);
  const auto body = [](const HostOperands& x) { std::ranges::copy(x.reads[0], x.writes[0].begin()); };
  schedule.compute({"narrow", body, 0.0, static_cast<double>(into.bytes() + sums.bytes()),
                    std::vector<std::int64_t>{static_cast<std::int64_t>(into.dtype)}},
                   {into}, {sums}, source);
}

/// What a ring method's kernels were made with, for bodies on other machines: the share's sizes, the tensors' type.
inline std::vector<std::int64_t> ring_parameters(const Layer& layer) {
  const GlaShape& share = layer.share;
  return {share.tokens,
          share.heads,
          share.d_k,
          share.d_v,
          static_cast<std::int64_t>(share.gate),
          static_cast<std::int64_t>(layer.dtype)};
}

/// Why no ring method can run this layer, or an empty string.
inline Refusal unsupported_in_a_ring(const Layer& layer) {
  if (Refusal reason = layer.kernels.unsupported(layer.dtype, {layer.share.d_k, layer.share.d_v}))
    return reason;
  if (layer.mode == Mode::compute_only) return "its work is on what the exchange brings";
  if (layer.groups != 1) return "its exchange is not cut into head groups";
  return {};
}

}  // namespace baton
