// SPDX-License-Identifier: Apache-2.0
// An instruction with matrices, by the threads of one block.
//
//   for each of the block's tiles of rows:
//     load the matrix of the head, unless it is there; wait for the packets of x; keep and send x
//     earlier operand and later operand into shared memory; barrier
//     later operand += rows times the matrix; barrier; send and store it
//
// A block takes neighbouring tiles, the same on all ranks, so a tile goes from rank to rank while
// others of its head still arrive. It compiles for the host too, as interpreter.cuh does.
#pragma once

#include <cstdint>

#include "collectives/executors/cuda/matrices.hpp"
#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/executors/peer/device/round.cuh"

namespace baton {

/// Tiles for tensor cores if they have rows of `width`, otherwise plain ones.
template <class Machine, class Format, unsigned width>
class ProductTiles {
 public:
  __device__ ProductTiles(const PeerDeviceInstruction& in, const PeerThread<Machine>& thread)
      : in_(in), thread_(thread), by_{in.decay, in.row, in.share, in.before, in.transposed}, products_(by_) {}

  /// `arrived` waits for a packet of x.
  template <class Arrived>
  __device__ void run(const Arrived& arrived) {
    const unsigned tile = in_.tile, tiles = (in_.count + tile - 1) / tile;
    const auto edge = [&](unsigned block) {
      return static_cast<unsigned>(std::uint64_t{tiles} * block / Machine::blocks()) * tile;
    };
    const unsigned end = Machine::min(edge(Machine::block() + 1), in_.count);
    Machine::sync();  // another product may have had another shape of tiles
    for (unsigned at = edge(Machine::block()); at < end; at += tile) {
      const unsigned count = Machine::min(tile, end - at), row = at / in_.row;
      products_.prepare(row);
      gather(at, count, arrived);
      Machine::sync();
      products_.multiply(Machine::tile(results), Machine::tile(high_parts), Machine::tile(low_parts),
                         Machine::tile(room), row, count / in_.row);
      Machine::sync();
      scatter(at, count);
    }
  }

 private:
  static constexpr int E = Format::elements;
  using Pack = Elements<E>;
  enum Tile { high_parts, results, room, low_parts };

  template <class Arrived>
  __device__ void gather(unsigned at, unsigned count, const Arrived& arrived) {
    for (unsigned e = Machine::thread() * E; e < count; e += Machine::threads() * E) {
      const unsigned n = Machine::min(static_cast<unsigned>(E), count - e), packet = (at + e) / E;
      Pack other{};
      if (in_.other != nullptr) other = Machine::template load_elements<E>(in_.other + at + e, n, in_.whole);
      const Pack x = in_.arrival != nullptr
                         ? arrived(packet)
                         : Machine::template load_elements<E>(in_.from + at + e, n, in_.whole);
      put_rows(e, n, in_.x_is_later ? other : x);
      put(results, e, n, in_.x_is_later ? x : other);
      if (thread_.gave_up()) continue;
      send(packet, x, false);
      for (int i = 0; i < in_.kept; ++i)
        Machine::template store_elements<E>(in_.keep[i] + at + e, x, n, in_.whole);
    }
  }

  __device__ void scatter(unsigned at, unsigned count) const {
    for (unsigned e = Machine::thread() * E; e < count && !thread_.gave_up(); e += Machine::threads() * E) {
      const unsigned n = Machine::min(static_cast<unsigned>(E), count - e);
      const Pack y = Machine::template load_shared<E>(Machine::tile(results) + place(e), n, width > 0);
      send((at + e) / E, y, true);
      for (int i = 0; i < in_.resulting; ++i)
        Machine::template store_elements<E>(in_.results[i] + at + e, y, n, in_.whole);
    }
  }

  /// Sends a packet of x, or of y if it is the `result`, to those who get it.
  __device__ void send(unsigned packet, const Pack& pack, bool result) const {
    for (int i = 0; i < in_.sent; ++i)
      if (static_cast<bool>(in_.sends_y >> i & 1) == result)
        Machine::store_packet(thread_.now(in_.sends[i] + std::size_t{packet} * packet_bytes),
                              Format::pack(pack));
  }

  /// The place of element `e` in a tile. Rows of plain tiles lie side by side, and a packet there
  /// may be short or of two rows.
  __device__ static unsigned place(unsigned e) {
    if constexpr (width == 0)
      return e;
    else
      return e / width * Machine::template Products<width>::stride + e % width;
  }

  __device__ static void put(Tile tile, unsigned e, unsigned n, const Pack& x) {
    Machine::template store_elements<E>(Machine::tile(tile) + place(e), x, n, width > 0);
  }

  __device__ static void put_rows(unsigned e, unsigned n, const Pack& x) {
    if constexpr (width == 0) {
      put(high_parts, e, n, x);
    } else {
      Pack high, low;
#pragma unroll
      for (int i = 0; i < E; ++i) high.v[i] = Machine::split(x.v[i], low.v[i]);
      put(high_parts, e, n, high);
      put(low_parts, e, n, low);
    }
  }

  const PeerDeviceInstruction& in_;
  const PeerThread<Machine>& thread_;
  const Matrices by_;
  typename Machine::template Products<width> products_;
};

}  // namespace baton
