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

Communicator::Host Communicator::host() const {
  Host host;
  MPI_Comm comm = MPI_COMM_NULL;
  mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm));
  mpi(MPI_Comm_rank(comm, &host.rank));
  mpi(MPI_Comm_size(comm, &host.size));
  mpi(MPI_Comm_free(&comm));
  return host;
}

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

double Communicator::min(double mine) const {
  mpi(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MIN, comm_));
  return mine;
}

double Communicator::max(double mine) const {
  mpi(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, comm_));
  return mine;
}

std::int64_t Communicator::sum(std::int64_t mine) const {
  mpi(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_SUM, comm_));
  return mine;
}

void Communicator::sum(std::span<double> values) const {
  mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                    comm_));
}

bool Communicator::all(bool mine) const {
  int all = mine;
  mpi(MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, comm_));
  return all != 0;
}

std::string Communicator::first(const std::string& text) const {
  int speaker = text.empty() ? size_ : rank_;
  mpi(MPI_Allreduce(MPI_IN_PLACE, &speaker, 1, MPI_INT, MPI_MIN, comm_));
  if (speaker == size_) return {};
  int length = static_cast<int>(text.size());
  mpi(MPI_Bcast(&length, 1, MPI_INT, speaker, comm_));
  std::string agreed = rank_ == speaker ? text : std::string(length, ' ');
  mpi(MPI_Bcast(agreed.data(), length, MPI_CHAR, speaker, comm_));
  return agreed;
}

void Communicator::broadcast(void* data, std::size_t bytes) const {
  mpi(MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, 0, comm_));
}

std::vector<std::vector<double>> Communicator::gather(const std::vector<double>& mine) const {
  std::vector<double> all(mine.size() * size_);
  gather_bytes(all.data(), mine.data(), mine.size() * sizeof(double));
  std::vector<std::vector<double>> rows;
  for (auto row = all.begin(); rows.size() < static_cast<std::size_t>(size_);
       row += static_cast<std::ptrdiff_t>(mine.size()))
    rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(mine.size()));
  return rows;
}

void Communicator::gather_bytes(void* all, const void* mine, std::size_t bytes) const {
  const auto count = static_cast<int>(bytes);
  mpi(MPI_Allgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm_));
}

}  // namespace baton
