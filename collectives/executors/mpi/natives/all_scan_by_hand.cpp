// SPDX-License-Identifier: Apache-2.0
// Native `all_scan_by_hand`: the pipeline of all_scan written directly in MPI. The mpi executor is
// compared with it.
//
//   post the receives of all K blocks
//   for each block: wait for it, carry = own map applied to it, send the carry
//   wait for the sends
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/mpi/communicator.hpp"
#include "collectives/schedule/kernel.hpp"

namespace baton {
namespace {

void run(const MpiCall& call) {
  const auto decay = call.operands.reads[0], state = call.operands.reads[1];
  const auto into = call.operands.writes[0], carry = call.operands.writes[1];
  const auto rows = static_cast<std::int64_t>(decay.size()),
             row = static_cast<std::int64_t>(state.size()) / rows;
  const int K = call.blocks;
  int r = 0, P = 0;
  mpi(MPI_Comm_rank(call.comm, &r));
  mpi(MPI_Comm_size(call.comm, &P));
  const auto first = [&](int k) { return rows * k / K; };
  const auto elements = [&](int k) { return static_cast<int>((first(k + 1) - first(k)) * row); };

  std::vector<MPI_Request> receives(K, MPI_REQUEST_NULL), sends(K, MPI_REQUEST_NULL);
  for (int k = 0; k < K && r > 0; ++k)
    mpi(MPI_Irecv(into.data() + first(k) * row, elements(k), MPI_FLOAT, r - 1, k, call.comm, &receives[k]));
  for (int k = 0; k < K; ++k) {
    const std::int64_t at = first(k) * row;
    mpi(MPI_Wait(&receives[k], MPI_STATUS_IGNORE));
    if (r == P - 1) continue;
    if (r > 0)
      apply(carry.data() + at, into.data() + at, decay.data() + first(k), state.data() + at,
            first(k + 1) - first(k), row);
    const float* from = r > 0 ? carry.data() : state.data();
    mpi(MPI_Isend(from + at, elements(k), MPI_FLOAT, r + 1, k, call.comm, &sends[k]));
  }
  mpi(MPI_Waitall(K, sends.data(), MPI_STATUSES_IGNORE));
}

void build(Schedule& s, const Operands& x) {
  const Slice carry = s.scratch("carry", x.into.count);
  s.native("all_scan_by_hand", x.blocks, {x.into, carry}, {x.own.decay, x.own.state});
}

std::optional<Cost> claim(const Shape& shape, const Split& split) {
  const int P = split.ranks;
  return Cost{P > 1 ? shape.state_bytes() : 0, P - 1};
}

const RegisteredMpiNative native{"all_scan_by_hand", run};

std::int64_t sent(const Shape& shape, const Split& split, int rank) {
  return rank + 1 < split.ranks ? shape.state_bytes() : 0;
}

const Registered registered{{
    .name = "all_scan_by_hand",
    .kind = Kind::exclusive_scan,
    .summary = "native: the pipeline of all_scan written directly in MPI",
    .build = build,
    .claim = claim,
    .sent = sent,
    .cuts_blocks = true,
}};

}  // namespace
}  // namespace baton
