// SPDX-License-Identifier: Apache-2.0
// Natives `all_scan_fused` and `all_scan_fused_16`: the chain of all_scan as one hand-tuned kernel
// a rank, the yardstick of the peer executor; the second on 16 multiprocessors, as beside other
// work.
//
//   each thread, for each of its packets of the state:
//     load the own state and decay
//     wait for the packet of the prefix in the own inbox        (the first rank has none)
//     store decay (.) prefix + state into the next rank's inbox (the last rank sends none)
//     keep the prefix
//
// The interpreter finds out at run time what is known here: the rank's place, addresses, the length
// of a row. Cost: one state sent a rank, P-1 hops; time (P-1) alpha + N/beta, for a packet waits
// for nothing but itself.
#include <algorithm>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/device/gpu.cuh"
#include "collectives/executors/peer/device/round.cuh"
#include "collectives/executors/peer/rounds.cuh"

namespace baton {
namespace {

/// The most threads of a block.
constexpr unsigned most_threads = 1024;

/// The arguments of one rank's kernel. Inboxes are those of generation 0.
struct Chain {
  std::byte* own_inbox;
  std::byte* next_inbox;
  const float* decay;
  const float* state;
  float* into;
  unsigned count;
  unsigned packets;
  unsigned row;
  int before;
  int next;
};

/// The work on one packet. `aligned` where rows and pointers allow whole packets, each with one
/// decay.
template <class Format, bool receives, bool passes_on, bool aligned>
struct ChainPacket {
  static constexpr int E = Format::elements;
  using Pack = Elements<E>;

  unsigned at;  // the first element
  unsigned n;   // the number of elements
  Pack state;
  Elements<aligned ? 1 : E> decay;

  __device__ std::size_t slot() const { return std::size_t{at / E} * packet_bytes; }

  __device__ void load(const Chain& chain, unsigned packet) {
    at = packet * E;
    n = aligned ? E : min(static_cast<unsigned>(E), chain.count - at);
    if constexpr (passes_on) state = Gpu::load_elements<E>(chain.state + at, n, aligned);
    if constexpr (passes_on && receives) load_decay(chain);
  }

  __device__ void load_decay(const Chain& chain) {
#pragma unroll
    for (int i = 0; i < (aligned ? 1 : E); ++i)
      if (i < n) decay.v[i] = __ldg(chain.decay + (at + i) / chain.row);
  }

  __device__ void finish(const Chain& chain, PeerThread<Gpu>& thread) const {
    Pack prefix{};
    if constexpr (receives) {
      prefix = Format::unpack(thread.await_packet(chain.own_inbox + slot(), 0, chain.before, at / E));
    }
    if (thread.gave_up()) return;
    if constexpr (passes_on)
      Gpu::store_packet(thread.now(chain.next_inbox + slot()), Format::pack(carry(prefix)));
    if constexpr (receives) {
      Gpu::store_elements<E>(chain.into + at, prefix, n, aligned);
      empty_slot<Gpu>(thread.before(chain.own_inbox + slot()));
    }
  }

  __device__ Pack carry(const Pack& prefix) const {
    Pack carry = state;
#pragma unroll
    for (int i = 0; i < E && receives; ++i)
      carry.v[i] = __fmaf_rn(decay.v[aligned ? 0 : i], prefix.v[i], state.v[i]);
    return carry;
  }
};

template <class Format, bool receives, bool passes_on, bool aligned>
__global__ void __launch_bounds__(most_threads)
    chain_kernel(const __grid_constant__ PeerContext context, const __grid_constant__ Chain chain,
                 const __grid_constant__ KernelRole role) {
  const unsigned threads = context.ctas * blockDim.x;
  unsigned packet = blockIdx.x * blockDim.x + threadIdx.x;
  ChainPacket<Format, receives, passes_on, aligned> ahead{};
  if (packet < chain.packets) ahead.load(chain, packet);  // runs while the round begins
  PeerThread<Gpu> thread(context, enter_round<Gpu>(context, role));
  for (; packet < chain.packets; packet += threads) {
    const auto here = ahead;
    if (packet + threads < chain.packets) ahead.load(chain, packet + threads);
    here.finish(chain, thread);
  }
}

__global__ void __launch_bounds__(64) alone_kernel(const __grid_constant__ PeerContext context) {
  enter_round<Gpu>(context, {});
}

template <class Format, bool aligned>
void launch(const PeerCall& call, const Chain& chain) {
  const bool receives = call.place > 0, passes_on = call.place < call.context.ranks - 1;
  const auto kernel = receives && passes_on ? chain_kernel<Format, true, true, aligned>
                      : receives            ? chain_kernel<Format, true, false, aligned>
                                            : chain_kernel<Format, false, true, aligned>;
  const KernelRole role{.receivers = passes_on ? bit_of(chain.next) : 0,
                        .senders = receives ? bit_of(chain.before) : 0};
  const unsigned threads = peer_threads(chain.packets, call.context.ctas, most_threads);
  kernel<<<call.context.ctas, threads, 0, call.stream>>>(call.context, chain, role);
}

template <class Format>
void run(const PeerCall& call) {
  const auto decay = call.operands.reads[0].f32(), state = call.operands.reads[1].f32();
  const auto into = call.operands.writes[0].f32();
  if (call.context.ranks == 1) {
    alone_kernel<<<call.context.ctas, 64, 0, call.stream>>>(call.context);
    return cuda_launched();
  }
  const int next = call.home(std::min(call.place + 1, call.context.ranks - 1));
  const std::size_t row = state.size() / decay.size();
  const Chain chain{
      .own_inbox = call.inboxes[call.context.rank],
      .next_inbox = call.inboxes[next],
      .decay = decay.data(),
      .state = state.data(),
      .into = into.data(),
      .count = static_cast<unsigned>(state.size()),
      .packets = static_cast<unsigned>((state.size() + Format::elements - 1) / Format::elements),
      .row = static_cast<unsigned>(row),
      .before = call.home(std::max(call.place - 1, 0)),
      .next = next};
  (is_whole_scan(call, Format::elements) ? launch<Format, true> : launch<Format, false>)(call, chain);
  cuda_launched();
}

void run_in_format(const PeerCall& call) {
  (call.format == ElementFormat::bf16 ? run<Bf16Format<Gpu>> : run<F32Format<Gpu>>)(call);
}

std::int64_t packets(const Step& step, int, int elements) {
  return (step.reads[1].count + elements - 1) / elements;
}

Collective collective(const std::string& name, const std::string& where) {
  return {.name = name,
          .kind = Kind::exclusive_scan,
          .summary = "native: the chain of all_scan as one hand-tuned kernel" + where,
          .build =
              [name](Schedule& s, const Operands& x) {
                s.native(name, x.blocks, {x.into}, {x.own.decay, x.own.state});
              },
          .claim = [](const Shape& shape, const Split& split) -> std::optional<Cost> {
            return Cost{split.ranks > 1 ? shape.state_bytes() : 0, split.ranks - 1};
          },
          .sent = [](const Shape& shape, const Split& split,
                     int rank) { return rank + 1 < split.ranks ? shape.state_bytes() : 0; }};
}

const RegisteredPeerNative native{
    "all_scan_fused", {.body = run_in_format, .packets = packets, .ctas = [](unsigned all) { return all; }}};
const RegisteredPeerNative native_16{
    "all_scan_fused_16",
    {.body = run_in_format, .packets = packets, .ctas = [](unsigned all) { return std::min(all, 16u); }}};

const Registered registered{collective("all_scan_fused", "")};
const Registered registered_16{collective("all_scan_fused_16", " on 16 multiprocessors")};

}  // namespace
}  // namespace baton
