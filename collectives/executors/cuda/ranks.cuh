// SPDX-License-Identifier: Apache-2.0
// The processes of an executor on GPUs: their team outside of rounds, and which GPU each has.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "collectives/executors/team.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// The processes of an executor, one a GPU or `ExecutorChoices::ranks_per_gpu` of them.
class CudaRanks : public Team {
 public:
  /// Collective over the first `ranks` processes of the run. Throws SystemError if one of
  /// them cannot be reached.
  explicit CudaRanks(int ranks);

  /// The number of this process among those of its host.
  int rank_on_host() const { return host_.rank; }
  bool is_one_host() const { return host_.size == size(); }

  /// A rank whose process does not run, and its state in words.
  struct Absentee {
    int rank = 0;
    const char* state = "";
  };
  /// The lowest rank whose process does not run. Empty if all run, or if the ranks are on several
  /// hosts. Not collective.
  std::optional<Absentee> absentee() const;

 private:
  Host host_;
  std::vector<pid_t> processes_;  // by rank, where all are of one host
};

/// Refuses `ranks` ranks that cannot have a GPU each, or share it as chosen, as far as this host
/// can tell: there is no driver, or too few GPUs for the processes that the launcher put here.
/// Tells no other process, ends none and takes no GPU.
Refusal lacks_gpus(int ranks);

/// Makes the GPU of this process's number on its host, divided by the ranks of a GPU, the current
/// one; returns its number. All GPUs stay visible, as peer access needs. Throws UsageError if there
/// is none.
int take_gpu(const CudaRanks& ranks);

/// Refuses ranks that cannot read and write one another's GPU memory. All ranks get the same
/// reason. Collective, after take_gpu.
Refusal lacks_peer_access(const CudaRanks& ranks);

/// Multiprocessors of the current GPU that a kernel which waits for other ranks may fill: all of
/// them, or a rank's share. Waiting kernels of all its ranks then fit beside one another, so that
/// none waits for one that finds no room.
unsigned multiprocessors();

}  // namespace baton
