// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/sweeps.cuh"
#include "sp_methods/kernels/device/delta/groups/turned.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, ChunkRule rule, bool keeps>
class ReverseBlock {
 public:
  using Slots = ChunkSlots<d_k, d_v, rule, SlotParts::queries>;
  using Along = PanelsAlong;

  __device__ ReverseBlock(const DeviceLayer& layer, const ReverseResults& out)
      : layer_(layer), out_(out), order_(ChunkOrder::backward(layer)) {}

  __device__ void run(const float* behind) {
    const std::int64_t segment =
        static_cast<std::int64_t>(DeviceLayer::place()) * layer_.segments + DeviceLayer::segment();
    const std::int64_t first = (segment * d_v + 64 * group()) * d_k;
    read_rows(gradient_, behind == nullptr ? nullptr : behind + first);
#pragma unroll 1
    for (int step = 0; step < order_.count; ++step) {
      Slots::full(step).wait();
      if constexpr (keeps && !Slots::is_low_rank) keep_gradient(step);
      SlotDecays<Slots>{step}.leave(gradient_);
      if constexpr (keeps && Slots::is_low_rank) keep_gradient(step);
      PackedTokens z;
      move(step, z);
      if constexpr (keeps) {
        write(step, z);
      } else {
        release(step);
      }
    }
    if constexpr (!keeps) write_rows(out_.first + first, gradient_);
  }

 private:
  /// Moves the gradient, which is at the chunk's keys, before the chunk, and sets Z^T of this
  /// group's rows.
  __device__ void move(int step, PackedTokens& z_rows) {
    const SlotDecays<Slots> decays{step};
    PackedTokens d_o;
    TurnedValues(Slots::values(step)).load(d_o);
    GroupSums<device_chunk> z;
    set_written(step, z, d_o);
    add_inverse(step, z);
    gradient_.arrived();
    if constexpr (keeps) z_rows = PackedTokens(z);
    PackedTokens writes;
    constexpr float sign = Slots::is_low_rank ? 1.0F : -1.0F;
    pack_scaled(writes, z, [&](int n) { return sign * (strength_pair<Slots>(step, n) * decays.head(n)); });
    begin_products();
    start_product<device_chunk / 16>(gradient_, writes.of,
                                     PanelOperand<Along::outer>(Slots::keys_in(step).memory), true);
    commit_products();
    wait_for_products<0>();
    gradient_.arrived();
    decays.enter(gradient_);
  }

  /// Sets dVn^T, and starts what d_o gives the gradient, with scaled d_o.
  __device__ void set_written(int step, GroupSums<device_chunk>& written, PackedTokens& d_o) {
    const SlotDecays<Slots> decays{step};
    const PackedRows<d_k> x(gradient_);
    GroupSums<device_chunk> of_pairs;
    begin_products();
    start_product<device_chunk / 16>(of_pairs, d_o.of, PanelOperand<Along::outer>(Slots::scores(step).memory),
                                     false);
    start_product<d_k / 16>(written, x.of, PanelOperand<Along::summed>(Slots::keys_out(step).memory), false);
    commit_products();
    wait_for_products<0>();
    written.arrived(), of_pairs.arrived();
    if constexpr (!Slots::by_channel)
      for_each_pair(
          d_o, [&](int n, float2& pair) { pair = pair * (power_of_2(log2_scale<d_k>) * decays.head(n)); });
    decays.pass(gradient_);
    begin_products();
    start_product<device_chunk / 16>(gradient_, d_o.of, PanelOperand<Along::outer>(Slots::q(step).memory),
                                     true);
    commit_products();
#pragma unroll
    for (int i = 0; i < device_chunk / 4; ++i) {
      const float2 tail = decays.tail(i / 2);
      written.c[2 * i] = fmaf(tail.x, written.c[2 * i], of_pairs.c[2 * i]);
      written.c[2 * i + 1] = fmaf(tail.y, written.c[2 * i + 1], of_pairs.c[2 * i + 1]);
    }
  }
  /// Adds (B dVn)^T N~.
  __device__ static void add_inverse(int step, GroupSums<device_chunk>& z) {
    PackedTokens written;
    pack_scaled(written, z, [&](int n) { return strength_pair<Slots>(step, n); });
    begin_products();
    start_product<device_chunk / 16>(z, written.of, PanelOperand<Along::outer>(Slots::inverse(step).memory),
                                     true);
    commit_products();
    wait_for_products<0>();
    z.arrived();
  }

  __device__ void keep_gradient(int step) const {
    const std::int64_t number =
        static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + order_.chunk(step);
    store_rows(HeadRows<Bf16>{out_.gradients + (number * d_v + 64 * group()) * d_k, d_k, 64}, gradient_);
  }
  __device__ void release(int step) const {
    if (step + Slots::slots < order_.count) Slots::empty(step).arrive();
  }
  __device__ void write(int step, const PackedTokens& z) const {
    const TurnedValues turned(Slots::values(step));
    turned.store(z);
    Slots::own().wait();
    turned.write(layer_.rows(out_.z, d_v, order_.chunk(step)), [&] { release(step); });
  }

  const DeviceLayer& layer_;
  const ReverseResults& out_;
  ChunkOrder order_;
  GroupSums<d_k> gradient_;
};

template <int d_k, int d_v, ChunkRule rule, bool keeps>
__global__ __launch_bounds__(ReverseBlock<d_k, d_v, rule, keeps>::Slots::threads,
                             1) void reverse_kernel(const __grid_constant__ DeviceLayer layer,
                                                    const __grid_constant__ ChunkTensors x,
                                                    const float* behind,
                                                    const __grid_constant__ ReverseResults out) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Block = ReverseBlock<d_k, d_v, rule, keeps>;
  feed_and_multiply<typename Block::Slots, 88, 208>(layer, x, ChunkOrder::backward(layer),
                                                    [&] { Block(layer, out).run(behind); });
#endif
}

template <int d_k, int d_v, ChunkRule rule, bool keeps>
cudaError_t launch(cudaStream_t stream, const ReverseResults& out, const ChunkTensors& x, const float* behind,
                   const Segments& cut) {
  using Slots = typename ReverseBlock<d_k, d_v, rule, keeps>::Slots;
  return launch_on_segments<Slots::threads>(stream, cut, Slots::shared_bytes,
                                            reverse_kernel<d_k, d_v, rule, keeps>, x, behind, out);
}

}  // namespace

cudaError_t reverse_segments(cudaStream_t stream, const ReverseResults& out, const ChunkTensors& x,
                             const float* behind, const Segments& cut) {
  return with_rule(cut.shape, x.rule, [&](auto d_k, auto d_v, auto rule) {
    return out.gradients == nullptr ? launch<d_k(), d_v(), rule(), false>(stream, out, x, behind, cut)
                                    : launch<d_k(), d_v(), rule(), true>(stream, out, x, behind, cut);
  });
}

}  // namespace baton
