// SPDX-License-Identifier: Apache-2.0
// The interpreter of peer programs.
#include <algorithm>

#include "collectives/executors/cuda_error.cuh"
#include "collectives/executors/peer_kernel.cuh"

namespace baton {
namespace {

constexpr unsigned most_threads = 512;
constexpr unsigned window = 32;  // instructions that a block keeps at hand

/// What is known of a tidy instruction when its loop is compiled.
template <bool does_arrive, bool does_fold>
struct Form {
  static constexpr bool arrives = does_arrive;
  static constexpr bool folds = does_fold;
};

/// One thread of a rank.
template <class Wire, PeerTransport transport>
class Interpreter {
 public:
  __device__ Interpreter(const PeerRoute& route, const PeerPart& part)
      : route_(route),
        part_(part),
        thread_(route),
        threads_(route.ctas * blockDim.x),
        number_(blockIdx.x * blockDim.x + threadIdx.x) {}

  /// The first instruction `opens` the round.
  __device__ void run(const PeerDeviceInstruction& in, bool opens) {
    if (in.barrier) thread_.meet(in.step);
    switch (in.form) {
      case PeerForm::tidy_load: return run_tidy<Form<false, false>>(in, opens);
      case PeerForm::tidy_load_fold: return run_tidy<Form<false, true>>(in, opens);
      case PeerForm::tidy_arrival: return run_tidy<Form<true, false>>(in, opens);
      case PeerForm::tidy_arrival_fold: return run_tidy<Form<true, true>>(in, opens);
      case PeerForm::any: return run_any(in, opens);
    }
  }

  __device__ void enter() { thread_.enter(enter_round(route_, part_)); }

 private:
  static constexpr int E = Wire::elements;
  static constexpr bool fenced = transport == PeerTransport::fenced;
  using Pack = Elements<E>;

  __device__ unsigned first_packet(const PeerDeviceInstruction& in) const {
    return number_ >= in.column ? number_ - in.column : number_ + threads_ - in.column;
  }

  __device__ static std::byte* slot(std::byte* first, unsigned packet) {
    return first + std::size_t{packet} * packet_bytes;
  }

  __device__ void begin(const PeerDeviceInstruction& in, bool opens) {
    if (opens) enter();
    if constexpr (fenced) await_flags(in);
  }

  __device__ void end(const PeerDeviceInstruction& in) {
    if constexpr (fenced) raise_flags(in);
  }

  /// Operands of the next packet are under way while this one is awaited.
  template <class F>
  __device__ void run_tidy(const PeerDeviceInstruction& in, bool opens) {
    const Tidy<F> work(in);
    const unsigned packets = in.packets;
    unsigned packet = first_packet(in);
    auto ahead = work.load(packet, packets);
    begin(in, opens);
    for (; packet < packets; packet += threads_) {
      const auto here = ahead;
      ahead = work.load(packet + threads_, packets);
      Pack x = here.x;
      if constexpr (F::arrives) x = await(work.arrival, packet, work.step, work.peer, true);
      if (thread_.gave_up()) continue;
      const uint4 sent = Wire::pack(work.value(x, here));
#pragma unroll
      for (int i = 0; i < Tidy<F>::receivers; ++i)
        if (work.sends[i] != nullptr) store_packet(thread_.now(slot(work.sends[i], packet)), sent);
      if (work.keep != nullptr) store_elements<E>(work.keep + packet * E, x, E, true);
    }
    end(in);
  }

  /// A tidy instruction in registers.
  template <class F>
  struct Tidy {
    static constexpr int receivers = F::arrives || F::folds ? 1 : PeerLimits::sends;
    struct Operands {
      Pack x;      // where it comes from memory
      Pack other;  // the later state of a fold
      float decay;
    };

    __device__ explicit Tidy(const PeerDeviceInstruction& in)
        : from(in.from),
          arrival(in.arrival),
          other(in.other),
          decay(in.decay),
          keep(in.keep[0]),
          row(in.row),
          step(in.step),
          peer(in.arrival_peer) {
#pragma unroll
      for (int i = 0; i < receivers; ++i) sends[i] = in.sends[i];
    }

    __device__ Operands load(unsigned packet, unsigned packets) const {
      Operands loaded{};
      if (packet >= packets) return loaded;
      if constexpr (!F::arrives) loaded.x = load_elements<E>(from + packet * E, E, true);
      if constexpr (F::folds) {
        loaded.other = load_elements<E>(other + packet * E, E, true);
        loaded.decay = __ldcg(decay + packet * E / row);
      }
      return loaded;
    }

    __device__ Pack value(const Pack& x, const Operands& operands) const {
      if constexpr (!F::folds) {
        return x;
      } else {
        Pack y;
#pragma unroll
        for (int i = 0; i < E; ++i) y.v[i] = __fmaf_rn(operands.decay, x.v[i], operands.other.v[i]);
        return y;
      }
    }

    const float* from;
    std::byte* arrival;
    const float* other;
    const float* decay;
    float* keep;
    unsigned row;
    int step;
    int peer;
    std::byte* sends[receivers];
  };

  __device__ void run_any(const PeerDeviceInstruction& in, bool opens) {
    begin(in, opens);
    for (unsigned packet = first_packet(in); packet < in.packets; packet += threads_) {
      const unsigned at = packet * E, n = min(static_cast<unsigned>(E), in.count - at);
      const Pack x = in.arrival != nullptr ? await(in.arrival, packet, in.step, in.arrival_peer, true)
                                           : load_elements<E>(in.from + at, n, in.whole);
      const Pack y = in.folds ? fold(in, at, n, x) : x;
      if (thread_.gave_up()) continue;
      for (int i = 0; i < in.sent; ++i)
        store_packet(thread_.now(slot(in.sends[i], packet)), Wire::pack(in.sends_y >> i & 1 ? y : x));
      for (int i = 0; i < in.kept; ++i) store_elements<E>(in.keep[i] + at, x, n, in.whole);
      for (int i = 0; i < in.resulting; ++i) store_elements<E>(in.results[i] + at, y, n, in.whole);
    }
    end(in);
  }

  /// The packet of a message, once it has come. `clears` its slot of the round before.
  __device__ Pack await(std::byte* inbox, unsigned packet, int step, int peer, bool clears) {
    std::byte* const at = slot(inbox, packet);
    if constexpr (fenced) return Wire::unpack(load_packet(thread_.now(at)));
    const uint4 arrived = thread_.await_packet(at, step, peer, packet);
    if (clears) empty_slot(thread_.before(at));
    return Wire::unpack(arrived);
  }

  __device__ Pack fold(const PeerDeviceInstruction& in, unsigned at, unsigned n, const Pack& x) {
    Pack other{};
    if (in.other != nullptr) other = load_elements<E>(in.other + at, n, in.whole);
    const Pack decay = decays(in, at, n);
    Pack y;
#pragma unroll
    for (int i = 0; i < E; ++i)
      y.v[i] = in.x_is_later ? __fmaf_rn(decay.v[i], other.v[i], x.v[i])
                             : __fmaf_rn(decay.v[i], x.v[i], other.v[i]);
    return y;
  }

  __device__ Pack decays(const PeerDeviceInstruction& in, unsigned at, unsigned n) {
    Pack all{};
    const bool is_one = in.row % E == 0;
    const float first = decay(in, at / in.row);
#pragma unroll
    for (int i = 0; i < E; ++i) all.v[i] = is_one || i == 0 || i >= n ? first : decay(in, (at + i) / in.row);
    return all;
  }

  /// The decay of a row, which may have to be awaited where it arrives: every thread of the row does.
  __device__ float decay(const PeerDeviceInstruction& in, unsigned row) {
    if (in.decay_arrival == nullptr) return __ldcg(in.decay + row);
    const unsigned element = in.first_decay + row;
    const Pack arrived = await(in.decay_arrival, element / E, in.step, in.decay_peer, in.clears_decays);
    float decay = arrived.v[0];
#pragma unroll
    for (int lane = 1; lane < E; ++lane)
      if (element % E == lane) decay = arrived.v[lane];
    return decay;
  }

  /// Waits until all blocks of the senders have raised their flags for this round.
  __device__ void await_flags(const PeerDeviceInstruction& in) {
    for (unsigned cta = threadIdx.x; cta < route_.ctas; cta += blockDim.x) {
      if (in.arrival != nullptr) await_flag_of(in, in.arrival_flags, in.arrival_peer, cta);
      if (in.decay_arrival != nullptr) await_flag_of(in, in.decay_flags, in.decay_peer, cta);
    }
    __syncthreads();
  }

  __device__ void await_flag_of(const PeerDeviceInstruction& in, const unsigned* flags, int peer,
                                unsigned cta) {
    thread_.await(flags + cta, thread_.round(), PeerFault::Kind::flag, in.step, peer, cta);
  }

  __device__ void raise_flags(const PeerDeviceInstruction& in) {
    __syncthreads();
    if (threadIdx.x < in.sent && !thread_.gave_up())
      raise_flag(in.send_flags[threadIdx.x] + blockIdx.x, thread_.round());
  }

  const PeerRoute& route_;
  const PeerPart& part_;
  PeerThread thread_;
  unsigned threads_;
  unsigned number_;
};

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
  Resolver(const PeerProgram& program, const PeerPlace& place, unsigned threads)
      : program_(program),
        memory_(place.memory),
        route_(place.route),
        heaps_(place.heaps),
        layout_(place.layout),
        threads_(std::int64_t{place.route.ctas} * threads) {}

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
  const Resolver resolve(program, place, launch.threads);
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
  kernel_for(launch_)<<<route_.ctas, launch_.threads, 0, stream>>>(route_, first_, program_, count_, part_);
  cuda_launched();
}

}  // namespace baton
