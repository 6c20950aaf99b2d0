// SPDX-License-Identifier: Apache-2.0
// Native `two_shot_fused`: the slice owners of two_shot as one hand-tuned kernel a rank
// (collectives/executors/peer/device/slices.cuh has its text).
//
// The interpreter of two_shot runs an instruction for every message, and each goes through all
// threads of the rank before the next. Here a thread has the packets of all messages in hand at
// once, nothing is looked up, and what it waits for is under way together.
// Cost: that of two_shot with balanced slices, 2 hops; for two ranks one state and one hop.
#include "collectives/collective.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/peer/device/gpu.cuh"
#include "collectives/executors/peer/device/slices.cuh"
#include "collectives/executors/peer/rounds.cuh"
#include "collectives/slice_owners.hpp"

namespace baton {
namespace {

constexpr unsigned most_threads = 512;

template <class Format, bool aligned, int batch>
__global__ void __launch_bounds__(most_threads)
    slices_kernel(const __grid_constant__ PeerContext context, const __grid_constant__ Slices slices,
                  const __grid_constant__ KernelRole role) {
  run_slices<Gpu, Format, aligned, batch>(context, slices, role);
}

template <class Format, bool aligned, int batch>
void launch(const PeerCall& call, const Slices& slices) {
  const unsigned threads = peer_threads(slices.packets, call.context.ctas, most_threads);
  slices_kernel<Format, aligned, batch>
      <<<call.context.ctas, threads, 0, call.stream>>>(call.context, slices, role_of(slices));
  cuda_launched();
}

/// Balanced slices for the rank at `place`, without its buffers.
template <class Inbox>
Slices balanced(std::size_t rows, std::size_t count, int ranks, int place, bool reversed, int packet_elements,
                const Inbox& inbox) {
  const auto all = static_cast<std::int64_t>(rows);
  const auto owners = SliceOwners::of_all(all, ranks, 1);
  return cut_slices(
      static_cast<unsigned>(count / rows), ranks, place, reversed, packet_elements,
      [&](int at) { return owners.first_row(all, at); }, inbox);
}

template <class Format>
void run(const PeerCall& call) {
  const auto decay = call.operands.reads[0].f32(), state = call.operands.reads[1].f32();
  Slices slices = balanced(decay.size(), state.size(), call.context.ranks, call.place, call.reversed,
                           Format::elements, [&](int at) { return call.inboxes[call.home(at)]; });
  slices.decay = decay.data(), slices.state = state.data(),
  slices.into = call.operands.writes[0].f32().data();
  if (!is_whole_scan(call, Format::elements)) return launch<Format, false, 3>(call, slices);
  // Seven packets of eight elements and their decays are more than a thread has registers for.
  if (slices.ranks <= 4 || Format::elements > 4) return launch<Format, true, 3>(call, slices);
  launch<Format, true, 7>(call, slices);
}

/// The native of the chain, which serves two ranks. The first rank then owns all slices, so one
/// message is left, as in the chain.
const PeerNative& chain() { return *peer_natives().find("all_scan_fused"); }

void run_in_format(const PeerCall& call) {
  if (call.context.ranks == 2) return chain().body(call);
  (call.format == ElementFormat::bf16 ? run<Bf16Format<Gpu>> : run<F32Format<Gpu>>)(call);
}

std::int64_t packets(const Step& step, int ranks, int elements) {
  if (ranks == 2) return chain().packets(step, ranks, elements);
  const auto rows = static_cast<std::size_t>(step.reads[0].count);
  const auto count = static_cast<std::size_t>(step.reads[1].count);
  return inbox_packets(
      balanced(rows, count, ranks, 0, false, elements, [](int) -> std::byte* { return nullptr; }));
}

const RegisteredPeerNative native{
    "two_shot_fused", {.body = run_in_format, .packets = packets, .ctas = [](unsigned all) { return all; }}};

const Registered registered{{
    .name = "two_shot_fused",
    .kind = Kind::exclusive_scan,
    .summary = "native: the slice owners of two_shot as one hand-tuned kernel",
    .build =
        [](Schedule& s, const Operands& x) {
          s.native("two_shot_fused", x.blocks, {x.into}, {x.own.decay, x.own.state});
        },
    .claim = [](const Shape& shape,
                const Split& split) { return find_collective("two_shot").claim(shape, split); },
    .sent = [](const Shape& shape, const Split& split,
               int rank) { return find_collective("two_shot").sent(shape, split, rank); },
}};

}  // namespace
}  // namespace baton
