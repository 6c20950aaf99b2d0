// SPDX-License-Identifier: Apache-2.0
// The interface between cuDNN's plans and the kernels around them.
//
// plans.cpp, which makes them, alone includes cudnn-frontend's headers, which take most of a minute
// to compile, and is built only where they are found. It opens libcudnn.so.9 when the program runs.
#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace baton {

/// The sizes that a plan is made for. Tensors are bf16 [tokens, heads, width].
struct AttentionSizes {
  std::int64_t queries = 0;
  std::int64_t keys = 0;  ///< Number of keys, at least that of queries if causal.
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  bool causal = false;  ///< True if query i sees the first keys - queries + i + 1 keys, else all.
  bool backward = false;

  auto operator<=>(const AttentionSizes&) const = default;
};

/// The memory of one run of a plan, 16-byte aligned.
struct AttentionPointers {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;          ///< Written forward, read backward.
  void* stats = nullptr;      ///< f32 [heads, queries], lse; written forward, read backward.
  const void* d_o = nullptr;  ///< Read backward only.
  void* dq = nullptr;         ///< Written backward only.
  void* dk = nullptr;         ///< Written backward only.
  void* dv = nullptr;         ///< Written backward only.
};

/// A kernel of cuDNN, chosen and loaded.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// Enqueues the kernel; it may be captured into a graph. Throws SystemError.
  virtual void run(cudaStream_t stream, const AttentionPointers& x, void* workspace) const = 0;
};

/// Function that makes a plan, which takes up to seconds. It throws SystemError with cuDNN's text
/// if there is no plan.
using MakeAttentionPlan = std::unique_ptr<AttentionPlan> (*)(const AttentionSizes&);
/// The function that makes plans; null if cuDNN is not built in.
inline MakeAttentionPlan& attention_plan_maker() {
  static MakeAttentionPlan maker = nullptr;
  return maker;
}

}  // namespace baton
