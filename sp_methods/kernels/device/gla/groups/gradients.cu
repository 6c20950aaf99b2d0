// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/gla/groups/gradients.cuh"
#include "sp_methods/kernels/device/gla/groups/strong_gradients.cuh"

namespace baton {
namespace {

using SegmentGradientsOperands = SegmentGradients::Operands<OnDevice>;

template <int d_k, int d_v, GateKind kind>
class GradientProducts : public StrongGradients<d_k, d_v, kind> {
 public:
  using Base = StrongGradients<d_k, d_v, kind>;
  using Base::Base, Base::multiply_strongly;
  using Base::chunk_of, Base::count_, Base::gradient_, Base::holds_x, Base::kept, Base::layer_;
  using Base::own_d_o, Base::put_gradient, Base::put_leaving, Base::start_gradient;
  using Base::start_sums_of_states, Base::start_values_of_gradient, Base::value_columns;
  using Base::write_values, Base::x_;
  using typename Base::Columns;
  using typename Base::Keys;
  using typename Base::Memory;
  using typename Base::Rows;

  __device__ void run() {
    this->read_gradient();
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      Memory::full().wait();
      const bool strong = kind != GateKind::none && __shfl_sync(0xffffffffU, Memory::from(step)[0], 0) < 0.0F;
      GroupSums<d_k> sums;  // X or Y
      if (strong) {
        multiply_strongly(step, sums);
      } else {
        multiply(step, sums);
        write(step, sums);
      }
      Memory::own().wait();
      Memory::terms_there().arrive();
    }
  }

 private:
  using Scores = std::uint32_t[device_chunk / 16][4];

  __device__ void multiply(int step, GroupSums<d_k>& sums) {
    Scores scores, d_scores;
    set_scores(step, scores, d_scores);
    put_gradient(step, false);
    Memory::multiplying().wait();
    GroupSums<value_columns> dv;
    start_values_and_gradient(step, dv, scores);
    wait_for_products<0>();
    dv.arrived(), gradient_.arrived();
    write_values(step, dv);
    if constexpr (kind != GateKind::none) gradient_.scale_rows(Memory::to(step) + Base::state_row());
    start_sums_of_states(sums);
    wait_for_products<0>();
    sums.arrived();
    finish_sums_of_states(step, sums);
    begin_products();
    const Columns right((holds_x() ? Memory::k(step) : Memory::q(step)).memory);
    start_product<device_chunk / 16>(sums, d_scores, right, true);
    commit_products();
    wait_for_products<0>();
    sums.arrived();
  }

  /// Sets A^T, and dA for X or dA^T for Y, as left operands.
  __device__ void set_scores(int step, Scores& scores, Scores& d_scores) {
    GroupSums<device_chunk> a, da;
    begin_products();
    start_product<d_k / 16>(a, Rows(Memory::k(step).memory), Rows(Memory::q(step).memory), false);
    start_product<d_v / 16>(da, Rows((holds_x() ? Memory::d_o() : Memory::v()).memory),
                            Rows((holds_x() ? Memory::v() : Memory::d_o()).memory), false);
    commit_products();
    wait_for_products<0>();
    a.arrived(), da.arrived();
    const int right = a.column() - a.row();
    const bool lower = holds_x();
    a.for_each([&](int n, int half, float2& x) { x = kept(x, right + 8 * (n - half), false); });
    da.for_each([&](int n, int half, float2& x) { x = kept(x, right + 8 * (n - half), lower); });
#pragma unroll
    for (int i = 0; i < device_chunk / 16; ++i) pack_left(scores[i], a, i), pack_left(d_scores[i], da, i);
  }
  __device__ void start_values_and_gradient(int step, GroupSums<value_columns>& dv, const Scores& scores) {
    begin_products();
    start_product<device_chunk / 16>(dv, scores, own_d_o(), false);
    start_values_of_gradient(step, dv);
    start_gradient(step);
    commit_products();
  }

  __device__ static void scale_columns(GroupSums<d_k>& sums, const float* factors) {
    sums.for_each([&](int n, int, float2& x) {
      x = x * *reinterpret_cast<const float2*>(factors + 8 * n + sums.column());
    });
  }

  /// Completes the parts of X and Y from the states, when all groups have read D', v, d_o and S.
  __device__ void finish_sums_of_states(int step, GroupSums<d_k>& sums) {
    Memory::multiplying().wait();
    if constexpr (kind != GateKind::none) {
      if (holds_x()) {
        scale_columns(sums, Memory::to(step));
      } else {
        put_leaving(step, sums);
      }
    }
    Memory::own().wait();
    if (step + 1 < count_) Memory::values_free().arrive();
  }

  /// Writes dq and T, or dk and its part of T.
  __device__ void write(int step, GroupSums<d_k>& sums) {
    if (holds_x()) {
      write_x(step, sums);
    } else {
      write_y(step, sums);
    }
  }
  /// Offsets of four pairs of X or Y in tiles like q and in T.
  struct Places {
    int tile[4], term[4];
  };
  /// Calls f(places, pairs) for four pairs at a time, so that loads need not wait for stores.
  template <class Function>
  __device__ static void for_some(GroupSums<d_k>& sums, Function f) {
    const GroupPlace<Keys> tile;
    const GroupPlace<typename Memory::Terms> term;
#pragma unroll
    for (int n = 0; n < d_k / 8; n += 2) {
      Places at;
      float2 x[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        at.tile[i] = tile.at(n + i / 2, i % 2), at.term[i] = term.at(n + i / 2, i % 2);
        x[i] = {sums.c[4 * n + 2 * i], sums.c[4 * n + 2 * i + 1]};
      }
      f(at, x);
#pragma unroll
      for (int i = 0; i < 4; ++i) sums.c[4 * n + 2 * i] = x[i].x, sums.c[4 * n + 2 * i + 1] = x[i].y;
    }
  }
  __device__ void write_y(int step, GroupSums<d_k>& sums) {
    const float s = power_of_2(log2_scale<d_k>);
    if constexpr (kind != GateKind::none) {
      for_some(sums, [&](const Places& at, float2(&y)[4]) {
        float2 k[4], f[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          k[i] = Memory::k(step).pair(at.tile[i]), f[i] = Memory::factor(step, at.tile[i]);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          Memory::terms().set_pair(at.term[i], k[i] * y[i]);
          y[i] = {y[i].x * __fdividef(s, f[i].x), y[i].y * __fdividef(s, f[i].y)};
        }
      });
      Memory::own().wait();
      Memory::keys_there().arrive();
    }
    store_rows(layer_.rows(x_.out.dk, d_k, chunk_of(step)), sums);
  }
  __device__ void write_x(int step, GroupSums<d_k>& sums) {
    if constexpr (kind != GateKind::none) Memory::keys_there().wait();
    for_some(sums, [&](const Places& at, float2(&x)[4]) {
      float2 q[4], f[4], of_keys[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        f[i] = Memory::factor(step, at.tile[i]);
        if constexpr (kind == GateKind::none) continue;
        q[i] = Memory::q(step).pair(at.tile[i]);
        of_keys[i] = Memory::terms().pair(at.term[i]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (kind != GateKind::none) Memory::terms().set_pair(at.term[i], q[i] * x[i] - of_keys[i]);
        x[i] = f[i] * x[i];
      }
    });
    store_rows(layer_.rows(x_.out.dq, d_k, chunk_of(step)), sums);
  }
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(GradientRoom<d_k, d_v, kind>::threads, 1) void segment_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ SegmentGradientsOperands x) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const int edge = layer.segments - 1 - DeviceLayer::segment();
  const int first = layer.first_chunk(DeviceLayer::segment()),
            end = layer.first_chunk(DeviceLayer::segment() + 1);
  if (group() == 2) {
    take_registers<false, 88>();
    if (kind != GateKind::none && belongs_to_sixteen_warps<d_k>(x.after, layer, edge)) return;
    GradientScaler<d_k, d_v, kind>(layer, x, end - 1, end - first).run();
  } else {
    take_registers<true, 208>();
    if (kind != GateKind::none && belongs_to_sixteen_warps<d_k>(x.after, layer, edge)) return;
    GradientProducts<d_k, d_v, kind>(layer, x, end - 1, end - first).run();
  }
#endif
}

}  // namespace

cudaError_t segment_gradients_by_groups(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                                        const Segments& cut) {
  return with_widths(cut.shape, [&](auto d_k, auto d_v) {
    const auto launch = [&](auto kind) {
      using Room = GradientRoom<d_k(), d_v(), kind()>;
      return launch_on_segments<Room::threads>(stream, cut, Room::shared_bytes,
                                               segment_gradients_kernel<d_k(), d_v(), kind()>, x);
    };
    return cut.shape.gate == GateKind::none ? launch(GateConstant<GateKind::none>{})
                                            : launch(GateConstant<GateKind::vector>{});
  });
}

}  // namespace baton
