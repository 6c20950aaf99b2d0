// SPDX-License-Identifier: Apache-2.0
// The device side of kernel contracts (contracts.hpp): operands as pointers to bf16 or float, and registration of bodies.
#pragma once

#include <cuda_bf16.h>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "sp_methods/kernels/contracts.hpp"

namespace baton {

using Bf16 = __nv_bfloat16;

/// Operands of a device body.
using OnDevice = Pointers<Bf16>;

/// Enqueues a contract's kernel; operands are 16-byte aligned.
template <class Contract>
using DeviceBody = cudaError_t (*)(cudaStream_t, const typename Contract::template Operands<OnDevice>&,
                                   const typename Contract::Parameters&);

/// Registers the device body of a contract. A contract whose parameters have `dtype` and `widths()` is run for bf16 tensors
/// of 64 or 128 elements a head alone.
template <class Contract>
RegisteredCudaKernel device_body(DeviceBody<Contract> body) {
  const auto run = [body](const CudaKernelCall& x) {
    const auto operands = bind_operands<typename Contract::template Operands<OnDevice>>(x.operands);
    cuda(body(x.stream, operands, parameters_of<Contract>(x.kernel)));
  };
  const auto unsupported = [](const Kernel& kernel) -> Refusal {
    const auto& parameters = parameters_of<Contract>(kernel);
    if constexpr (requires { parameters.widths(); }) {
      bool fits = parameters.dtype == Dtype::bf16;
      for (const std::int64_t width : parameters.widths()) fits = fits && KernelTraits{}.takes(width);
      if (!fits)
        return "the device body of " + kernel.name + " is for bf16 tensors, d_k and d_v of 64 and 128";
    }
    return {};
  };
  return {Contract::name, run, unsupported};
}

}  // namespace baton
