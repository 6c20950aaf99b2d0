// SPDX-License-Identifier: Apache-2.0
// One thread of the kernel of two_shot_fused, and what it works on.
//
//   each thread, for each k that is its own:
//     store packet k of every slice of the own map into its owner's inbox  (not the last rank)
//   and then again for each k:
//     as owner: wait for packet k of the own slice of every rank before the last; in rank order,
//       store the prefix of each rank into its inbox, and fold
//     wait for packet k of every slice of the own prefix, and keep it     (the first rank has none)
//
// All contributions leave before the first wait, since an inbox has room for all of them: a port
// is not idle while something can pass it. Packets to all owners alternate, so that no port is
// crowded. The prefix's packets k are looked for after the thread has handed out its next ones,
// since they are under way for a while. The decays of a slice travel in packets of their own.
//
// Like round.cuh this compiles for the host too, where a test runs it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/executors/peer/device/round.cuh"
#include "collectives/executors/peer/device/slices.hpp"

namespace baton {

__device__ inline const SliceOwner& owner_here(const Slices& s) { return s.owners[s.place]; }

/// The work on packet k of all slices. `aligned` promises whole packets with one decay each;
/// `batch` other ranks are handled at a time, whose loads are under way together.
template <class Machine, class Format, bool aligned, int batch>
class SlicePacket {
 public:
  static constexpr int E = Format::elements;
  using Pack = Elements<E>;

  __device__ SlicePacket(const Slices& slices, PeerThread<Machine>& thread) : s_(slices), thread_(thread) {}

  /// Packet k of the states of `batch` owners' slices, and of their decays.
  struct Contribution {
    Pack states[batch];
    Pack decays[batch];
  };

  /// Loads packet k of this rank's map for `batch` owners, from the owner `distance` places behind
  /// on.
  __device__ static Contribution load(const Slices& s, unsigned k, int distance) {
    Contribution loaded{};
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (distance + i >= s.ranks) continue;
      const SliceOwner& owner = s.owners[behind(s, distance + i)];
      if (k * E < owner.count) loaded.states[i] = elements(s.state + owner.first, k, owner.count, aligned);
      if (s.place > 0 && k * E < owner.rows)
        loaded.decays[i] = elements(s.decay + owner.first_row, k, owner.rows, false);
    }
    return loaded;
  }

  /// Stores a loaded contribution into the inboxes of its owners.
  __device__ void contribute(const Contribution& loaded, unsigned k, int distance) const {
    if (thread_.gave_up()) return;
#pragma unroll
    for (int i = 0; i < batch; ++i) {
      if (distance + i >= s_.ranks) continue;
      const SliceOwner& owner = s_.owners[behind(s_, distance + i)];
      if (s_.place > 0 && k * E < owner.rows) send(decay_slot(owner, s_.place, k), loaded.decays[i]);
      if (k * E < owner.count) send(state_slot(owner, s_.place, k), loaded.states[i]);
    }
  }

  /// Folds packet k of this rank's slice over all ranks, and gives every rank its prefix. `mine` is
  /// this rank's packet.
  __device__ void hand_out(const Pack& mine, unsigned k) {
    Pack prefix{};
    for (int first = 0; first < s_.ranks - 1; first += batch) {
      Elements<lanes> decays[batch];
      Packet states[batch];
      await_decays(decays, k, first);
      await_states(states, k, first);
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        const int rank = first + i;
        if (rank >= s_.ranks - 1) continue;
        if (rank > 0) give(prefix, k, rank);
        const Pack state = rank == s_.place ? mine : Format::unpack(states[i]);
        prefix = rank == 0 ? state : folded(decays[i], prefix, state);
      }
    }
    give(prefix, k, s_.ranks - 1);
    if (k >= s_.decay_packets) return;
    for (int rank = 1; rank < s_.ranks - 1; ++rank)
      if (rank != s_.place) empty_slot<Machine>(thread_.before(decay_slot(own(), rank, k)));
  }

  /// Waits for packet k of every slice of this rank's prefix, and stores it.
  __device__ void receive(unsigned k) {
    for (int first = 1; first < s_.ranks; first += batch) {
      Packet packets[batch];
      const auto owner = [&](int i) { return behind(s_, first + i < s_.ranks ? first + i : 1); };
      const auto at = [&](int i) { return prefix_slot(own(), owner(i), k); };
      const auto comes = [&](int i) { return first + i < s_.ranks && k * E < s_.owners[owner(i)].count; };
      thread_.await_packets(
          packets, comes, at, [&](int i) { return home(owner(i)); }, 0, k);
      if (thread_.gave_up()) return;
#pragma unroll
      for (int i = 0; i < batch; ++i) {
        if (!comes(i)) continue;
        keep(Format::unpack(packets[i]), s_.owners[owner(i)], k);
        empty_slot<Machine>(thread_.before(at(i)));
      }
    }
  }

  /// Loads packet k of this rank's slice of its own state.
  __device__ static Pack load_own(const Slices& s, unsigned k) {
    return elements(s.state + owner_here(s).first, k, owner_here(s).count, aligned);
  }

 private:
  static constexpr int lanes = aligned ? 1 : E;  // decays of a packet

  __device__ static int behind(const Slices& s, int distance) {
    const int place = s.place + distance;
    return place < s.ranks ? place : place - s.ranks;
  }

  __device__ void send(std::byte* slot, const Pack& pack) const {
    Machine::store_packet(thread_.now(slot), Format::pack(pack));
  }

  __device__ const SliceOwner& own() const { return owner_here(s_); }
  __device__ int home(int place) const { return s_.reversed ? s_.ranks - 1 - place : place; }

  // Slots of generation 0 in the inbox of `owner`, area by area.
  __device__ std::byte* slot(const SliceOwner& owner, std::size_t number) const {
    return owner.inbox + number * packet_bytes;
  }
  __device__ std::byte* state_slot(const SliceOwner& owner, int sender, unsigned k) const {
    return slot(owner, std::size_t{s_.packets} * sender + k);
  }
  __device__ std::byte* decay_slot(const SliceOwner& owner, int sender, unsigned k) const {
    return slot(owner, std::size_t{s_.packets} * s_.ranks + std::size_t{s_.decay_packets} * sender + k);
  }
  __device__ std::byte* prefix_slot(const SliceOwner& receiver, int owner, unsigned k) const {
    const std::size_t before = std::size_t{s_.packets + s_.decay_packets} * s_.ranks;
    return slot(receiver, before + std::size_t{s_.packets} * owner + k);
  }

  /// Loads packet k of `count` elements; zeros behind the last. `whole` promises that `from` is
  /// 16-byte aligned.
  __device__ static Pack elements(const float* from, unsigned k, unsigned count, bool whole) {
    return Machine::template load_elements<E>(from + k * E,
                                              Machine::min(static_cast<unsigned>(E), count - k * E), whole);
  }

  /// True if the contribution of `rank` arrives in a message.
  __device__ bool sends(int rank) const { return rank < s_.ranks - 1 && rank != s_.place; }

  __device__ void await_states(Packet (&states)[batch], unsigned k, int first) {
    const auto at = [&](int i) { return state_slot(own(), first + i, k); };
    const auto comes = [&](int i) { return sends(first + i); };
    thread_.await_packets(
        states, comes, at, [&](int i) { return home(first + i); }, 0, k);
#pragma unroll
    for (int i = 0; i < batch; ++i)
      if (comes(i) && !thread_.gave_up()) empty_slot<Machine>(thread_.before(at(i)));
  }

  /// Waits for the decays of packet k from `batch` ranks, `first` and on. This rank's decays come
  /// from memory; the first rank has none.
  __device__ void await_decays(Elements<lanes> (&decays)[batch], unsigned k, int first) {
#pragma unroll
    for (int lane = 0; lane < lanes; ++lane) {
      const unsigned row = Machine::min(k * E + lane, own().count - 1) / s_.row;  // of the own slice
      Packet packets[batch];
      const auto at = [&](int i) { return decay_slot(own(), first + i, row / E); };
      const auto comes = [&](int i) { return first + i > 0 && sends(first + i); };
      thread_.await_packets(
          packets, comes, at, [&](int i) { return home(first + i); }, 0, row / E);
#pragma unroll
      for (int i = 0; i < batch; ++i)
        decays[i].v[lane] = first + i == s_.place && s_.place > 0
                                ? Machine::load(s_.decay + own().first_row + row)
                                : element(Format::unpack(packets[i]), row % E);
    }
  }

  __device__ static float element(const Pack& pack, unsigned number) {
    float found = pack.v[0];
#pragma unroll
    for (int i = 1; i < E; ++i)
      if (number == static_cast<unsigned>(i)) found = pack.v[i];
    return found;
  }

  __device__ static Pack folded(const Elements<lanes>& decay, const Pack& prefix, const Pack& state) {
    Pack next;
#pragma unroll
    for (int i = 0; i < E; ++i) next.v[i] = Machine::fma(decay.v[aligned ? 0 : i], prefix.v[i], state.v[i]);
    return next;
  }

  /// Gives packet k of this rank's slice of `prefix` to `rank`, by a message or a store.
  __device__ void give(const Pack& prefix, unsigned k, int rank) {
    if (thread_.gave_up()) return;
    if (rank == s_.place)
      keep(prefix, own(), k);
    else
      send(prefix_slot(s_.owners[rank], s_.place, k), prefix);
  }

  __device__ void keep(const Pack& prefix, const SliceOwner& owner, unsigned k) const {
    Machine::template store_elements<E>(s_.into + owner.first + k * E, prefix,
                                        Machine::min(static_cast<unsigned>(E), owner.count - k * E), aligned);
  }

  const Slices& s_;
  PeerThread<Machine>& thread_;
};

/// Runs the work of one thread in one round.
template <class Machine, class Format, bool aligned, int batch>
__device__ void run_slices(const PeerContext& context, const Slices& slices, const KernelRole& role) {
  using Work = SlicePacket<Machine, Format, aligned, batch>;
  constexpr unsigned E = Format::elements;
  const unsigned threads = Machine::blocks() * Machine::threads();
  const unsigned mine = Machine::block() * Machine::threads() + Machine::thread();
  const bool contributes = slices.place + 1 < slices.ranks, receives = slices.place > 0;
  const unsigned packets = slices.packets, owned = (owner_here(slices).count + E - 1) / E;
  typename Work::Contribution loaded{};
  typename Work::Pack own{};
  // Loads that run while the round begins.
  if (contributes && mine < packets) loaded = Work::load(slices, mine, 1);
  if (contributes && mine < owned) own = Work::load_own(slices, mine);
  PeerThread<Machine> thread(context, enter_round<Machine>(context, role));
  Work work(slices, thread);
  for (unsigned k = mine; contributes && k < packets; k += threads)
    for (int distance = 1; distance < slices.ranks; distance += batch) {
      if (k != mine || distance > 1) loaded = Work::load(slices, k, distance);
      work.contribute(loaded, k, distance);
    }
  for (unsigned k = mine; k < packets + threads; k += threads) {
    if (k < owned) {
      if (contributes && k != mine) own = Work::load_own(slices, k);
      work.hand_out(own, k);
    }
    if (receives && k >= threads) work.receive(k - threads);
  }
}

}  // namespace baton
