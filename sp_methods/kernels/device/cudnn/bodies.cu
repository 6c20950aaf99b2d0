// SPDX-License-Identifier: Apache-2.0
// The bodies of softmax_block and softmax_block_gradients by cuDNN: its plans, one a run of the
// mask, and the kernels between its bf16 and the f32 of the contracts.
//
//   block:      (O, stats) = plan(q, k, v);  out = O, widened if it is f32;  lse = stats transposed
//   gradients:  O' = d_o delta / |d_o|^2,  stats = lse transposed
//               (dQ, dK, dV) = plan(q, k, v, O', d_o, stats);  each is added, or set
//
// cuDNN takes the output for no other use than delta = rowsum(d_o (.) O), which methods send around
// in its place. O' gives the same delta: its rows lie along those of d_o, no number of the sum has
// another sign, and rounding them to bf16 moves the sum by less than rounding O does.
// What a block gives in bf16 where the contract asks for bf16 is written by cuDNN itself.
#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/cudnn/bodies.cuh"
#include "sp_methods/kernels/device/cudnn/calls.cuh"
#include "sp_methods/kernels/device/tile/product.cuh"

namespace baton {
namespace {

constexpr int threads = 256;

unsigned blocks(std::int64_t count) { return static_cast<unsigned>((count + threads - 1) / threads); }

/// Sets into = from, or into += from. A thread has eight elements, 16 bytes of bf16.
template <bool adds>
__global__ void widen_kernel(float* into, const Bf16* from, std::int64_t eights) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= eights) return;
  const uint4 x = reinterpret_cast<const uint4*>(from)[i];
  float4* at = reinterpret_cast<float4*>(into) + 2 * i;
  const float2 a = unpacked_pair(x.x), b = unpacked_pair(x.y), c = unpacked_pair(x.z), d = unpacked_pair(x.w);
  float4 low{a.x, a.y, b.x, b.y}, high{c.x, c.y, d.x, d.y};
  if constexpr (adds) {
    const float4 old_low = at[0], old_high = at[1];
    low = {low.x + old_low.x, low.y + old_low.y, low.z + old_low.z, low.w + old_low.w};
    high = {high.x + old_high.x, high.y + old_high.y, high.z + old_high.z, high.w + old_high.w};
  }
  at[0] = low;
  at[1] = high;
}

/// Sets lse [queries, heads] to stats [heads, queries], and lse of the `hidden` queries before to
/// minus infinity.
__global__ void place_lse_kernel(float* lse, const float* stats, std::int64_t hidden, std::int64_t queries,
                                 std::int64_t heads) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x;
  if (i >= (hidden + queries) * heads) return;
  const std::int64_t query = i / heads - hidden;
  lse[i] = query < 0 ? -INFINITY : stats[i % heads * queries + query];
}

/// Sets the rows O' and stats [heads, queries] of a run. A warp has a row, and row r is of head r %
/// heads.
__global__ void carry_delta_kernel(Bf16* o, float* stats, const Bf16* d_o, const float* delta,
                                   const float* lse, std::int64_t queries, std::int64_t heads, int d_v) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / 32;
  if (row >= queries * heads) return;
  constexpr int most_pairs = 4;  // of a lane, 32 pairs apart: rows of up to 256
  const int pairs = (d_v - 2 * lane() + 63) / 64;
  const std::int64_t at = row * d_v + 2 * lane();
  float2 x[most_pairs];
  float square = 0.0F;
#pragma unroll
  for (int n = 0; n < most_pairs; ++n) {
    if (n >= pairs) continue;
    x[n] = load_pair(d_o + at + 64 * n);
    square += x[n].x * x[n].x + x[n].y * x[n].y;
  }
  square = warp_sum(square);
  const float factor = square > 0.0F ? delta[row] / square : 0.0F;
#pragma unroll
  for (int n = 0; n < most_pairs; ++n)
    if (n < pairs) store_pair(o + at + 64 * n, {factor * x[n].x, factor * x[n].y});
  if (lane() == 0) stats[row % heads * queries + row / heads] = lse[row];
}

/// Adds `count` elements of bf16 to f32 memory, or sets the memory to them.
void widen(cudaStream_t stream, float* into, const Bf16* from, std::int64_t count, bool sets) {
  const std::int64_t eights = count / 8;  // widths are multiples of 8
  if (sets)
    widen_kernel<false><<<blocks(eights), threads, 0, stream>>>(into, from, eights);
  else
    widen_kernel<true><<<blocks(eights), threads, 0, stream>>>(into, from, eights);
  cuda_launched();
}

/// Sets the elements [from, to) to zero.
void clear(cudaStream_t stream, void* into, Dtype dtype, std::int64_t from, std::int64_t to) {
  const std::int64_t element = bytes_of(dtype);
  if (to > from)
    cuda(cudaMemsetAsync(static_cast<std::byte*>(into) + from * element, 0,
                         static_cast<std::size_t>((to - from) * element), stream));
}

/// The memory of a gradient, and the part of it that a plan computes.
class GradientShare {
 public:
  /// Makes the part of `count` elements from `first` on of `whole` elements in `into`. `scratch` is
  /// memory for `count` elements of bf16.
  GradientShare(void* into, const GradientsInto& how, std::int64_t whole, std::int64_t first,
                std::int64_t count, Bf16* scratch)
      : into_(into), how_(how), whole_(whole), first_(first), count_(count), scratch_(scratch) {}

  /// Memory that the plan writes: the gradient's own if it is bf16, else scratch memory.
  void* share() const {
    return how_.dtype == Dtype::bf16 ? static_cast<void*>(static_cast<Bf16*>(into_) + first_) : scratch_;
  }

  /// Enqueues the transfer of the part from scratch memory to the gradient. The first run of a
  /// block zeroes the rest of memory that it sets.
  void take(cudaStream_t stream, bool is_first_run) const {
    const bool sets = how_.sets && is_first_run;
    if (sets) clear(stream, into_, how_.dtype, 0, first_);
    if (sets) clear(stream, into_, how_.dtype, first_ + count_, whole_);
    if (how_.dtype == Dtype::f32) widen(stream, static_cast<float*>(into_) + first_, scratch_, count_, sets);
  }

 private:
  void* into_;
  GradientsInto how_;
  std::int64_t whole_, first_, count_;
  Bf16* scratch_;
};

void carry_delta(cudaStream_t stream, const PlannedRun& x, const SoftmaxShape& s, const Bf16* d_o,
                 const float* delta, const float* lse) {
  const std::int64_t rows = x.run.queries * s.heads;
  carry_delta_kernel<<<blocks(32 * rows), threads, 0, stream>>>(
      PlannedRun::at<Bf16>(x.o), PlannedRun::at<float>(x.stats), d_o, delta, lse, x.run.queries, s.heads,
      static_cast<int>(s.d_v));
  cuda_launched();
}

/// Enqueues one run of a block. The first run sets the outputs of hidden queries before it too.
void run_forward(cudaStream_t stream, const PlannedRun& x, const SoftmaxBlock::Operands<OnDevice>& all,
                 const SoftmaxShape& s, bool is_first_run) {
  const MaskRun& run = x.run;
  const std::int64_t hidden = is_first_run ? run.first : 0, first = run.first * s.heads,
                     values = first * s.d_v, element = bytes_of(s.out_dtype);
  auto* out = static_cast<std::byte*>(all.out);
  const bool is_narrow = s.out_dtype == Dtype::bf16;
  auto* o = is_narrow ? reinterpret_cast<Bf16*>(out) + values : PlannedRun::at<Bf16>(x.o);
  auto* stats = PlannedRun::at<float>(x.stats);
  x.plan->run(stream, {.q = all.in.q + first * s.d_k, .k = all.in.k, .v = all.in.v, .o = o, .stats = stats},
              PlannedRun::at<void*>(x.workspace));
  if (hidden > 0) cuda(cudaMemsetAsync(out, 0, static_cast<std::size_t>(values * element), stream));
  if (!is_narrow)
    widen(stream, static_cast<float*>(all.out) + values, o, run.queries * s.heads * s.d_v, true);
  place_lse_kernel<<<blocks((hidden + run.queries) * s.heads), threads, 0, stream>>>(
      all.lse + first - hidden * s.heads, stats, hidden, run.queries, s.heads);
  cuda_launched();
}

/// Sets the outputs of a block whose keys no query sees.
void hide_all(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x, const SoftmaxShape& s) {
  const std::int64_t rows = s.q_tokens * s.heads;
  clear(stream, x.out, s.out_dtype, 0, rows * s.d_v);
  place_lse_kernel<<<blocks(rows), threads, 0, stream>>>(x.lse, nullptr, s.q_tokens, 0, s.heads);
  cuda_launched();
}

/// Zeroes the gradients of a block whose keys no query sees, unless gradients are added.
void clear_what_is_set(cudaStream_t stream, const SoftmaxBlockGradients::Operands<OnDevice>& x,
                       const SoftmaxGradientsShape& s) {
  const std::int64_t key_rows = s.k_tokens * s.key_heads();
  if (s.dq.sets) clear(stream, x.dq, s.dq.dtype, 0, s.q_tokens * s.heads * s.d_k);
  if (!s.keys.sets) return;
  clear(stream, x.dk, s.keys.dtype, 0, key_rows * s.d_k);
  clear(stream, x.dv, s.keys.dtype, 0, key_rows * s.d_v);
}

/// Enqueues one run of a block's gradients.
void run_backward(cudaStream_t stream, const PlannedRun& x,
                  const SoftmaxBlockGradients::Operands<OnDevice>& all, const SoftmaxGradientsShape& s,
                  bool is_first_run) {
  const MaskRun& run = x.run;
  const std::int64_t first = run.first * s.heads, rows = run.queries * s.heads,
                     key_rows = s.k_tokens * s.key_heads(), seen = run.keys * s.key_heads();
  const GradientShare dq(all.dq, s.dq, s.q_tokens * s.heads * s.d_k, first * s.d_k, rows * s.d_k,
                         PlannedRun::at<Bf16>(x.dq));
  const GradientShare dk(all.dk, s.keys, key_rows * s.d_k, 0, seen * s.d_k, PlannedRun::at<Bf16>(x.dk));
  const GradientShare dv(all.dv, s.keys, key_rows * s.d_v, 0, seen * s.d_v, PlannedRun::at<Bf16>(x.dv));
  carry_delta(stream, x, s, all.d_o + first * s.d_v, all.delta + first, all.lse + first);
  x.plan->run(stream,
              {.q = all.in.q + first * s.d_k,
               .k = all.in.k,
               .v = all.in.v,
               .o = PlannedRun::at<Bf16>(x.o),
               .stats = PlannedRun::at<float>(x.stats),
               .d_o = all.d_o + first * s.d_v,
               .dq = dq.share(),
               .dk = dk.share(),
               .dv = dv.share()},
              PlannedRun::at<void*>(x.workspace));
  for (const GradientShare* share : {&dq, &dk, &dv}) share->take(stream, is_first_run);
}

}  // namespace

cudaError_t cudnn_softmax_block(cudaStream_t stream, const SoftmaxBlock::Operands<OnDevice>& x,
                                const SoftmaxShape& shape) {
  const auto& runs = planned_runs(stream, shape, false);
  if (runs.empty()) hide_all(stream, x, shape);
  for (const PlannedRun& run : runs) run_forward(stream, run, x, shape, &run == runs.data());
  return cudaGetLastError();
}

cudaError_t cudnn_softmax_block_gradients(cudaStream_t stream,
                                          const SoftmaxBlockGradients::Operands<OnDevice>& x,
                                          const SoftmaxGradientsShape& shape) {
  const auto& runs = planned_runs(stream, shape, true);
  if (runs.empty()) clear_what_is_set(stream, x, shape);
  for (const PlannedRun& run : runs) run_backward(stream, run, x, shape, &run == runs.data());
  return cudaGetLastError();
}

}  // namespace baton
