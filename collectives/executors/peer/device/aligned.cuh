// SPDX-License-Identifier: Apache-2.0
// An aligned instruction as its loop has it: addresses in registers, and the operands of a packet,
// which are loaded while the packet before is awaited.
#pragma once

#include <cstddef>

#include "collectives/executors/peer/device/instruction.hpp"
#include "collectives/executors/peer/device/round.cuh"

namespace baton {

/// The properties of an aligned instruction that its loop is compiled for.
template <bool does_arrive, bool does_fold>
struct LoopForm {
  static constexpr bool arrives = does_arrive;
  static constexpr bool folds = does_fold;
};

/// An aligned instruction in registers.
template <class Machine, class Format, class F>
struct Aligned {
  static constexpr int E = Format::elements;
  using Pack = Elements<E>;
  static constexpr int receivers = F::arrives || F::folds ? 1 : PeerLimits::sends;
  struct Operands {
    Pack x;      // if it comes from memory
    Pack other;  // the later state of a fold
    float decay;
  };

  __device__ explicit Aligned(const PeerDeviceInstruction& in)
      : from(in.from),
        arrival(in.arrival),
        other(in.other),
        decay(in.decay),
        keep(in.keep[0]),
        row(in.row),
        before(in.before),
        step(in.step),
        peer(in.arrival_peer) {
#pragma unroll
    for (int i = 0; i < receivers; ++i) sends[i] = in.sends[i];
  }

  __device__ Operands load(unsigned packet, unsigned packets) const {
    Operands loaded{};
    if (packet >= packets) return loaded;
    if constexpr (!F::arrives) loaded.x = Machine::template load_elements<E>(from + packet * E, E, true);
    if constexpr (F::folds) {
      loaded.other = Machine::template load_elements<E>(other + packet * E, E, true);
      loaded.decay = Machine::load(decay + (before + packet * E) / row);
    }
    return loaded;
  }

  __device__ Pack value(const Pack& x, const Operands& operands) const {
    if constexpr (!F::folds) {
      return x;
    } else {
      Pack y;
#pragma unroll
      for (int i = 0; i < E; ++i) y.v[i] = Machine::fma(operands.decay, x.v[i], operands.other.v[i]);
      return y;
    }
  }

  const float* from;
  std::byte* arrival;
  const float* other;
  const float* decay;
  float* keep;
  unsigned row;
  unsigned before;
  int step;
  int peer;
  std::byte* sends[receivers];
};

}  // namespace baton
