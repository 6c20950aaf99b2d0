// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/mpi/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

#include "collectives/schedule/errors.hpp"

namespace baton {

void mpi(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw SystemError("MPI error " + std::to_string(code) + ": " + std::string(text, length) + " (" +
                    where.file_name() + ":" + std::to_string(where.line()) + ")");
}

Communicator::Communicator(int ranks, Use use) : size_(ranks) {
  std::vector<int> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  if (use == Use::in_reverse) std::reverse(members.begin(), members.end());
  MPI_Group world, group;
  mpi(MPI_Comm_group(MPI_COMM_WORLD, &world));
  mpi(MPI_Group_incl(world, ranks, members.data(), &group));
  mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, static_cast<int>(use), &comm_));
  mpi(MPI_Group_free(&group));
  mpi(MPI_Group_free(&world));
  mpi(MPI_Comm_rank(comm_, &rank_));
}

Communicator::~Communicator() { MPI_Comm_free(&comm_); }

void Communicator::barrier() const {
  constexpr int tag = 1;
  for (int distance = 1; distance < size_; distance *= 2) {
    const int to = (rank_ + distance) % size_, from = (rank_ - distance + size_) % size_;
    mpi(MPI_Sendrecv(nullptr, 0, MPI_BYTE, to, tag, nullptr, 0, MPI_BYTE, from, tag, comm_,
                     MPI_STATUS_IGNORE));
  }
}

void Communicator::barrier_asleep() const {
  MPI_Request request;
  mpi(MPI_Ibarrier(comm_, &request));
  for (int done = 0; !done;) {
    mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (!done) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
}

void Communicator::gather(void* all, const void* mine, std::size_t bytes) const {
  const auto count = static_cast<int>(bytes);
  mpi(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_));
}

void Communicator::broadcast(void* data, std::size_t bytes, int from) const {
  mpi(MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, from, comm_));
}

}  // namespace baton
