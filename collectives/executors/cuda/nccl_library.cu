// SPDX-License-Identifier: Apache-2.0
// NCCL's errors and communicators.
#include <cstdlib>
#include <exception>

#include "collectives/executors/cuda/nccl_library.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::string version_text(int code) {
  return std::to_string(code / 10000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

int library_version() {
  int code = 0;
  nccl(ncclGetVersion(&code));
  return code;
}

}  // namespace

void nccl(ncclResult_t code, std::source_location where) {
  if (code == ncclSuccess) return;
  std::string text = ncclGetErrorString(code);
  const char* last = ncclGetLastError(nullptr);
  if (last != nullptr && *last != '\0') text += std::string(": ") + last;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  throw SystemError("NCCL error " + std::to_string(code) + ": " + text + " (" + where.file_name() + ":" +
                    std::to_string(where.line()) + ")");
}

std::string nccl_version() { return version_text(library_version()); }

Refusal lacks_matching_nccl() {
  if (library_version() == NCCL_VERSION_CODE) return {};
  return "built with NCCL " + version_text(NCCL_VERSION_CODE) + " but running with " + nccl_version() +
         ", between which windows may differ";
}

NcclBytes::NcclBytes(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  nccl(ncclMemAlloc(&memory, bytes));
  memory_ = static_cast<std::byte*>(memory);
}

NcclBytes::~NcclBytes() {
  if (std::uncaught_exceptions() == 0) ncclMemFree(memory_);
}

NcclComm::NcclComm(const CudaRanks& ranks, int cta_policy) {
  // NCCL reads it once, at its first communicator.
  if (!executor_choices().multicast) setenv("NCCL_NVLS_ENABLE", "0", 1);
  ncclUniqueId id{};
  if (ranks.rank() == 0) nccl(ncclGetUniqueId(&id));
  ranks.broadcast(&id, sizeof id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  if (cta_policy != NCCL_CTA_POLICY_DEFAULT) config.CTAPolicy = cta_policy;
  nccl(ncclCommInitRankConfig(&comm_, ranks.size(), id, ranks.rank(), &config));
}

NcclComm::~NcclComm() {
  // Destruction waits for the other ranks, who may never come when one fails.
  if (std::uncaught_exceptions() == 0)
    ncclCommDestroy(comm_);
  else
    ncclCommAbort(comm_);
}

}  // namespace baton
