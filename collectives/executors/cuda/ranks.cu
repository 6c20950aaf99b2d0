// SPDX-License-Identifier: Apache-2.0
// Words between the processes of an executor.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/host/process_state.hpp"
#include "collectives/executors/mpi/communicator.hpp"

namespace baton {
namespace {

constexpr int creation_tag = 7;  // apart from those of the executor `mpi`
constexpr int barrier_tag = 1;

}  // namespace

CudaRanks::CudaRanks(int ranks) : size_(ranks) {
  std::vector<int> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  MPI_Group world, group;
  mpi(MPI_Comm_group(MPI_COMM_WORLD, &world));
  mpi(MPI_Group_incl(world, ranks, members.data(), &group));
  mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, creation_tag, &comm_));
  mpi(MPI_Group_free(&group));
  mpi(MPI_Group_free(&world));
  mpi(MPI_Comm_rank(comm_, &rank_));
  MPI_Comm host = MPI_COMM_NULL;
  mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  mpi(MPI_Comm_rank(host, &rank_on_host_));
  mpi(MPI_Comm_size(host, &on_host_));
  mpi(MPI_Comm_free(&host));
  if (is_one_host()) processes_ = gather(getpid());
}

CudaRanks::~CudaRanks() { MPI_Comm_free(&comm_); }

void CudaRanks::barrier() const {
  for (int distance = 1; distance < size_; distance *= 2) {
    const int to = (rank_ + distance) % size_, from = (rank_ - distance + size_) % size_;
    mpi(MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, barrier_tag, nullptr, 0, MPI_BYTE, from, barrier_tag, comm_,
                     MPI_STATUS_IGNORE));
  }
}

std::optional<CudaRanks::Absentee> CudaRanks::absentee() const {
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    const ProcessState state = state_of(processes_[rank]);
    if (state != ProcessState::runs)
      return Absentee{rank, state == ProcessState::stopped ? "is stopped" : "is gone"};
  }
  return std::nullopt;
}

bool CudaRanks::all(bool mine) const {
  const auto each = gather<int>(mine);
  return std::find(each.begin(), each.end(), 0) == each.end();
}

void CudaRanks::broadcast(void* data, std::size_t bytes) const {
  mpi(MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm_));
}

std::string CudaRanks::first(const std::string& text) const {
  std::array<char, 512> mine{};
  text.copy(mine.data(), mine.size() - 1);
  for (const auto& said : gather(mine))
    if (said[0] != '\0') return said.data();
  return {};
}

void CudaRanks::gather_bytes(void* all, const void* mine, std::size_t bytes) const {
  const auto count = static_cast<int>(bytes);
  mpi(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_));
}

}  // namespace baton
