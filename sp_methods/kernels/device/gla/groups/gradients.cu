// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/gla/groups/gradient_scaler.cuh"
#include "sp_methods/kernels/device/gla/groups/gradients.cuh"
#include "sp_methods/kernels/device/gla/groups/state_operand.cuh"
#include "sp_methods/kernels/device/gla/groups/turned_gradients.cuh"

namespace baton {
namespace {

using SegmentGradientsOperands = SegmentGradients::Operands<OnDevice>;

template <int d_k, int d_v, GateKind kind>
class GradientProducts {
 public:
  using Room = GradientRoom<d_k, d_v, kind>;
  using Turned = GroupSums<device_chunk>;  // this group's channels, all tokens

  __device__ GradientProducts(const DeviceLayer& layer, const SegmentGradientsOperands& x, int last,
                              int count)
      : layer_(layer), x_(x), last_(last), count_(count) {}

  __device__ void run() {
    read_gradient();
#pragma unroll 1
    for (int next = 0; next < count_; ++next) {
      const int step = same_in_warp(next);
      Room::full(step).wait();
      if (kind != GateKind::none && same_in_warp(Room::strong(step)) != 0)
        return leave_to_sixteen_warps(layer_, x_.out.dg, Room::Gates::width());
      Turned x, y;
      const float2 right = multiply_states(step, x, y);
      multiply_chunk(step, x, y);
      TurnedGradients<d_k, d_v, kind>(step).put(x, y, right);
      write(step);
    }
  }

 private:
  using Along = PanelsAlong;
  using Rows = PanelOperand<Along::summed>;
  using Columns = PanelOperand<Along::outer>;
  using Keys = typename Room::Keys;
  using State = typename Room::State;
  static constexpr int value_columns = d_v / Room::groups, score_columns = device_chunk / Room::groups;

  __device__ static int channel() { return 64 * group(); }
  __device__ static int value_column() { return value_columns * group(); }
  __device__ int chunk_of(int step) const { return last_ - step; }
  /// True if another chunk will use this chunk's room.
  __device__ bool has_successor(int step) const { return step + 2 < count_; }

  __device__ void read_gradient() {
    const EdgeState<d_k, d_v> edge(x_.after, layer_.segments, layer_.segments - 1 - DeviceLayer::segment());
    gradient_.for_each([&](int n, int half, float2& x) {
      x = edge.template at<float2>(channel() + gradient_.row() + 8 * half, gradient_.column() + 8 * n);
    });
  }

  /// Sets the scores of this group, D' for both, and the parts of X and Y that come from states.
  /// Returns R of this thread's channels.
  __device__ float2 multiply_states(int step, Turned& x, Turned& y) {
    const StateParts<d_k, d_v, kind> parts(layer_, x_.before, chunk_of(step));
    set_scores(step);
    LeftState<d_v> state;
    parts.add_into(state);
    begin_products();
    start_product<d_v / 16>(x, state, Rows(Room::d_o(step).memory), false);
    commit_products();
    gradient_.scale_rows(Room::from(step) + channel());
    float2 right{0.0F, 0.0F};
    if constexpr (kind != GateKind::none) right = sums_of_rows(state, gradient_);
    put_gradient();
    wait_for_products<0>();
    x.arrived();

#pragma unroll
    for (int i = 0; i < d_v / 16; ++i) pack_left(state[i], gradient_, i);
    begin_products();
    start_product<d_v / 16>(y, state, Rows(Room::v(step).memory), false);
    commit_products();
    x.scale_rows(Room::to(step) + channel());
    show_to_products();
    wait_for_products<0>();
    y.arrived();
    if constexpr (kind != GateKind::none) {
      const float* const to = Room::to(step) + channel() + gradient_.row();
      right = float2{to[0], to[8]} * right + sums_of_rows(TurnedPanel(Room::k(step).memory + panel()), y);
    }
    Room::operands_there().wait();
    return right;
  }
  /// Offset of this group's columns in a tile.
  __device__ static int panel() { return Keys::offset(0, channel()); }

  __device__ void put_gradient() {
    const GroupPlace<State> place(channel(), 0);
    gradient_.for_each(
        [&](int n, int half, const float2& x) { Room::gradient().set_pair(place.at(n, half), x); });
  }

  /// Sets this group's columns of A = tril(q k^T) and dA = tril(d_o v^T).
  __device__ static void set_scores(int step) {
    constexpr int row_bytes = Keys::row_bytes;
    GroupSums<score_columns> a, da;
    begin_products();
    start_product<d_v / 16>(da, Rows(Room::d_o(step).memory),
                            Rows(Room::v(step).memory + group() * score_columns * row_bytes), false);
    start_product<d_k / 16>(a, Rows(Room::q(step).memory),
                            Rows(Room::k(step).memory + group() * score_columns * row_bytes), false);
    commit_products();
    wait_for_products<0>();
    da.arrived(), a.arrived();
    put_lower(Room::d_scores(), da);
    put_lower(Room::scores(), a);
  }
  /// Stores this group's scores with zeros above the diagonal. Dropped scores may be infinite.
  __device__ static void put_lower(const typename Room::Scores& into, GroupSums<score_columns>& scores) {
    const int first = group() * score_columns;
    const GroupPlace<typename Room::Scores> place(0, first);
    scores.for_each([&](int n, int half, float2& x) {
      const int row = scores.row() + 8 * half, column = first + scores.column() + 8 * n;
      if (column > row) x.x = 0.0F;
      if (column + 1 > row) x.y = 0.0F;
      into.set_pair(place.at(n, half), x);
    });
  }

  /// Writes dv, sets D and completes X and Y.
  __device__ void multiply_chunk(int step, Turned& x, Turned& y) {
    const char *const q = Room::q(step).memory, *const k = Room::k(step).memory,
                      *const d_o = Room::d_o(step).memory, *const d_scores = Room::d_scores().memory;
    GroupSums<value_columns> dv;
    begin_products();
    start_product<device_chunk / 16>(dv, Columns(Room::scores().memory),
                                     Columns(d_o + Room::Values::offset(0, value_column())), false);
    start_product<d_k / 16>(
        dv, Rows(k),
        PanelOperand<Along::outer, d_k>(Room::gradient().memory + State::offset(0, value_column())), true);
    commit_products();
    start_product<device_chunk / 16>(gradient_, Columns(q + panel()), Columns(d_o), true);
    start_product<device_chunk / 16>(x, Columns(k + panel()), Rows(d_scores), true);
    start_product<device_chunk / 16>(y, Columns(q + panel()), Columns(d_scores), true);
    commit_products();
    wait_for_products<1>();
    dv.arrived();
    const auto rows = layer_.rows(x_.out.dv, d_v, chunk_of(step));
    store_rows(HeadRows<Bf16>{rows.first + value_column(), rows.stride, rows.count}, dv);
    wait_for_products<0>();
    gradient_.arrived(), x.arrived(), y.arrived();
    gradient_.scale_rows(Room::to(step) + channel());
    Room::multiplied().wait();
    if (has_successor(step)) Room::values_free(step).arrive();
  }

  /// Writes this group's columns of dq, dk and dg, which lie in the chunk's room.
  __device__ void write(int step) const {
    Room::own().wait();
    const PanelRows dq(Room::q(step).memory + panel()), dk(Room::k(step).memory + panel()),
        dg(Room::gates(step).memory + panel());
    if (has_successor(step)) Room::keys_free(step).arrive();
    const auto own = [&](Bf16* x) {
      const auto rows = layer_.rows(x, d_k, chunk_of(step));
      return HeadRows<Bf16>{rows.first + channel(), rows.stride, rows.count};
    };
    dq.write(own(x_.out.dq));
    dk.write(own(x_.out.dk));
    if constexpr (kind == GateKind::vector) dg.write(own(x_.out.dg));
    if constexpr (kind == GateKind::scalar) write_scalar_gate(step);
  }

  __device__ void write_scalar_gate(int step) const {
    if (group() != 0) return Room::terms_there().arrive();
    Room::terms_there().wait();
    if (warp() == 0) sum_scalar_gate<Room>(step, layer_.rows(x_.out.dg, 1, chunk_of(step)));
  }

  const DeviceLayer& layer_;
  const SegmentGradientsOperands& x_;
  int last_, count_;
  GroupSums<d_v> gradient_;  // D: this group's channels, all columns of v
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(GradientRoom<d_k, d_v, kind>::threads, 1) void segment_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ SegmentGradientsOperands x) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const int edge = layer.segments - 1 - DeviceLayer::segment();
  const int first = layer.first_chunk(DeviceLayer::segment()),
            end = layer.first_chunk(DeviceLayer::segment() + 1);
  constexpr int groups = GradientRoom<d_k, d_v, kind>::groups;
  if (kind != GateKind::none && belongs_to_sixteen_warps<d_k>(x.after, layer, edge))
    return leave_to_sixteen_warps(layer, x.out.dg, GateTile<kind, d_k>::width());
  if (group() == groups) {
    if constexpr (groups == 2) take_registers<false, 72>();
    GradientScaler<d_k, d_v, kind>(layer, x, end - 1, end - first).run();
  } else {
    if constexpr (groups == 2) take_registers<true, 216>();
    GradientProducts<d_k, d_v, kind>(layer, x, end - 1, end - first).run();
  }
#endif
}

}  // namespace

cudaError_t segment_gradients_by_groups(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                                        const Segments& cut) {
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    using Room = GradientRoom<d_k(), d_v(), kind()>;
    return launch_on_segments<Room::threads>(stream, cut, Room::shared_bytes,
                                             segment_gradients_kernel<d_k(), d_v(), kind()>, x);
  });
}

}  // namespace baton
