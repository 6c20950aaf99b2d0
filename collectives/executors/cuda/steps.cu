// SPDX-License-Identifier: Apache-2.0
// Device bodies of the scan operator.
//
// A thread of a combine takes four neighbouring elements of a row by one 16-byte access an operand
// where rows and pointers allow it, otherwise one element. The same thread reads an element before
// it writes it, so the result may overwrite either state. The kernel is bound by bandwidth: one
// wave of threads strides over all elements.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "collectives/executors/cuda/affine.cuh"
#include "collectives/executors/cuda/steps.cuh"

namespace baton {
namespace {

constexpr int threads = 512;

__device__ float after(float decay, float earlier, float later) { return fmaf(decay, earlier, later); }

__device__ float4 after(float decay, float4 earlier, float4 later) {
  return {fmaf(decay, earlier.x, later.x), fmaf(decay, earlier.y, later.y), fmaf(decay, earlier.z, later.z),
          fmaf(decay, earlier.w, later.w)};
}

/// Computes the state of a combine over `count` packs. `row` packs share a decay, `before` packs of
/// the first decay lie before them, and `into_decay`, unless null, gets the decays of a
/// composition.
template <class Pack>
__global__ void __launch_bounds__(threads)
    combine_kernel(Pack* into, const Pack* earlier, const float* later_decay, const Pack* later,
                   std::int64_t count, std::int64_t row, std::int64_t before, float* into_decay,
                   const float* earlier_decay) {
  const std::int64_t stride = std::int64_t{gridDim.x} * threads;
  const std::int64_t first = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  const bool is_small = count + before <= UINT32_MAX;  // 64-bit division is slow
  for (std::int64_t i = first; i < count; i += stride) {
    const std::int64_t at = i + before;
    const std::int64_t r =
        is_small ? static_cast<std::uint32_t>(at) / static_cast<std::uint32_t>(row) : at / row;
    into[i] = after(later_decay[r], earlier[i], later[i]);
    if (into_decay != nullptr && i % row == 0) into_decay[r] = later_decay[r] * earlier_decay[r];
  }
}

/// Multiplies the decays of two maps, element by element. `into` may be either operand.
__global__ void __launch_bounds__(threads)
    multiply_kernel(float* into, const float* earlier, const float* later, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * threads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += stride)
    into[i] = later[i] * earlier[i];
}

/// Number of thread blocks for `count` threads, at most four a multiprocessor.
int grid(std::int64_t count) {
  int gpu = 0, processors = 0;
  cuda(cudaGetDevice(&gpu));
  cuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, gpu));
  constexpr int blocks_per_processor = 4;
  return static_cast<int>(
      std::clamp<std::int64_t>((count + threads - 1) / threads, 1, processors * blocks_per_processor));
}

bool is_aligned(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer) % sizeof(float4) == 0;
}

bool overlap(std::span<const float> a, std::span<const float> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

/// Elements of a state that share a decay.
std::int64_t elements_per_decay(const Combine& by) { return by.form.share * by.row; }

template <class Pack>
void launch_combine(cudaStream_t stream, std::span<float> into, std::span<const float> earlier,
                    std::span<const float> later_decay, std::span<const float> later, const Combine& by,
                    float* into_decay, const float* earlier_decay) {
  constexpr std::int64_t width = sizeof(Pack) / sizeof(float);
  const std::int64_t count = static_cast<std::int64_t>(into.size()) / width;
  const std::int64_t row = elements_per_decay(by) / width, before = by.form.first * by.row / width;
  combine_kernel<<<grid(count), threads, 0, stream>>>(
      reinterpret_cast<Pack*>(into.data()), reinterpret_cast<const Pack*>(earlier.data()), later_decay.data(),
      reinterpret_cast<const Pack*>(later.data()), count, row, before, into_decay, earlier_decay);
  cuda_launched();
}

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// Number of the mark before an operation; the mark behind the operation has the next number. Mark
/// 0 is the round's start.
int first_mark(std::size_t operation) { return 1 + 2 * static_cast<int>(operation); }

}  // namespace

void combine_on_device(cudaStream_t stream, const DeviceOperands& operands, const Combine& by) {
  if (by.form.kind == MapKind::affine) return combine_affine_on_device(stream, operands, by);
  const bool composes = operands.writes.size() == 2;
  const auto into = operands.writes.back().f32();
  const auto earlier = operands.reads[composes ? 1 : 0].f32();
  const auto later_decay = operands.reads[composes ? 2 : 1].f32();
  const auto later = operands.reads[composes ? 3 : 2].f32();
  const auto decay = composes ? operands.writes.front().f32() : std::span<float>{};
  // Threads of a row would read a decay that another has written already.
  const bool fuses = composes && !overlap(decay, later_decay);
  float* into_decay = fuses ? decay.data() : nullptr;
  const float* earlier_decay = fuses ? operands.reads[0].f32().data() : nullptr;
  const bool is_wide = elements_per_decay(by) % 4 == 0 && by.form.first * by.row % 4 == 0 &&
                       is_aligned(into.data()) && is_aligned(earlier.data()) && is_aligned(later.data());
  (is_wide ? launch_combine<float4> : launch_combine<float>)(stream, into, earlier, later_decay, later, by,
                                                             into_decay, earlier_decay);
  if (!composes || fuses) return;
  const auto rows = static_cast<std::int64_t>(decay.size());
  multiply_kernel<<<grid(rows), threads, 0, stream>>>(decay.data(), operands.reads[0].f32().data(),
                                                      later_decay.data(), rows);
  cuda_launched();
}

void run_on_device(cudaStream_t stream, const Schedule& schedule, const Step& step,
                   const DeviceOperands& operands) {
  if (step.verb == Verb::copy)
    cuda(cudaMemcpyAsync(operands.writes[0].data(), operands.reads[0].data(),
                         static_cast<std::size_t>(step.reads[0].bytes()), cudaMemcpyDeviceToDevice, stream));
  if (step.verb == Verb::combine) combine_on_device(stream, operands, step.combine);
  if (step.verb != Verb::compute) return;
  const Kernel& kernel = schedule.kernels()[step.body];
  find_cuda_kernel(kernel)({stream, operands, kernel});
}

Refusal lacks_device_body(const Schedule& schedule) {
  for (const Step& step : schedule.steps())
    if (step.combine.form.kind == MapKind::affine)
      if (Refusal refusal = lacks_products(step)) return refusal;
  for (const Kernel& kernel : schedule.kernels())
    if (Refusal refusal = unsupported_on_device(kernel)) return refusal;
  return {};
}

Stopwatch::~Stopwatch() {
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

void Stopwatch::mark(int mark, cudaStream_t stream) {
  while (static_cast<int>(events_.size()) <= mark) cuda(cudaEventCreate(&events_.emplace_back()));
  cuda(cudaEventRecord(events_[mark], stream));
}

bool Stopwatch::has_come(int mark) const {
  const cudaError_t code = cudaEventQuery(events_[mark]);
  if (code != cudaErrorNotReady) cuda(code);
  return code == cudaSuccess;
}

double Stopwatch::seconds(int from, int to) const {
  float milliseconds = 0;
  cuda(cudaEventElapsedTime(&milliseconds, events_[from], events_[to]));
  return milliseconds * 1e-3;
}

Round::Round(Schedule schedule, std::vector<LaunchOperation> operations)
    : schedule_(std::move(schedule)), operations_(std::move(operations)), done_(operations_.size()) {
  for (const LaunchOperation& operation : operations_)
    if (operation.waits_for >= 0 && done_[operation.waits_for] == nullptr)
      done_[operation.waits_for] = new_event();
  if (std::none_of(operations_.begin(), operations_.end(),
                   [](auto& operation) { return operation.computes; }))
    return;
  cuda(cudaStreamCreateWithFlags(&compute_stream_, cudaStreamNonBlocking));
  forked_ = new_event();
  joined_ = new_event();
}

Round::~Round() {
  for (cudaEvent_t event : done_)
    if (event != nullptr) cudaEventDestroy(event);
  if (compute_stream_ == nullptr) return;
  cudaEventDestroy(forked_);
  cudaEventDestroy(joined_);
  cudaStreamDestroy(compute_stream_);
}

void Round::enqueue(cudaStream_t stream, Stopwatch* marks) const {
  if (marks != nullptr) marks->mark(0, stream);
  if (compute_stream_ != nullptr) {
    cuda(cudaEventRecord(forked_, stream));
    cuda(cudaStreamWaitEvent(compute_stream_, forked_));
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const cudaStream_t into = operations_[i].computes ? compute_stream_ : stream;
    if (operations_[i].waits_for >= 0) cuda(cudaStreamWaitEvent(into, done_[operations_[i].waits_for]));
    if (marks != nullptr) marks->mark(first_mark(i), into);
    enqueue_operation(i, into);
    if (marks != nullptr) marks->mark(first_mark(i) + 1, into);
    if (done_[i] != nullptr) cuda(cudaEventRecord(done_[i], into));
  }
  if (compute_stream_ == nullptr) return;
  cuda(cudaEventRecord(joined_, compute_stream_));
  cuda(cudaStreamWaitEvent(stream, joined_));
}

std::vector<StepTime> Round::step_times(const Stopwatch& marks) const {
  std::vector<StepTime> times;
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const double start = marks.seconds(0, first_mark(i)), finish = marks.seconds(0, first_mark(i) + 1);
    for (int step : operations_[i].steps) times.push_back({schedule_.home_rank(), step, start, finish});
  }
  return times;
}

}  // namespace baton
