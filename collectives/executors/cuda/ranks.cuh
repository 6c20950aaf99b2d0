// SPDX-License-Identifier: Apache-2.0
// The processes of an executor on GPUs: what they tell one another over MPI outside rounds, and which GPU each has.
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "collectives/schedule/refusal.hpp"

namespace baton {

/// The first processes of MPI_COMM_WORLD. All calls are collective over them unless their comment says otherwise.
class CudaRanks {
 public:
  /// Needs MPI to be initialised. Throws SystemError if MPI fails.
  explicit CudaRanks(int ranks);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// The number of this process among those of its host.
  int rank_on_host() const { return rank_on_host_; }
  bool is_one_host() const { return on_host_ == size_; }

  /// A rank whose process does not run, and its state in words.
  struct Absentee {
    int rank = 0;
    const char* state = "";
  };
  /// The lowest rank whose process does not run. Empty if all run, or if the ranks are on several hosts. Not collective.
  std::optional<Absentee> absentee() const;

  /// A dissemination barrier, which is the same with every MPI library.
  void barrier() const;

  /// The values of all ranks, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(size_);
    gather_bytes(all.data(), &mine, sizeof(T));
    return all;
  }

  /// Overwrites `bytes` bytes at `data` by those of rank 0.
  void broadcast(void* data, std::size_t bytes) const;

  /// The first text that is not empty, by rank. All ranks get the same one.
  std::string first(const std::string& text) const;

 private:
  void gather_bytes(void* all, const void* mine, std::size_t bytes) const;

  int rank_ = 0;
  int size_;
  int rank_on_host_ = 0;
  int on_host_ = 1;
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<pid_t> processes_;  // by rank, where all are of one host
};

/// Refuses `ranks` ranks that cannot have a GPU each as far as this host can tell: there is no driver, or there are fewer
/// GPUs than processes that the launcher put here. Needs no MPI, ends no process and takes no GPU.
Refusal lacks_gpus(int ranks);

/// Makes the GPU of this process's number on its host the current one; returns its number. All GPUs stay visible, as
/// peer access needs. Throws UsageError if there is none.
int take_gpu(const CudaRanks& ranks);

/// Refuses ranks that cannot read and write one another's GPU memory. All ranks get the same reason. Collective, after
/// take_gpu.
Refusal lacks_peer_access(const CudaRanks& ranks);

/// Multiprocessors of the current GPU.
unsigned multiprocessors();

}  // namespace baton
