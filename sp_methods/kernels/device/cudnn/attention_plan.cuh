// SPDX-License-Identifier: Apache-2.0
// What cuDNN's plans and the kernels around them know of one another.
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

/// What a plan is made for. Tensors are bf16 [tokens, heads, width].
struct AttentionSizes {
  std::int64_t queries = 0;
  std::int64_t keys = 0;  ///< At least as many as queries where causal.
  std::int64_t heads = 1;
  std::int64_t key_heads = 1;
  std::int64_t d_k = 0;
  std::int64_t d_v = 0;
  bool causal = false;  ///< Query i sees the first keys - queries + i + 1 keys; else all of them.
  bool backward = false;

  auto operator<=>(const AttentionSizes&) const = default;
};

/// The memory of one run of a plan, 16-byte aligned.
struct AttentionPointers {
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;          ///< Set forward, read backward.
  void* stats = nullptr;      ///< f32 [heads, queries], lse; set forward, read backward.
  const void* d_o = nullptr;  ///< Backward alone, as are the three below.
  void* dq = nullptr;
  void* dk = nullptr;
  void* dv = nullptr;
};

/// One of cuDNN's kernels, chosen and loaded.
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;
  virtual std::size_t workspace_bytes() const = 0;
  /// Enqueues it; may be captured into a graph. Throws SystemError.
  virtual void run(cudaStream_t stream, const AttentionPointers& x, void* workspace) const = 0;
};

/// Makes a plan, which takes up to seconds. Throws SystemError with cuDNN's text if there is none.
/// Null where cuDNN is not built in.
using MakeAttentionPlan = std::unique_ptr<AttentionPlan> (*)(const AttentionSizes&);
inline MakeAttentionPlan& attention_plan_maker() {
  static MakeAttentionPlan maker = nullptr;
  return maker;
}

}  // namespace baton
