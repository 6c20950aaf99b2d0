// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/delta/groups/value_keys.cuh"

namespace baton {
namespace {

/// The results that a kernel is compiled for.
enum class Leaves { output, correction, states };

template <int d_k, int rows, ChunkRule rule, Leaves leaves>
class ForwardBlock {
 public:
  static constexpr bool has_output = leaves != Leaves::states;
  static constexpr SlotParts parts = !has_output                ? SlotParts::values
                                     : leaves == Leaves::output ? SlotParts::queries_values
                                                                : SlotParts::queries;
  using Slots = ChunkSlots<d_k, rows, rule, parts>;
  using Along = PanelsAlong;

  __device__ ForwardBlock(const DeviceLayer& layer, const ForwardResults& out)
      : layer_(layer), out_(out), order_(ChunkOrder::forward(layer)) {}

  __device__ void run(const float* before) {
    const std::int64_t segment =
        static_cast<std::int64_t>(DeviceLayer::place()) * layer_.segments + DeviceLayer::segment();
    read_rows(state_, before == nullptr ? nullptr : before + (segment * rows + 64 * group()) * d_k);
#pragma unroll 1
    for (int step = 0; step < order_.count; ++step) {
      Slots::full(step).wait();
      if constexpr (!has_output && !Slots::is_low_rank) keep_state(step);
      SlotDecays<Slots>{step}.enter(state_);
      if constexpr (!has_output && Slots::is_low_rank) keep_state(step);
      PackedTokens result;  // o^T or R^T of this group's rows
      move(step, result);
      write(step, result);
    }
  }

 private:
  /// Moves the state, which has entered the chunk, over it.
  __device__ void move(int step, PackedTokens& result) {
    const ForwardChunk<Slots> chunk{step};
    const ValueWrites<Slots> writes(step);
    const PackedRows<d_k> x(state_);
    GroupSums<device_chunk> missing, o;
    begin_products();
    start_product<d_k / 16>(missing, x.of, chunk.keys(), false);
    writes.start_reads(missing);
    commit_products();
    if constexpr (has_output) {
      start_product<d_k / 16>(o, x.of, PanelOperand<Along::summed>(Slots::q(step).memory), false);
      if constexpr (leaves == Leaves::output) writes.start_output(o);
      commit_products();
    }
    wait_for_products<has_output ? 1 : 0>();
    missing.arrived();
    chunk.template set_missing<leaves != Leaves::correction>(missing);
    if constexpr (has_output) {
      o.arrived();
      scale_output(step, o);
    }
    PackedTokens moved, written;
    pack_scaled(written, missing, [&](int n) {
      return has_output ? strength_pair<Slots>(step, n) : float2{1.0F, 1.0F};
    });
    chunk.start_move(state_, moved, missing);
    writes.start_state(state_);
    if constexpr (has_output)
      start_product<device_chunk / 16>(o, written.of, PanelOperand<Along::summed>(Slots::scores(step).memory),
                                       true);
    commit_products();
    wait_for_products<0>();
    state_.arrived();
    chunk.decays().leave(state_);
    if constexpr (has_output) {
      o.arrived();
      result = PackedTokens(o);
    } else {
      result = written;
    }
  }
  /// Multiplies o^T from the state by s e^b, if queries are not scaled.
  __device__ static void scale_output(int step, GroupSums<device_chunk>& o) {
    if constexpr (Slots::by_channel) return;
    const float scale = power_of_2(log2_scale<d_k>);
    o.for_each([&](int n, int, float2& x) { x = x * (scale * SlotDecays<Slots>{step}.head(n)); });
  }

  __device__ void keep_state(int step) const {
    const std::int64_t number =
        static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + order_.chunk(step);
    store_rows(HeadRows<Bf16>{out_.states + (number * rows + 64 * group()) * d_k, d_k, 64}, state_);
  }

  /// Writes the result's rows; the slot is free once they are read.
  __device__ void write(int step, const PackedTokens& result) const {
    const TurnedValues turned(Slots::values(step));
    turned.store(result);
    Slots::own().wait();
    Bf16* const into = leaves == Leaves::output       ? out_.o
                       : leaves == Leaves::correction ? out_.correction
                                                      : out_.missing;
    turned.write(layer_.rows(into, rows, order_.chunk(step)), [&] {
      if (step + Slots::slots < order_.count) Slots::empty(step).arrive();
    });
  }

  const DeviceLayer& layer_;
  const ForwardResults& out_;
  ChunkOrder order_;
  GroupSums<d_k> state_;
};

template <int d_k, int rows, ChunkRule rule, Leaves leaves>
__global__ __launch_bounds__(ForwardBlock<d_k, rows, rule, leaves>::Slots::threads,
                             1) void forward_kernel(const __grid_constant__ DeviceLayer layer,
                                                    const __grid_constant__ ChunkTensors x,
                                                    const float* before,
                                                    const __grid_constant__ ForwardResults out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Block = ForwardBlock<d_k, rows, rule, leaves>;
  feed_and_multiply<typename Block::Slots, 88, 208>(layer, x, ChunkOrder::forward(layer),
                                                    [&] { Block(layer, out).run(before); });
#endif
}

template <int d_k, int rows, ChunkRule rule, Leaves leaves>
cudaError_t launch(cudaStream_t stream, const ForwardResults& out, const ChunkTensors& x, const float* before,
                   const Segments& cut) {
  using Slots = typename ForwardBlock<d_k, rows, rule, leaves>::Slots;
  return launch_on_segments<Slots::threads>(stream, cut, Slots::shared_bytes,
                                            forward_kernel<d_k, rows, rule, leaves>, x, before, out);
}

}  // namespace

cudaError_t forward_segments(cudaStream_t stream, const ForwardResults& out, const ChunkTensors& x,
                             const float* before, const Segments& cut) {
  return with_rule(cut.shape, x.rule, [&](auto d_k, auto d_v, auto rule) {
    if (out.states != nullptr)
      return launch<d_k(), d_v(), rule(), Leaves::states>(stream, out, x, before, cut);
    if (out.correction != nullptr)
      return launch<d_k(), d_k(), rule(), Leaves::correction>(stream, out, x, before, cut);
    return launch<d_k(), d_v(), rule(), Leaves::output>(stream, out, x, before, cut);
  });
}

}  // namespace baton
