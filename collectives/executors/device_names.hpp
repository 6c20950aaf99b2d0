// SPDX-License-Identifier: Apache-2.0
// The names of the executors that code for GPUs registers. A build without that code says by them
// what it lacks.
#pragma once

#include <array>

namespace baton {

inline constexpr const char* nccl_name = "nccl";
inline constexpr const char* peer_name = "peer";
inline constexpr const char* peer_bf16_name = "peer_bf16";
inline constexpr std::array device_executors{nccl_name, peer_name, peer_bf16_name};

}  // namespace baton
