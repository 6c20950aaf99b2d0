// SPDX-License-Identifier: Apache-2.0
// One thread of the kernel that runs a rank's instructions.
//
//   for each instruction, for each of the thread's packets:
//     load what is in memory; take the first look at the inbox slot
//     wait for the packet, empty the slot of the round before; fold; store; send
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/executors/cuda/matrices.hpp"
#include "collectives/executors/peer/device/aligned.cuh"
#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/executors/peer/device/round.cuh"

namespace baton {

/// One thread that runs the instructions of a rank. Only a thread that `multiplies` runs products.
template <class Machine, class Format, bool multiplies = false>
class Interpreter {
 public:
  __device__ Interpreter(const PeerContext& context, const KernelRole& role)
      : context_(context),
        role_(role),
        thread_(context),
        threads_(Machine::blocks() * Machine::threads()),
        number_(Machine::block() * Machine::threads() + Machine::thread()) {}

  /// Runs one instruction. The first instruction of a kernel `opens` the round, which this thread
  /// then enters.
  __device__ void run(const PeerDeviceInstruction& in, bool opens) {
    if (in.barrier) thread_.meet(in.step);
    if constexpr (multiplies)
      if (in.form == PeerForm::product) return run_product(in, opens);
    switch (in.form) {
      case PeerForm::product: return;
      case PeerForm::aligned_load: return run_aligned<LoopForm<false, false>>(in, opens);
      case PeerForm::aligned_load_fold: return run_aligned<LoopForm<false, true>>(in, opens);
      case PeerForm::aligned_arrival: return run_aligned<LoopForm<true, false>>(in, opens);
      case PeerForm::aligned_arrival_fold: return run_aligned<LoopForm<true, true>>(in, opens);
      case PeerForm::any: return run_any(in, opens);
    }
  }

  __device__ void enter() { thread_.enter(enter_round<Machine>(context_, role_)); }

 private:
  static constexpr int E = Format::elements;
  using Pack = Elements<E>;

  __device__ unsigned first_packet(const PeerDeviceInstruction& in) const {
    return number_ >= in.column ? number_ - in.column : number_ + threads_ - in.column;
  }

  __device__ static std::byte* slot(std::byte* first, unsigned packet) {
    return first + std::size_t{packet} * packet_bytes;
  }

  /// Runs an aligned instruction. The operands of the next packet are loaded while this one is
  /// awaited.
  template <class F>
  __device__ void run_aligned(const PeerDeviceInstruction& in, bool opens) {
    const Aligned<Machine, Format, F> work(in);
    const unsigned packets = in.packets;
    unsigned packet = first_packet(in);
    auto ahead = work.load(packet, packets);
    if (opens) enter();
    for (; packet < packets; packet += threads_) {
      const auto here = ahead;
      ahead = work.load(packet + threads_, packets);
      Pack x = here.x;
      if constexpr (F::arrives) x = await(work.arrival, packet, work.step, work.peer, true);
      if (thread_.gave_up()) continue;
      const Packet sent = Format::pack(work.value(x, here));
#pragma unroll
      for (int i = 0; i < Aligned<Machine, Format, F>::receivers; ++i)
        if (work.sends[i] != nullptr) Machine::store_packet(thread_.now(slot(work.sends[i], packet)), sent);
      if (work.keep != nullptr) Machine::template store_elements<E>(work.keep + packet * E, x, E, true);
    }
  }

  __device__ void run_any(const PeerDeviceInstruction& in, bool opens) {
    if (opens) enter();
    for (unsigned packet = first_packet(in); packet < in.packets; packet += threads_) {
      const unsigned at = packet * E, n = Machine::min(static_cast<unsigned>(E), in.count - at);
      const Pack x = in.arrival != nullptr ? await(in.arrival, packet, in.step, in.arrival_peer, true)
                                           : Machine::template load_elements<E>(in.from + at, n, in.whole);
      const Pack y = in.folds ? fold(in, at, n, x) : x;
      if (thread_.gave_up()) continue;
      for (int i = 0; i < in.sent; ++i)
        Machine::store_packet(thread_.now(slot(in.sends[i], packet)),
                              Format::pack(in.sends_y >> i & 1 ? y : x));
      for (int i = 0; i < in.kept; ++i) Machine::template store_elements<E>(in.keep[i] + at, x, n, in.whole);
      for (int i = 0; i < in.resulting; ++i)
        Machine::template store_elements<E>(in.results[i] + at, y, n, in.whole);
    }
  }

  __device__ void run_product(const PeerDeviceInstruction& in, bool opens) {
    if (opens) enter();
    const Matrices by{in.decay, in.row, in.share, in.before, in.transposed};
    switch (in.width) {
      case 128: multiply_tiles<128>(in, by); break;
      case 64: multiply_tiles<64>(in, by); break;
      default: multiply_tiles<0>(in, by);
    }
  }

  /// Multiplies this block's tiles, neighbours that are the same on all ranks. So a tile goes from
  /// rank to rank while others of its head still arrive.
  template <unsigned width>
  __device__ void multiply_tiles(const PeerDeviceInstruction& in, const Matrices& by) {
    typename Machine::template Products<width> products(by);
    const unsigned tile = in.tile, tiles = (in.count + tile - 1) / tile;
    const auto edge = [&](unsigned block) {
      return static_cast<unsigned>(std::uint64_t{tiles} * block / Machine::blocks()) * tile;
    };
    const unsigned end = Machine::min(edge(Machine::block() + 1), in.count);
    Machine::sync();  // another product may have had another shape of tiles
    for (unsigned at = edge(Machine::block()); at < end; at += tile) {
      const unsigned count = Machine::min(tile, end - at);
      products.prepare(at / in.row);
      gather_tile<width>(in, at, count);
      Machine::sync();
      products.multiply(Machine::tile(1), Machine::tile(0), Machine::tile(2), at / in.row, count / in.row);
      Machine::sync();
      scatter_tile<width>(in, at, count);
    }
  }

  /// Loads the earlier operand of a tile into tile 0 and the later one into tile 1, to which the
  /// products are added. Sends and stores x.
  template <unsigned width>
  __device__ void gather_tile(const PeerDeviceInstruction& in, unsigned at, unsigned count) {
    for (unsigned e = Machine::thread() * E; e < count; e += Machine::threads() * E) {
      const unsigned n = Machine::min(static_cast<unsigned>(E), count - e), packet = (at + e) / E;
      Pack other{};
      if (in.other != nullptr) other = Machine::template load_elements<E>(in.other + at + e, n, in.whole);
      const Pack x = in.arrival != nullptr
                         ? await(in.arrival, packet, in.step, in.arrival_peer, true)
                         : Machine::template load_elements<E>(in.from + at + e, n, in.whole);
      put<width>(Machine::tile(0), e, n, in.x_is_later ? other : x);
      put<width>(Machine::tile(1), e, n, in.x_is_later ? x : other);
      if (thread_.gave_up()) continue;
      for (int i = 0; i < in.sent; ++i)
        if ((in.sends_y >> i & 1) == 0)
          Machine::store_packet(thread_.now(slot(in.sends[i], packet)), Format::pack(x));
      for (int i = 0; i < in.kept; ++i)
        Machine::template store_elements<E>(in.keep[i] + at + e, x, n, in.whole);
    }
  }

  /// Sends and stores y, the results of a tile.
  template <unsigned width>
  __device__ void scatter_tile(const PeerDeviceInstruction& in, unsigned at, unsigned count) {
    for (unsigned e = Machine::thread() * E; e < count && !thread_.gave_up(); e += Machine::threads() * E) {
      const unsigned n = Machine::min(static_cast<unsigned>(E), count - e);
      const Pack y = Machine::template load_shared<E>(Machine::tile(1) + place<width>(e), n, width > 0);
      for (int i = 0; i < in.sent; ++i)
        if (in.sends_y >> i & 1)
          Machine::store_packet(thread_.now(slot(in.sends[i], (at + e) / E)), Format::pack(y));
      for (int i = 0; i < in.resulting; ++i)
        Machine::template store_elements<E>(in.results[i] + at + e, y, n, in.whole);
    }
  }

  /// The place of element `e` in a tile of shared memory. Rows of plain tiles lie side by side, and
  /// a packet there may be short or of two rows.
  template <unsigned width>
  __device__ static unsigned place(unsigned e) {
    if constexpr (width == 0)
      return e;
    else
      return e / width * Machine::template Products<width>::stride + e % width;
  }

  template <unsigned width>
  __device__ static void put(float* tile, unsigned e, unsigned n, const Pack& x) {
    Machine::template store_elements<E>(tile + place<width>(e), x, n, width > 0);
  }

  /// Waits for a packet of a message. `clears` empties its slot of the round before.
  __device__ Pack await(std::byte* inbox, unsigned packet, int step, int peer, bool clears) {
    std::byte* const at = slot(inbox, packet);
    const Packet arrived = thread_.await_packet(at, step, peer, packet);
    if (clears) empty_slot<Machine>(thread_.before(at));
    return Format::unpack(arrived);
  }

  __device__ Pack fold(const PeerDeviceInstruction& in, unsigned at, unsigned n, const Pack& x) {
    Pack other{};
    if (in.other != nullptr) other = Machine::template load_elements<E>(in.other + at, n, in.whole);
    const Pack decay = decays(in, at, n);
    Pack y;
#pragma unroll
    for (int i = 0; i < E; ++i)
      y.v[i] = in.x_is_later ? Machine::fma(decay.v[i], other.v[i], x.v[i])
                             : Machine::fma(decay.v[i], x.v[i], other.v[i]);
    return y;
  }

  __device__ Pack decays(const PeerDeviceInstruction& in, unsigned at, unsigned n) {
    Pack all{};
    const bool is_one = in.row % E == 0 && in.before % E == 0;
    const float first = decay(in, (in.before + at) / in.row);
#pragma unroll
    for (int i = 0; i < E; ++i)
      all.v[i] = is_one || i == 0 || static_cast<unsigned>(i) >= n ? first
                                                                   : decay(in, (in.before + at + i) / in.row);
    return all;
  }

  /// The decay of a row. Where it arrives in a message, every thread of the row waits for it.
  __device__ float decay(const PeerDeviceInstruction& in, unsigned row) {
    if (in.decay_arrival == nullptr) return Machine::load(in.decay + row);
    const unsigned element = in.first_decay + row;
    const Pack arrived = await(in.decay_arrival, element / E, in.step, in.decay_peer, in.clears_decays);
    float decay = arrived.v[0];
#pragma unroll
    for (int lane = 1; lane < E; ++lane)
      if (element % E == static_cast<unsigned>(lane)) decay = arrived.v[lane];
    return decay;
  }

  const PeerContext& context_;
  const KernelRole& role_;
  PeerThread<Machine> thread_;
  unsigned threads_;
  unsigned number_;
};

}  // namespace baton
