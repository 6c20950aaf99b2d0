// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/executors/host/process_state.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// The number of GPUs that CUDA sees, or the reason why it sees none.
struct Gpus {
  int count = 0;
  std::string error;
};

/// The GPUs that CUDA sees. The first call starts CUDA.
const Gpus& gpus() {
  static const Gpus found = [] {
    // Loading a kernel lazily may wait for the device, and the device may be waiting for that
    // kernel.
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

}  // namespace

CudaRanks::CudaRanks(int ranks) : Team(team_of_first(ranks)), host_(host()) {
  if (is_one_host()) processes_ = gather(getpid());
}

std::optional<CudaRanks::Absentee> CudaRanks::absentee() const {
  for (int rank = 0; rank < static_cast<int>(processes_.size()); ++rank) {
    const ProcessState state = state_of(processes_[rank]);
    if (state != ProcessState::runs)
      return Absentee{rank, state == ProcessState::stopped ? "is stopped" : "is gone"};
  }
  return std::nullopt;
}

Refusal lacks_gpus(int ranks) {
  const auto& [count, error] = gpus();
  if (count == 0) return "no GPU here" + (error.empty() ? "" : " (" + error + ")");
  const int here = launcher().size_on_host, needed = here > 0 ? std::min(here, ranks) : ranks;
  const int a_gpu = executor_choices().ranks_per_gpu;
  if ((needed + a_gpu - 1) / a_gpu <= count) return {};
  if (executor_choices().share_gpus())
    return std::to_string(needed) + " ranks on this host, " + std::to_string(a_gpu) +
           " a GPU, need more GPUs than it has: " + std::to_string(count);
  return std::to_string(needed) + " ranks on this host need a GPU each, and it has " + std::to_string(count);
}

int take_gpu(const CudaRanks& ranks) {
  const int gpu = ranks.rank_on_host() / executor_choices().ranks_per_gpu;
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
  return static_cast<unsigned>(std::max(1, count / executor_choices().ranks_per_gpu));
}

}  // namespace baton
