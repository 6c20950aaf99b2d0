// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/products.cuh"
#include "collectives/executors/peer/device/gpu.cuh"
#include "collectives/executors/peer/device/interpreter.cuh"
#include "collectives/executors/peer/rounds.cuh"

namespace baton {
namespace {

constexpr unsigned most_threads = 512;
static_assert(product_threads <= most_threads);
constexpr unsigned staged = 32;  // instructions that a block keeps in shared memory

/// The machine of kernels that multiply: a GPU whose blocks share tiles of rows.
struct MultiplyingGpu : Gpu {
  template <unsigned width>
  using Products = baton::Products<width>;

  /// Tile `which` in shared memory: tile 0 has the rows, tile 1 the results, tile 2 room for
  /// products.
  __device__ static float* tile(int which) {
    __shared__ alignas(16) float tiles[3][most_tile_elements];
    return tiles[which];
  }

  template <int count>
  __device__ static Elements<count> load_shared(const float* from, unsigned n, bool whole) {
    Elements<count> x;
    if (whole) {
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(from + i);
        x.v[i] = four.x, x.v[i + 1] = four.y, x.v[i + 2] = four.z, x.v[i + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) x.v[i] = i < n ? from[i] : 0.0F;
    }
    return x;
  }
};

/// Runs the instructions of one operation. The first one is an argument of the kernel, so that a
/// thread need not fetch it before it loads its first operands; a single one is read in place.
template <class Format, bool has_one, bool multiplies>
__global__ void __launch_bounds__(multiplies ? product_threads : most_threads)
    peer_kernel(const __grid_constant__ PeerContext context,
                const __grid_constant__ PeerDeviceInstruction first, const PeerDeviceInstruction* program,
                unsigned count, const __grid_constant__ KernelRole role) {
  using Machine = std::conditional_t<multiplies, MultiplyingGpu, Gpu>;
  Interpreter<Machine, Format, multiplies> interpreter(context, role);
  if constexpr (has_one) return interpreter.run(first, true);
  __shared__ PeerDeviceInstruction staging[staged];
  if (count == 0) return interpreter.enter();
  constexpr unsigned words = sizeof(PeerDeviceInstruction) / sizeof(uint4);
  const auto stage = [&](const PeerDeviceInstruction* from, unsigned place, unsigned instructions) {
    for (unsigned i = threadIdx.x; i < instructions * words; i += blockDim.x)
      reinterpret_cast<uint4*>(staging + place)[i] = reinterpret_cast<const uint4*>(from)[i];
  };
  stage(&first, 0, 1);
  __syncthreads();
  stage(program + 1, 1, min(staged, count) - 1);  // visible behind the barrier that opens the round
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0 && i % staged == 0) {
      __syncthreads();
      stage(program + i, 0, min(staged, count - i));
      __syncthreads();
    }
    interpreter.run(staging[i % staged], i == 0);
  }
}

template <class Format, bool multiplies>
auto kernel_for(bool has_one) {
  return has_one ? peer_kernel<Format, true, multiplies> : peer_kernel<Format, false, multiplies>;
}

auto kernel_for(ElementFormat format, bool has_one, bool multiplies) {
  using F32 = F32Format<Gpu>;
  using Bf16 = Bf16Format<Gpu>;
  const bool is_bf16 = format == ElementFormat::bf16;
  if (multiplies) return (is_bf16 ? kernel_for<Bf16, true> : kernel_for<F32, true>)(has_one);
  return (is_bf16 ? kernel_for<Bf16, false> : kernel_for<F32, false>)(has_one);
}

/// The operations of a native: a single one, whose steps are not timed by themselves.
std::vector<LaunchOperation> one_operation() { return std::vector<LaunchOperation>(1); }

}  // namespace

Registry<PeerNative>& peer_natives() {
  static Registry<PeerNative> all("peer native");
  return all;
}

bool is_whole_scan(const PeerCall& call, int elements) {
  const auto lies = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  const auto decay = call.operands.reads[0], state = call.operands.reads[1];
  return state.size() / decay.size() % static_cast<std::size_t>(elements) == 0 && lies(state.data()) &&
         lies(call.operands.writes[0].data());
}

const PeerNative* only_peer_native(const Schedule& schedule) {
  const auto& steps = schedule.steps();
  if (steps.size() != 1 || steps[0].verb != Verb::native) return nullptr;
  return peer_natives().find(schedule.natives()[steps[0].body].name);
}

ScheduleRound::ScheduleRound(const Schedule& schedule, const PeerProgram& program, const DeviceMemory& memory,
                             PeerExchange& exchange, ElementFormat format, unsigned overlap_ctas)
    : Round(schedule, program.operations), exchange_(exchange), format_(format) {
  for (const Step& step : schedule.steps()) operands_.push_back(memory.operands(step));
  const unsigned all = multiprocessors();
  const PeerBlocks blocks{.alone = all, .overlapping = std::min(overlap_ctas, all)};
  exchange.reset(program.inbox_packets, all);
  context_ = exchange.context();
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const LaunchOperation& operation = program.operations[i];
    Kernel& kernel = kernels_.emplace_back();
    if (operation.computes) continue;
    kernel.role = role_of(program, i);
    kernel.ctas = blocks.of(operation);
    kernel.multiplies = multiplies(program, operation);
    kernel.threads = kernel.multiplies ? product_threads : peer_threads(program.width, kernel.ctas);
    const auto instructions = resolve(program, operation, context_, exchange.heap().all(),
                                      std::int64_t{kernel.ctas} * kernel.threads,
                                      [&](const Slice& slice) { return memory.at(slice); });
    kernel.count = static_cast<unsigned>(instructions.size());
    if (kernel.count == 0) continue;
    kernel.first = instructions[0];
    const std::size_t bytes = instructions.size() * sizeof instructions[0];
    cuda(cudaMalloc(&kernel.program, bytes));
    cuda(cudaMemcpy(kernel.program, instructions.data(), bytes, cudaMemcpyHostToDevice));
  }
}

ScheduleRound::~ScheduleRound() {
  for (const Kernel& kernel : kernels_) cudaFree(kernel.program);
}

void ScheduleRound::enqueue_operation(std::size_t operation, cudaStream_t stream) const {
  if (operations()[operation].computes) {
    const int step = operations()[operation].steps[0];
    return run_on_device(stream, schedule(), schedule().steps()[step], operands_[step]);
  }
  const Kernel& kernel = kernels_[operation];
  kernel_for(format_, kernel.count == 1, kernel.multiplies)<<<kernel.ctas, kernel.threads, 0, stream>>>(
      context_, kernel.first, kernel.program, kernel.count, kernel.role);
  cuda_launched();
}

NativeRound::NativeRound(std::span<const Schedule> schedules, int rank, const DeviceMemory& memory,
                         PeerExchange& exchange, ElementFormat format)
    : Round(schedules[rank], one_operation()),
      exchange_(exchange),
      format_(format),
      native_(*only_peer_native(schedules[rank])),
      operands_(memory.operands(schedules[rank].steps()[0])) {
  std::int64_t packets = 0;
  for (const Schedule& schedule : schedules)
    packets =
        std::max(packets, native_.packets(schedule.steps()[0], schedule.ranks(), packet_elements(format)));
  exchange.reset(packets, native_.ctas(multiprocessors()));
  for (std::byte* heap : exchange.heap().all()) inboxes_.push_back(heap + inbox_offset(exchange.context()));
}

void NativeRound::enqueue_operation(std::size_t, cudaStream_t stream) const {
  const NativeCall& call = schedule().natives()[0];
  const PeerContext& context = exchange_.context();
  native_.body({.stream = stream,
                .context = context,
                .inboxes = inboxes_,
                .format = format_,
                .place = call.reversed ? context.ranks - 1 - context.rank : context.rank,
                .reversed = call.reversed,
                .blocks = call.blocks,
                .operands = operands_});
}

}  // namespace baton
