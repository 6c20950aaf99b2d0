// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/cudnn/calls.cuh"
#include "sp_methods/kernels/device/workspace.cuh"

namespace baton {
namespace {

constexpr std::size_t most_runs = 4;

/// Offsets of parts of the workspace, one after the other, in bytes.
class Places {
 public:
  std::size_t add(std::int64_t bytes) {
    const std::size_t at = end_;
    end_ += (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
    return at;
  }
  std::size_t end() const { return end_; }

 private:
  std::size_t end_ = 0;
};

std::shared_ptr<const AttentionPlan> plan_for(const AttentionSizes& sizes) {
  static auto& plans = *new std::map<AttentionSizes, std::shared_ptr<const AttentionPlan>>;
  std::shared_ptr<const AttentionPlan>& plan = plans[sizes];
  if (!plan) plan = attention_plan_maker()(sizes);
  return plan;
}

std::vector<PlannedRun> planned(const SoftmaxShape& s, bool backward) {
  constexpr std::int64_t bf16 = 2, f32 = 4;
  std::vector<PlannedRun> all;
  std::size_t bytes = 1;
  for (const MaskRun& run : mask_runs(s, most_runs)) {
    PlannedRun& x = all.emplace_back();
    x.run = run;
    x.plan = plan_for({run.queries, run.keys, s.heads, s.key_heads(), s.d_k, s.d_v, run.causal, backward});
    Places places;
    x.o = places.add(run.queries * s.heads * s.d_v * bf16);
    x.stats = places.add(run.queries * s.heads * f32);
    if (backward) {
      x.dq = places.add(run.queries * s.heads * s.d_k * bf16);
      x.dk = places.add(run.keys * s.key_heads() * s.d_k * bf16);
      x.dv = places.add(run.keys * s.key_heads() * s.d_v * bf16);
    }
    x.workspace = places.add(static_cast<std::int64_t>(x.plan->workspace_bytes()));
    bytes = std::max(bytes, places.end());
  }
  Workspace::shared().grow(bytes);
  return all;
}

using CallKey = std::array<std::int64_t, 17>;

CallKey key_of(const SoftmaxShape& s, bool backward) {
  const Positions &q = s.q_positions, &k = s.k_positions;
  return {s.q_tokens, s.k_tokens, s.heads,  s.key_heads(), s.d_k,
          s.d_v,      q.first,    q.second, q.split,       q.stride,
          k.first,    k.second,   k.split,  k.stride,      static_cast<std::int64_t>(s.mask.kind),
          s.mask.end, backward};
}

/// Makes the plans of a block, and returns the reason if that is impossible.
Refusal unplannable(const SoftmaxShape& shape, bool backward) {
  if (shape.mask.hides_first_keys()) return "cuDNN is asked for no window and no packed documents";
  const std::size_t runs = mask_runs(shape, most_runs).size();
  if (runs > most_runs) return "cuDNN has no causal mask for such positions of queries and keys";
  try {
    planned_runs(nullptr, shape, backward);
    return {};
  } catch (const SystemError& error) {
    return error.what();
  }
}

}  // namespace

std::byte* PlannedRun::shared_memory() { return Workspace::shared().get(); }

const std::vector<PlannedRun>& planned_runs(cudaStream_t stream, const SoftmaxShape& shape, bool backward) {
  static auto& calls = *new std::map<CallKey, std::vector<PlannedRun>>;
  const CallKey key = key_of(shape, backward);
  const auto found = calls.find(key);
  if (found != calls.end()) return found->second;
  require_before_capture(stream, "a plan of cuDNN");
  return calls.emplace(key, planned(shape, backward)).first->second;
}

Refusal refused_by_cudnn(const SoftmaxShape& shape) { return unplannable(shape, false); }

Refusal gradients_refused_by_cudnn(const SoftmaxGradientsShape& shape) {
  const auto is_bf16 = [](const GradientsInto& into) { return into.dtype == Dtype::bf16; };
  for (const GradientsInto& into : {shape.dq, shape.keys})
    if (is_bf16(into) && !into.sets) return "cuDNN's gradients are added to f32 memory alone";
  const bool is_narrow = is_bf16(shape.dq) || is_bf16(shape.keys);
  if (is_narrow && mask_runs(shape, most_runs).size() > 1)
    return "cuDNN gives one run of the mask in bf16, and this block has several";
  return unplannable(shape, true);
}

}  // namespace baton
