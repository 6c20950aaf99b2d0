// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/mpi/communicator.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
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

// Teams send messages of their own: MPI's collectives are what is measured, and a setting may
// choose an algorithm for them that does not run at this number of ranks.

void Communicator::gather(void* all, const void* mine, std::size_t bytes) const {
  constexpr int tag = 4;
  const auto count = static_cast<int>(bytes);
  auto* rows = static_cast<char*>(all);
  if (bytes > 0) std::memcpy(rows + rank_ * bytes, mine, bytes);
  const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
  for (int step = 0; step < size_ - 1; ++step) {  // a ring: each row goes around once
    const int sent = (rank_ + size_ - step) % size_, received = (sent + size_ - 1) % size_;
    mpi(MPI_Sendrecv(rows + sent * bytes, count, MPI_BYTE, next, tag, rows + received * bytes, count,
                     MPI_BYTE, before, tag, comm_, MPI_STATUS_IGNORE));
  }
}

void Communicator::broadcast(void* data, std::size_t bytes, int from) const {
  constexpr int tag = 5;
  const auto count = static_cast<int>(bytes);
  // A tree over places: without its highest bit a place has its parent's number.
  const int place = (rank_ + size_ - from) % size_;
  const int highest = static_cast<int>(std::bit_floor(static_cast<unsigned>(place)));
  const auto rank_at = [&](int other) { return (other + from) % size_; };
  if (place > 0)
    mpi(MPI_Recv(data, count, MPI_BYTE, rank_at(place - highest), tag, comm_, MPI_STATUS_IGNORE));
  for (int bit = std::max(2 * highest, 1); place + bit < size_; bit *= 2)
    mpi(MPI_Send(data, count, MPI_BYTE, rank_at(place + bit), tag, comm_));
}

}  // namespace baton
