// SPDX-License-Identifier: Apache-2.0
// The interpreter of peer programs.
#include <algorithm>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/peer_kernel.cuh"

namespace baton {
namespace {

constexpr unsigned most_threads = 512;
constexpr unsigned window = 32;  // instructions that a block keeps at hand

/// What a packet's work needs beside x, loaded while x is on its way.
template <int count>
struct Beside {
  Elements<count> other;
  Elements<count> decay;
  uint4 seen;
};

template <class Wire, PeerTransport transport>
class Interpreter {
 public:
  __device__ Interpreter(const PeerRoute& route, const PeerEntry& entry)
      : route_(route),
        thread_(route, entry.round, entry.may_send),
        threads_(route.ctas * blockDim.x),
        number_(blockIdx.x * blockDim.x + threadIdx.x) {}

  __device__ void run(const PeerDeviceInstruction& in) {
    if (in.barrier) thread_.meet(in.step);
    if constexpr (transport == PeerTransport::fenced) await_flags(in);
    const unsigned first = number_ >= in.column ? number_ - in.column : number_ + threads_ - in.column;
    for (unsigned packet = first; packet < in.packets; packet += threads_) {
      const auto beside = load_beside(in, packet);
      finish(in, packet, beside);
    }
    if constexpr (transport == PeerTransport::fenced) raise_flags(in);
  }

 private:
  static constexpr int E = Wire::elements;
  using Pack = Elements<E>;

  __device__ unsigned elements_of(const PeerDeviceInstruction& in, unsigned packet) const {
    return min(static_cast<unsigned>(E), in.count - packet * E);
  }

  __device__ std::byte* slot(std::byte* first, unsigned packet) const {
    return first + std::size_t{packet} * packet_bytes;
  }

  __device__ Beside<E> load_beside(const PeerDeviceInstruction& in, unsigned packet) {
    Beside<E> beside{};
    const unsigned n = elements_of(in, packet);
    if (in.other != nullptr) beside.other = load_elements<E>(in.other + packet * E, n, in.whole);
    if (in.folds && in.decay_arrival == nullptr) beside.decay = load_decays(in, packet, n);
    if (in.arrival != nullptr) beside.seen = load_packet(thread_.now(slot(in.arrival, packet)));
    return beside;
  }

  __device__ Pack load_decays(const PeerDeviceInstruction& in, unsigned packet, unsigned n) const {
    Pack decay{};
    if (in.row % E == 0) {
      const float one = __ldcg(in.decay + packet * E / in.row);
#pragma unroll
      for (int i = 0; i < E; ++i) decay.v[i] = one;
    } else {
#pragma unroll
      for (int i = 0; i < E; ++i)
        if (i < n) decay.v[i] = __ldcg(in.decay + (packet * E + i) / in.row);
    }
    return decay;
  }

  /// Decays where they arrived: every thread of a row waits for them there.
  __device__ Pack await_decays(const PeerDeviceInstruction& in, unsigned packet, unsigned n) {
    Pack decay{}, arrived{};
    unsigned last = ~0u;
#pragma unroll
    for (int i = 0; i < E; ++i) {
      if (i >= n) break;
      const unsigned element = in.first_decay + (packet * E + i) / in.row;
      if (element / E != last) {
        last = element / E;
        arrived = await(in.decay_arrival, last, in.step, in.decay_peer, in.clears_decays);
      }
#pragma unroll
      for (int lane = 0; lane < E; ++lane)
        if (element % E == lane) decay.v[i] = arrived.v[lane];
    }
    return decay;
  }

  __device__ Pack await(std::byte* inbox, unsigned packet, int step, int peer, bool clears) {
    std::byte* const at = slot(inbox, packet);
    return receive(at, load_packet(thread_.now(at)), packet, step, peer, clears);
  }

  __device__ Pack receive(std::byte* at, const uint4& seen, unsigned packet, int step, int peer,
                          bool clears) {
    if constexpr (transport == PeerTransport::fenced) return Wire::unpack(seen);
    const uint4 arrived = thread_.await_packet(at, seen, step, peer, packet);
    if (clears) empty_slot(thread_.before(at));
    return Wire::unpack(arrived);
  }

  __device__ void finish(const PeerDeviceInstruction& in, unsigned packet, const Beside<E>& beside) {
    const unsigned n = elements_of(in, packet), at = packet * E;
    const Pack x = in.arrival != nullptr ? receive(slot(in.arrival, packet), beside.seen, packet, in.step,
                                                   in.arrival_peer, true)
                                         : load_elements<E>(in.from + at, n, in.whole);
    Pack y{};
    if (in.folds) {
      const Pack decay = in.decay_arrival != nullptr ? await_decays(in, packet, n) : beside.decay;
#pragma unroll
      for (int i = 0; i < E; ++i)
        y.v[i] = in.x_is_later ? __fmaf_rn(decay.v[i], beside.other.v[i], x.v[i])
                               : __fmaf_rn(decay.v[i], x.v[i], beside.other.v[i]);
    }
    if (thread_.gave_up()) return;
    send(in, packet, x, y);
    for (int i = 0; i < in.kept; ++i) store_elements<E>(in.keep[i] + at, x, n, in.whole);
    for (int i = 0; i < in.resulting; ++i) store_elements<E>(in.results[i] + at, y, n, in.whole);
  }

  __device__ void send(const PeerDeviceInstruction& in, unsigned packet, const Pack& x, const Pack& y) {
    if (in.sent == 0) return;
    const uint4 of_x = Wire::pack(x), of_y = Wire::pack(y);
    for (int i = 0; i < in.sent; ++i)
      store_packet(thread_.now(slot(in.sends[i], packet)), in.sends_y >> i & 1 ? of_y : of_x);
  }

  /// Waits until all blocks of the senders have raised their flags for this round.
  __device__ void await_flags(const PeerDeviceInstruction& in) {
    for (unsigned cta = threadIdx.x; cta < route_.ctas; cta += blockDim.x) {
      if (in.arrival != nullptr)
        thread_.await(in.arrival_flags + cta, thread_.round(), PeerFault::Kind::flag, in.step,
                      in.arrival_peer, cta);
      if (in.decay_arrival != nullptr)
        thread_.await(in.decay_flags + cta, thread_.round(), PeerFault::Kind::flag, in.step, in.decay_peer,
                      cta);
    }
    __syncthreads();
  }

  __device__ void raise_flags(const PeerDeviceInstruction& in) {
    __syncthreads();
    if (threadIdx.x < in.sent && !thread_.gave_up())
      raise_flag(in.send_flags[threadIdx.x] + blockIdx.x, thread_.round());
  }

  const PeerRoute& route_;
  PeerThread thread_;
  unsigned threads_;
  unsigned number_;
};

template <class Wire, PeerTransport transport>
__global__ void __launch_bounds__(most_threads, 2)
    peer_kernel(const __grid_constant__ PeerRoute route, std::uint64_t receivers,
                const PeerDeviceInstruction* program, unsigned count) {
  __shared__ PeerDeviceInstruction at_hand[window];
  if (announces_round(route)) return;
  constexpr unsigned words = sizeof(PeerDeviceInstruction) / sizeof(uint4);
  const auto stage = [&](unsigned first) {
    const auto* from = reinterpret_cast<const uint4*>(program + first);
    for (unsigned i = threadIdx.x; i < min(window, count - first) * words; i += blockDim.x)
      reinterpret_cast<uint4*>(at_hand)[i] = from[i];
  };
  stage(0);
  Interpreter<Wire, transport> interpreter(route, enter_round(route, receivers, true));
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0 && i % window == 0) {
      __syncthreads();
      stage(i);
      __syncthreads();
    }
    interpreter.run(at_hand[i % window]);
  }
}

bool is_aligned(const PeerDeviceInstruction& in) {
  const auto lies = [](const float* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  return lies(in.from) && lies(in.other) && std::all_of(in.keep, in.keep + in.kept, lies) &&
         std::all_of(in.results, in.results + in.resulting, lies);
}

/// Turns slices and messages into addresses.
class Resolver {
 public:
  Resolver(const PeerProgram& program, const DeviceMemory& memory, const PeerRoute& route,
           const std::vector<std::byte*>& heaps, const PeerLayout& layout, unsigned threads)
      : program_(program),
        memory_(memory),
        route_(route),
        heaps_(heaps),
        layout_(layout),
        threads_(route.ctas * threads) {}

  PeerDeviceInstruction operator()(const PeerInstruction& from) const {
    PeerDeviceInstruction into{};
    into.from = memory_.at(from.from);
    into.count = static_cast<unsigned>(from.count);
    into.packets = static_cast<unsigned>(from.packets(program_.packet_elements));
    into.column = static_cast<unsigned>((from.column % threads_ + threads_) % threads_);
    into.step = from.step;
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

unsigned peer_threads(std::int64_t packets, unsigned ctas) {
  const std::int64_t wanted = (packets + ctas - 1) / ctas;
  return static_cast<unsigned>(std::clamp<std::int64_t>((wanted + 31) / 32 * 32, 64, most_threads));
}

PeerKernel::PeerKernel(const PeerProgram& program, const DeviceMemory& memory, const PeerRoute& route,
                       const std::vector<std::byte*>& heaps, const PeerLayout& layout,
                       const PeerLaunch& launch)
    : route_(route), launch_(launch), count_(static_cast<unsigned>(program.instructions.size())) {
  const Resolver resolve(program, memory, route, heaps, layout, launch.threads);
  std::vector<PeerDeviceInstruction> resolved;
  for (const PeerInstruction& instruction : program.instructions) {
    resolved.push_back(resolve(instruction));
    for (const PeerSend& send : instruction.sends) receivers_ |= std::uint64_t{1} << send.to.peer;
  }
  const std::size_t bytes = resolved.size() * sizeof resolved[0];
  if (bytes == 0) return;
  cuda(cudaMalloc(&program_, bytes));
  cuda(cudaMemcpy(program_, resolved.data(), bytes, cudaMemcpyHostToDevice));
}

PeerKernel::~PeerKernel() { cudaFree(program_); }

void PeerKernel::enqueue(cudaStream_t stream) const {
  kernel_for(launch_)<<<route_.ctas + 1, launch_.threads, 0, stream>>>(route_, receivers_, program_, count_);
  cuda_launched();
}

}  // namespace baton
