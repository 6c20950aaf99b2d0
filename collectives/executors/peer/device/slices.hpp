// SPDX-License-Identifier: Apache-2.0
// The kernel of two_shot_fused works on the slices that every rank owns and on the areas of an
// inbox. An inbox holds states by sender, decays by sender, and prefixes by owner.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "collectives/executors/peer/device/instruction.hpp"

namespace baton {

template <class Count>
constexpr Count packets_of(Count count, int elements) {
  return (count + static_cast<Count>(elements) - 1) / static_cast<Count>(elements);
}

/// A rank in scan order: its inbox of generation 0, and the rows and elements that it owns.
struct SliceOwner {
  std::byte* inbox;
  unsigned first_row;
  unsigned rows;
  unsigned first;
  unsigned count;
};

/// The arguments of the kernel of one rank.
struct Slices {
  /// The most ranks, for which a bit mask of receivers has room.
  static constexpr int most = 64;

  const float* decay;
  const float* state;
  float* into;
  unsigned row;
  /// Largest number of packets of a slice.
  unsigned packets;
  /// Largest number of packets of the decays of a slice.
  unsigned decay_packets;
  int ranks;
  int place;
  bool reversed;
  SliceOwner owners[most];
};

/// The slices of a state with rows of `row` elements for the rank at `place`, without its buffers.
/// first_row(at) is the first row of the rank at a place, or the number of rows for the place after
/// the last; inbox(at) is its inbox. One rank has nothing to do.
template <class FirstRow, class Inbox>
Slices cut_slices(unsigned row, int ranks, int place, bool reversed, int packet_elements,
                  const FirstRow& first_row, const Inbox& inbox) {
  Slices slices{};
  slices.row = row, slices.ranks = ranks, slices.place = place, slices.reversed = reversed;
  for (int at = 0; at < ranks && ranks > 1; ++at) {
    const auto first = static_cast<unsigned>(first_row(at));
    const unsigned owned = static_cast<unsigned>(first_row(at + 1)) - first;
    slices.owners[at] = {inbox(at), first, owned, first * row, owned * row};
    slices.packets = std::max(slices.packets, packets_of(owned * row, packet_elements));
    slices.decay_packets = std::max(slices.decay_packets, packets_of(owned, packet_elements));
  }
  return slices;
}

/// Number of packets of an inbox.
inline std::int64_t inbox_packets(const Slices& slices) {
  return std::int64_t{slices.ranks} * (2 * std::int64_t{slices.packets} + slices.decay_packets);
}

/// The ranks that the kernel of `slices` exchanges packets with.
inline KernelRole role_of(const Slices& slices) {
  const auto sends = [&](int from, int to) {
    const bool contributes = from + 1 < slices.ranks && slices.owners[to].count > 0;
    const bool hands_out = to > 0 && slices.owners[from].count > 0;
    return from != to && (contributes || hands_out);
  };
  const auto bit = [&](int at) { return bit_of(slices.reversed ? slices.ranks - 1 - at : at); };
  KernelRole role;
  for (int other = 0; other < slices.ranks; ++other) {
    if (sends(slices.place, other)) role.receivers |= bit(other);
    if (sends(other, slices.place)) role.senders |= bit(other);
  }
  return role;
}

}  // namespace baton
