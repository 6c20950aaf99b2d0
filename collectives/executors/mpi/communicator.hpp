// SPDX-License-Identifier: Apache-2.0
// A communicator of the first processes of the world for everything outside timed messages, and
// MPI's return codes as exceptions.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace baton {

/// Throws SystemError with MPI's own text and the caller's line unless `code` is MPI_SUCCESS.
void mpi(int code, std::source_location where = std::source_location::current());

/// The first processes of MPI_COMM_WORLD. MPI must be initialised. Every call but `handle`, `rank`
/// and `size` is collective over them and throws SystemError if MPI fails.
class Communicator {
 public:
  /// The purpose of a communicator. Communicators that are made at the same time must differ in it.
  /// `in_reverse` gives process P-1 the rank 0.
  enum class Use { in_order, in_reverse, control, team, devices };

  /// The first `ranks` processes of the world must call it, and no other process may.
  Communicator(int ranks, Use use);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  MPI_Comm handle() const { return comm_; }
  int rank() const { return rank_; }
  int size() const { return size_; }

  /// The number of ranks on this process's host, and this process's rank among them.
  struct Host {
    int rank = 0;
    int size = 1;
  };
  Host host() const;

  /// A dissemination barrier, so that rounds start in the same way with every MPI library: after
  /// ceil(log2 P) exchanges with ranks at distance 1, 2, 4, ... each rank has heard of all others.
  void barrier() const;
  /// A barrier that polls every half millisecond and sleeps in between, for waits that may be long.
  void barrier_asleep() const;

  double min(double mine) const;
  double max(double mine) const;
  std::int64_t sum(std::int64_t mine) const;
  /// Overwrites each number by its sum over the ranks; at most 2^31 - 1 of them.
  void sum(std::span<double> values) const;
  /// True if `mine` is true on all ranks, or on any.
  bool all(bool mine) const;
  bool any(bool mine) const { return !all(!mine); }

  /// The first text that is not empty, by rank; the same on all ranks.
  std::string first(const std::string& text) const;

  /// Overwrites `bytes` bytes at `data` by those of rank 0.
  void broadcast(void* data, std::size_t bytes) const;

  /// The values that all ranks give, by rank.
  template <class T>
  std::vector<T> gather(const T& mine) const {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(size_);
    gather_bytes(all.data(), &mine, sizeof(T));
    return all;
  }
  /// The rows that all ranks give, by rank. All rows are of equal length.
  std::vector<std::vector<double>> gather(const std::vector<double>& mine) const;

 private:
  void gather_bytes(void* all, const void* mine, std::size_t bytes) const;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_;
};

}  // namespace baton
