// SPDX-License-Identifier: Apache-2.0
// Natives `all_scan_fused` and `all_scan_fused_16`: the chain of all_scan as one hand-tuned kernel a rank, the yardstick
// of the peer executor; the second on 16 multiprocessors, as beside other work.
//
//   each thread, for each of its packets of the state:
//     load the own state and decay
//     wait for the packet of the prefix in the own inbox        (the first rank has none)
//     store decay (.) prefix + state into the next rank's inbox (the last rank sends none)
//     keep the prefix
//
// What the interpreter must find out at run time is known here: the rank's place, where everything lies, what a row is.
// Cost: one state sent a rank, P-1 hops; time (P-1) alpha + N/beta, for a packet waits for nothing but itself.
#include <algorithm>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/native.cuh"

namespace baton {
namespace {

/// Threads of a block at most.
constexpr unsigned most_threads = 1024;

/// One rank's part; inboxes are those of generation 0.
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

/// One packet's work. `tidy` where rows and pointers allow whole packets, each with one decay.
template <class Wire, bool receives, bool passes_on, bool tidy>
struct ChainPacket {
  static constexpr int E = Wire::elements;
  using Pack = Elements<E>;

  unsigned at;  // the first element
  unsigned n;   // elements that there are
  Pack state;
  Elements<tidy ? 1 : E> decay;

  __device__ std::size_t slot() const { return std::size_t{at / E} * packet_bytes; }

  __device__ void load(const Chain& chain, unsigned packet) {
    at = packet * E;
    n = tidy ? E : min(static_cast<unsigned>(E), chain.count - at);
    if constexpr (passes_on) state = load_elements<E>(chain.state + at, n, tidy);
    if constexpr (passes_on && receives) load_decay(chain);
  }

  __device__ void load_decay(const Chain& chain) {
#pragma unroll
    for (int i = 0; i < (tidy ? 1 : E); ++i)
      if (i < n) decay.v[i] = __ldg(chain.decay + (at + i) / chain.row);
  }

  __device__ void finish(const Chain& chain, PeerThread& thread) const {
    Pack prefix{};
    if constexpr (receives) {
      prefix = Wire::unpack(thread.await_packet(chain.own_inbox + slot(), 0, chain.before, at / E));
    }
    if (thread.gave_up()) return;
    if constexpr (passes_on) store_packet(thread.now(chain.next_inbox + slot()), Wire::pack(carry(prefix)));
    if constexpr (receives) {
      store_elements<E>(chain.into + at, prefix, n, tidy);
      empty_slot(thread.before(chain.own_inbox + slot()));
    }
  }

  __device__ Pack carry(const Pack& prefix) const {
    Pack carry = state;
#pragma unroll
    for (int i = 0; i < E && receives; ++i)
      carry.v[i] = __fmaf_rn(decay.v[tidy ? 0 : i], prefix.v[i], state.v[i]);
    return carry;
  }
};

template <class Wire, bool receives, bool passes_on, bool tidy>
__global__ void __launch_bounds__(most_threads)
    chain_kernel(const __grid_constant__ PeerRoute route, const __grid_constant__ Chain chain,
                 const __grid_constant__ PeerPart part) {
  const unsigned threads = route.ctas * blockDim.x;
  unsigned packet = blockIdx.x * blockDim.x + threadIdx.x;
  ChainPacket<Wire, receives, passes_on, tidy> ahead{};
  if (packet < chain.packets) ahead.load(chain, packet);  // under way while the round begins
  PeerThread thread(route, enter_round(route, part));
  for (; packet < chain.packets; packet += threads) {
    const auto here = ahead;
    if (packet + threads < chain.packets) ahead.load(chain, packet + threads);
    here.finish(chain, thread);
  }
}

__global__ void __launch_bounds__(64) alone_kernel(const __grid_constant__ PeerRoute route) {
  enter_round(route, {});
}

template <class Wire, bool tidy>
void launch(const PeerCall& call, const Chain& chain) {
  const bool receives = call.place > 0, passes_on = call.place < call.route.ranks - 1;
  const auto kernel = receives && passes_on ? chain_kernel<Wire, true, true, tidy>
                      : receives            ? chain_kernel<Wire, true, false, tidy>
                                            : chain_kernel<Wire, false, true, tidy>;
  const PeerPart part{.receivers = passes_on ? bit_of(chain.next) : 0,
                      .senders = receives ? bit_of(chain.before) : 0};
  const unsigned threads = peer_threads(chain.packets, call.route.ctas, most_threads);
  kernel<<<call.route.ctas, threads, 0, call.stream>>>(call.route, chain, part);
}

template <class Wire>
void run(const PeerCall& call) {
  const auto decay = call.operands.reads[0], state = call.operands.reads[1];
  const auto into = call.operands.writes[0];
  if (call.route.ranks == 1) {
    alone_kernel<<<call.route.ctas, 64, 0, call.stream>>>(call.route);
    return cuda_launched();
  }
  const int next = call.home(std::min(call.place + 1, call.route.ranks - 1));
  const auto lies = [](const float* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  const std::size_t row = state.size() / decay.size();
  const Chain chain{.own_inbox = call.inboxes[call.route.rank],
                    .next_inbox = call.inboxes[next],
                    .decay = decay.data(),
                    .state = state.data(),
                    .into = into.data(),
                    .count = static_cast<unsigned>(state.size()),
                    .packets = static_cast<unsigned>((state.size() + Wire::elements - 1) / Wire::elements),
                    .row = static_cast<unsigned>(row),
                    .before = call.home(std::max(call.place - 1, 0)),
                    .next = next};
  const bool tidy =
      row % Wire::elements == 0 && lies(state.data()) && lies(into.data());  // whole rows: no rest
  (tidy ? launch<Wire, true> : launch<Wire, false>)(call, chain);
  cuda_launched();
}

void run_on_wire(const PeerCall& call) { (call.wire == PeerWire::bf16 ? run<WireBf16> : run<WireF32>)(call); }

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
          .claim = [](const Shape& shape, const Split& split) -> std::optional<Claim> {
            return Claim{split.ranks > 1 ? shape.state_bytes() : 0, split.ranks - 1};
          }};
}

const RegisteredPeerNative native{
    "all_scan_fused", {.body = run_on_wire, .packets = packets, .ctas = [](unsigned all) { return all; }}};
const RegisteredPeerNative native_16{
    "all_scan_fused_16",
    {.body = run_on_wire, .packets = packets, .ctas = [](unsigned all) { return std::min(all, 16u); }}};

const Registered registered{collective("all_scan_fused", "")};
const Registered registered_16{collective("all_scan_fused_16", " on 16 multiprocessors")};

}  // namespace
}  // namespace baton
