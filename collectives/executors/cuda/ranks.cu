// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/host/process_state.hpp"
#include "collectives/executors/mpi/error.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

constexpr int creation_tag = 7;  // the executor `mpi` uses others
constexpr int barrier_tag = 1;

/// The number of GPUs that CUDA sees, or the reason why it sees none.
struct Gpus {
  int count = 0;
  std::string error;
};

/// The first call starts CUDA.
const Gpus& gpus() {
  static const Gpus found = [] {
    // Loading a kernel lazily may wait for the device, and the device may be waiting for that kernel.
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    Gpus seen;
    const cudaError_t code = cudaGetDeviceCount(&seen.count);
    if (code == cudaErrorInsufficientDriver)
      seen = {0, "no NVIDIA driver, or one that is too old for this CUDA"};
    else if (code != cudaSuccess)
      seen = {0, cudaGetErrorString(code)};
    cudaGetLastError();
    return seen;
  }();
  return found;
}

/// Processes on this host according to the launcher's environment, 0 if it does not say.
int launched_on_host() {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMIX_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"})
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return 0;
}

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

Refusal lacks_gpus(int ranks) {
  const auto& [count, error] = gpus();
  if (count == 0) return "no GPU here" + (error.empty() ? "" : " (" + error + ")");
  const int here = launched_on_host(), needed = here > 0 ? std::min(here, ranks) : ranks;
  if (needed <= count) return {};
  return std::to_string(needed) + " ranks on this host need a GPU each, and it has " + std::to_string(count);
}

int take_gpu(const CudaRanks& ranks) {
  const int gpu = ranks.rank_on_host();
  const auto& [count, error] = gpus();
  const bool lacks = gpu >= count;
  const std::string reason = ranks.first(lacks ? "rank " + std::to_string(ranks.rank()) +
                                                     " has no GPU: its host has " + std::to_string(count)
                                               : "");
  if (!reason.empty()) throw UsageError(reason);
  cuda(cudaSetDevice(gpu));
  cuda(cudaFree(nullptr));  // makes the context now
  return gpu;
}

Refusal lacks_peer_access(const CudaRanks& ranks) {
  if (!ranks.is_one_host()) return "the ranks run on several hosts, whose GPUs share no memory";
  int mine = 0;
  cuda(cudaGetDevice(&mine));
  std::string lack;
  for (int other : ranks.gather(mine)) {
    int can = 1;
    if (other != mine) cuda(cudaDeviceCanAccessPeer(&can, mine, other));
    if (!can) lack = "GPU " + std::to_string(mine) + " has no peer access to GPU " + std::to_string(other);
  }
  return ranks.first(lack);
}

unsigned multiprocessors() {
  int gpu = 0, count = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, gpu));
  return static_cast<unsigned>(count);
}

}  // namespace baton
