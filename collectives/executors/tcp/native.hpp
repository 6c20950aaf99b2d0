// SPDX-License-Identifier: Apache-2.0
// Natives of executor `tcp`: exchanges written by hand over its connections, or that bring a
// library of their own. A native is the only step of its schedule, so that its messages can be
// numbered in the order of its calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/tcp/mesh.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton::tcp {

/// The arguments of a native: its operands, its place in scan order, and messages to other places.
class Call {
 public:
  Call(Mesh& mesh, const NativeCall& native, const HostOperands& given, int own_rank, int size)
      : operands(given),
        rank(native.reversed ? size - 1 - own_rank : own_rank),
        ranks(size),
        blocks(native.blocks),
        row(native.row),
        form(native.form),
        mesh_(mesh),
        is_reversed_(native.reversed),
        sent_(size),
        received_(size) {}

  const HostOperands& operands;
  const int rank;
  const int ranks;
  const int blocks;
  /// Number of elements of a row of the scanned maps; 0 if the schedule does not tell.
  const std::int64_t row;
  /// Form of the scanned maps, if the schedule tells.
  const MapForm form;

  /// The home rank of a place in scan order.
  int home(int place) const { return is_reversed_ ? ranks - 1 - place : place; }

  /// Sends to another rank, and returns when the memory may be written again. Message n from a to b
  /// is received by the n-th `receive` of b from a, which must be of the same size.
  void send(std::span<const float> from, int to) {
    mesh_.send(0, std::as_bytes(from), home(to), sent_.at(to)++);
    await();
  }
  void receive(std::span<float> into, int from) {
    mesh_.receive(0, std::as_writable_bytes(into), home(from), received_.at(from)++);
    await();
  }

 private:
  void await() {
    std::vector<int> done;
    mesh_.finish(done, true);
  }

  Mesh& mesh_;
  bool is_reversed_;
  std::vector<int> sent_;  // messages to each rank, and from it
  std::vector<int> received_;
};

using Native = std::function<void(Call&)>;

/// The natives that are built in or were added, by name.
inline Registry<Native>& natives() {
  static Registry<Native> all("native of tcp");
  return all;
}

}  // namespace baton::tcp
