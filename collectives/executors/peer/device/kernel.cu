// SPDX-License-Identifier: Apache-2.0
// The interpreter of peer programs.
#include <algorithm>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/device/interpreter.cuh"

namespace baton {
namespace {

constexpr unsigned most_threads = 512;
constexpr unsigned window = 32;  // instructions that a block keeps at hand

/// The first instruction comes with the launch: a thread need not fetch it before it can load its first operands.
template <class Wire, PeerTransport transport>
__global__ void __launch_bounds__(most_threads)
    peer_kernel(const __grid_constant__ PeerRoute route, const __grid_constant__ PeerDeviceInstruction first,
                const PeerDeviceInstruction* program, unsigned count, const __grid_constant__ PeerPart part) {
  __shared__ PeerDeviceInstruction at_hand[window];
  Interpreter<Wire, transport> interpreter(route, part);
  if (count == 0) return interpreter.enter();
  constexpr unsigned words = sizeof(PeerDeviceInstruction) / sizeof(uint4);
  const auto stage = [&](const PeerDeviceInstruction* from, unsigned place, unsigned instructions) {
    for (unsigned i = threadIdx.x; i < instructions * words; i += blockDim.x)
      reinterpret_cast<uint4*>(at_hand + place)[i] = reinterpret_cast<const uint4*>(from)[i];
  };
  stage(&first, 0, 1);
  __syncthreads();
  stage(program + 1, 1, min(window, count) - 1);  // seen behind the barrier that opens the round
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0 && i % window == 0) {
      __syncthreads();
      stage(program + i, 0, min(window, count - i));
      __syncthreads();
    }
    interpreter.run(at_hand[i % window], i == 0);
  }
}

bool is_aligned(const PeerDeviceInstruction& in) {
  const auto lies = [](const float* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  return lies(in.from) && lies(in.other) && std::all_of(in.keep, in.keep + in.kept, lies) &&
         std::all_of(in.results, in.results + in.resulting, lies);
}

PeerForm form_of(const PeerDeviceInstruction& in, int packet_elements) {
  const auto E = static_cast<unsigned>(packet_elements);
  const bool arrives = in.arrival != nullptr;
  const bool tidy = in.whole && in.count % E == 0 && in.kept <= 1 && in.resulting == 0 &&
                    (in.sent <= 1 || (!arrives && !in.folds));
  const bool folds_plainly = in.row % E == 0 && in.other != nullptr && in.decay_arrival == nullptr &&
                             !in.x_is_later && in.sends_y == 1;
  if (!tidy || (in.folds && !folds_plainly)) return PeerForm::any;
  if (in.folds) return arrives ? PeerForm::tidy_arrival_fold : PeerForm::tidy_load_fold;
  return arrives ? PeerForm::tidy_arrival : PeerForm::tidy_load;
}

/// Turns slices and messages into addresses.
class Resolver {
 public:
  Resolver(const PeerProgram& program, const PeerPlace& place, std::int64_t threads)
      : program_(program),
        memory_(place.memory),
        route_(place.route),
        heaps_(place.heaps),
        layout_(place.layout),
        threads_(threads) {}

  PeerDeviceInstruction operator()(const PeerInstruction& from) const {
    PeerDeviceInstruction into{};
    into.from = memory_.at(from.from);
    into.count = static_cast<unsigned>(from.count);
    into.packets = static_cast<unsigned>(from.packets(program_.packet_elements));
    into.column = static_cast<unsigned>((from.column % threads_ + threads_) % threads_);
    into.step = from.steps[0];
    into.barrier = from.barrier;
    if (from.arrival) {
      into.arrival = slot(route_.rank, *from.arrival);
      into.arrival_flags = flags(route_.rank, *from.arrival);
      into.arrival_peer = from.arrival->peer;
    }
    if (from.fold) add_fold(into, *from.fold);
    for (const Slice& slice : from.keep) into.keep[into.kept++] = memory_.at(slice);
    for (const Slice& slice : from.results) into.results[into.resulting++] = memory_.at(slice);
    for (const PeerSend& send : from.sends) {
      into.sends_y |= static_cast<unsigned char>(send.folded << into.sent);
      into.sends[into.sent] = slot(send.to.peer, send.to);
      into.send_flags[into.sent++] = flags(send.to.peer, send.to);
    }
    into.whole = is_aligned(into);
    into.form = form_of(into, program_.packet_elements);
    return into;
  }

 private:
  void add_fold(PeerDeviceInstruction& into, const PeerFold& fold) const {
    into.folds = true;
    into.x_is_later = fold.x_is_later;
    into.row = static_cast<unsigned>(fold.row);
    into.other = memory_.at(fold.other);
    into.decay = memory_.at(fold.decay);
    if (!fold.arrived) return;
    into.decay_arrival = slot(route_.rank, fold.arrived->from);
    into.decay_flags = flags(route_.rank, fold.arrived->from);
    into.decay_peer = fold.arrived->from.peer;
    into.first_decay = static_cast<unsigned>(fold.arrived->first);
    into.clears_decays = fold.arrived->clears;
  }

  std::byte* slot(int rank, const PeerMessage& message) const {
    return heaps_[rank] + layout_.inbox + message.packet * packet_bytes;
  }
  unsigned* flags(int rank, const PeerMessage& message) const {
    return reinterpret_cast<unsigned*>(heaps_[rank] + layout_.message_flags) + message.number * route_.ctas;
  }

  const PeerProgram& program_;
  const DeviceMemory& memory_;
  const PeerRoute& route_;
  const std::vector<std::byte*>& heaps_;
  const PeerLayout& layout_;
  std::int64_t threads_;
};

auto kernel_for(const PeerLaunch& launch) {
  const bool packets = launch.transport == PeerTransport::packets;
  if (launch.wire == PeerWire::bf16)
    return packets ? peer_kernel<WireBf16, PeerTransport::packets>
                   : peer_kernel<WireBf16, PeerTransport::fenced>;
  return packets ? peer_kernel<WireF32, PeerTransport::packets> : peer_kernel<WireF32, PeerTransport::fenced>;
}

}  // namespace

int packet_elements(PeerWire wire) { return wire == PeerWire::bf16 ? WireBf16::elements : WireF32::elements; }

unsigned peer_threads(std::int64_t packets, unsigned ctas, unsigned most) {
  const std::int64_t wanted = (packets + ctas - 1) / ctas;
  return static_cast<unsigned>(std::clamp<std::int64_t>((wanted + 31) / 32 * 32, 64, most));
}

PeerKernel::PeerKernel(const PeerProgram& program, const PeerOperation& operation, const PeerPart& part,
                       const PeerPlace& place, const PeerLaunch& launch)
    : route_(place.route),
      part_(part),
      launch_(launch),
      count_(static_cast<unsigned>(operation.last - operation.first)) {
  const Resolver resolve(program, place, std::int64_t{launch.ctas} * launch.threads);
  std::vector<PeerDeviceInstruction> resolved;
  for (int i = operation.first; i < operation.last; ++i) {
    resolved.push_back(resolve(program.instructions[i]));
    for (const PeerSend& send : program.instructions[i].sends) part_.receivers |= bit_of(send.to.peer);
  }
  const std::size_t bytes = resolved.size() * sizeof resolved[0];
  if (bytes == 0) return;
  first_ = resolved[0];
  cuda(cudaMalloc(&program_, bytes));
  cuda(cudaMemcpy(program_, resolved.data(), bytes, cudaMemcpyHostToDevice));
}

PeerKernel::~PeerKernel() { cudaFree(program_); }

void PeerKernel::enqueue(cudaStream_t stream) const {
  kernel_for(launch_)<<<launch_.ctas, launch_.threads, 0, stream>>>(route_, first_, program_, count_, part_);
  cuda_launched();
}

}  // namespace baton
