// SPDX-License-Identifier: Apache-2.0
// NCCL's return codes as exceptions, its version, and communicators.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <source_location>
#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/errors.hpp"

namespace baton {

/// Throws SystemError with NCCL's own text and the caller's line unless `code` is ncclSuccess.
void nccl(ncclResult_t code, std::source_location where = std::source_location::current());

/// The version of the library that runs, such as "2.28.9".
std::string nccl_version();

/// Why windows and the device interface cannot be used, or an empty string: NCCL promises neither across versions, so
/// the library that runs must be the one whose header this was compiled with.
Refusal lacks_matching_nccl();

/// Device memory as NCCL wants it: it can register this with its other ranks, in a recorded graph by itself and else as a
/// window. Dear to allocate.
class NcclBytes {
 public:
  /// Throws SystemError if it is not to be had.
  explicit NcclBytes(std::size_t bytes);
  /// Leaves the memory to the end of the process while an exception flies.
  ~NcclBytes();
  NcclBytes(const NcclBytes&) = delete;
  NcclBytes& operator=(const NcclBytes&) = delete;

  std::byte* get() const { return memory_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  std::byte* memory_ = nullptr;
};

/// A communicator of all ranks.
class NcclComm {
 public:
  /// With `cta_policy` NCCL_CTA_POLICY_ZERO collectives on windows run on the copy engines. NVLink multicast is off
  /// unless ExecutorChoices say otherwise. Collective, after take_gpu. Throws SystemError.
  explicit NcclComm(const CudaRanks& ranks, int cta_policy = NCCL_CTA_POLICY_DEFAULT);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t get() const { return comm_; }

 private:
  ncclComm_t comm_ = nullptr;
};

}  // namespace baton
