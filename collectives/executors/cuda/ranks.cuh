// SPDX-License-Identifier: Apache-2.0
// The processes of an executor, one a GPU, and what they tell one another outside rounds: over MPI.
#pragma once

#include <mpi.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace baton {

/// The first processes of MPI_COMM_WORLD. All calls are collective over them.
class CudaRanks {
 public:
  /// Needs MPI to be initialised. Throws SystemError if MPI fails.
  explicit CudaRanks(int ranks);
  ~CudaRanks();
  CudaRanks(const CudaRanks&) = delete;
  CudaRanks& operator=(const CudaRanks&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// This process's number among those of its host.
  int rank_on_host() const { return rank_on_host_; }
  bool is_one_host() const { return on_host_ == size_; }

  /// A rank whose process does not run, and what it does instead.
  struct Absentee {
    int rank = 0;
    const char* state = "";
  };
  /// The lowest of them, nothing if there is none, or where the ranks run on several hosts. Not collective.
  std::optional<Absentee> absentee() const;

  /// A dissemination barrier, the same whatever the MPI library does.
  void barrier() const;

  /// What every rank gives, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(size_);
    gather_bytes(all.data(), &mine, sizeof(T));
    return all;
  }

  /// Whether all ranks say so, or any.
  bool all(bool mine) const;
  bool any(bool mine) const { return !all(!mine); }

  /// Overwrites `bytes` bytes at `data` by those of rank 0.
  void broadcast(void* data, std::size_t bytes) const;

  /// The first text that is not empty, by rank; the same on all.
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

}  // namespace baton
