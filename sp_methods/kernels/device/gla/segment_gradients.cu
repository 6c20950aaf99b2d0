// SPDX-License-Identifier: Apache-2.0
// All gradients of one segment, its chunks from right to left from the true state gradient D behind
// it: one block a head and segment.
//
//   for each chunk, with the scaled q, k of gate_walk.cuh and S the state before it:
//     S = the chunk's own of chunk_starts + its decay (.) the state before the segment
//     D' = e^{all - r} (.) D              A = tril(q k^T)              dA = tril(do v^T)
//     dv = A^T do + k D'                  D <- e^r (.) (D' + q^T do)
//     X  = dA k + do (e^r (.) S)^T        Y = dA^T q + v D'^T          then gradient_walk.cuh
//
// D stays in registers. Both parts of S come in bf16, the segment's into the room of D'. X and Y
// take the room of S and D' when those are used up.
// Cost: tokens (12 d_k d_v + 256 (d_k + d_v) + ..) flop a head; q, k, v, g, d_o, S read and dq, dk,
// dv, dg written once.
#include "sp_methods/kernels/device/gla/gradient_walk.cuh"
#include "sp_methods/kernels/device/gla/groups/gradients.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"

namespace baton {
namespace {

using SegmentGradientsOperands = SegmentGradients::Operands<OnDevice>;

template <int d_k, int d_v, GateKind kind>
class SegmentGradientsBlock {
 public:
  using Memory = GradientMemory<d_k, d_v, kind>;
  using Place = StatePlace<d_k, d_v>;
  using Walk = GradientWalk<kind, d_k>;

  __device__ SegmentGradientsBlock(const DeviceLayer& layer, const SegmentGradientsOperands& x)
      : layer_(layer),
        x_(x),
        last_(layer.first_chunk(DeviceLayer::segment() + 1) - 1),
        count_(last_ + 1 - layer.first_chunk(DeviceLayer::segment())) {}

  __device__ void run() {
    load_scaled(0);
    load_values(0);
    load_state(0);
    Memory::clear_scores();
    read_edge<d_k, d_v>(gradient_, x_.after, layer_.segments, layer_.segments - 1 - DeviceLayer::segment());
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<2>();
      __syncthreads();
      load_scaled(step + 1);
      const Starts start(x_.before, chunk_number(step));
      bool strong = scale(step);
      wait_for_copies<1>();
      if (x_.before.segments != nullptr) start.add_segment();
      strong = __syncthreads_or(strong);
      prepare(step, strong);
      __syncthreads();
      multiply(step, strong);
      __syncthreads();
      write(step, strong);
    }
  }

 private:
  using KeySums = Sums<2, d_k / 64>;  // 32 rows: half of the warps hold X, half Y
  using ValueSums = Sums<1, d_v / 64>;
  using Starts = StateBefore<d_k, d_v, kind>;

  __device__ int chunk_of(int step) const { return last_ - step; }
  __device__ static int row() { return 16 * warp_row(); }
  __device__ static bool holds_x() { return warp() < 8; }
  __device__ static int key_row() { return 32 * (warp_row() & 1); }
  __device__ static int key_column() { return warp_column() * (d_k / 4); }

  __device__ void load_scaled(int step) const {
    if (step < count_) {
      const auto loader = layer_.template loader<d_k>();
      loader.load(Memory::q(step), x_.in.q, chunk_of(step));
      loader.load(Memory::k(step), x_.in.k, chunk_of(step));
      Memory::gates(step).load(layer_, loader, x_.in.g, chunk_of(step));
    }
    commit_copies();
  }
  __device__ void load_values(int step) const {
    if (step < count_) {
      const auto loader = layer_.template loader<d_v>();
      loader.load(Memory::v(), x_.in.v, chunk_of(step));
      loader.load(Memory::d_o(), x_.d_o, chunk_of(step));
    }
    commit_copies();
  }
  __device__ std::int64_t chunk_number(int step) const {
    return static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk_of(step);
  }
  __device__ void load_state(int step) const {
    const int segment = DeviceLayer::place() * layer_.segments + DeviceLayer::segment();
    if (step < count_) Starts::load(x_.before, chunk_number(step), segment);
    commit_copies();
  }

  /// Sets the parts of rowsum(e^all (.) S (.) D); D may have its decay to the middle already.
  __device__ void put_passing(bool strong) {
#pragma unroll
    for (int m = 0; m < d_k / 64; ++m) {
      float2 sums{0.0F, 0.0F};  // of rows r and r + 8
#pragma unroll
      for (int n = 0; n < d_v / 64; ++n) {
        std::uint32_t state[4];
        Memory::state().load(state, Place::row() + 16 * m, Place::column() + 16 * n);
        add_products_of_piece(sums, state, gradient_.c[m][2 * n], gradient_.c[m][2 * n + 1]);
      }
      sums = sum_over_row(sums);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = Place::row() + 16 * m + 8 * half + (lane() >> 2);
        const float decay = Memory::to_middle()[row] * (strong ? Memory::from_middle()[row] : 1.0F);
        if ((lane() & 3) == 0)
          Memory::passing()[warp_column() * d_k + row] = decay * (half == 0 ? sums.x : sums.y);
      }
    }
  }

  /// Sets the parts of the sum over keys of k (.) Y, where Y has only the state's part.
  __device__ void put_leaving(int step) {
    const auto k = Memory::k(step);
    const SumsPlace<Bf16Tile<d_k>> place(key_row(), key_column());
#pragma unroll
    for (int n = 0; n < d_k / 32; ++n) {
      const int column = key_column() + 8 * n + 2 * (lane() & 3);
      float2 sum{0.0F, 0.0F};
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        const int m = part / 2, half = part % 2;
        const auto& y = sums_.c[m][n];
        sum = sum + k.pair(place.at(m, half, n)) * float2{y[2 * half], y[2 * half + 1]};
      }
#pragma unroll
      for (int apart = 4; apart < 32; apart *= 2) sum = sum + shuffled(sum, lane() ^ apart);
      if (lane() < 4) *reinterpret_cast<float2*>(Memory::leaving() + (warp_row() & 1) * d_k + column) = sum;
    }
  }

  __device__ bool scale(int step) const {
    using Gates = GateWalk<kind, d_k>;
    if (!Gates::takes_part()) return false;
    const Gates walk(Memory::gates(step));
    scale_gently(walk, Memory::q(step), Memory::k(step));
    Memory::put_starts(walk);
    if (walk.is_first_lane()) {
      *reinterpret_cast<float2*>(Memory::middles() + walk.channel) = walk.middle;
      *reinterpret_cast<float2*>(Memory::alls() + walk.channel) = walk.all;
      *reinterpret_cast<float2*>(Memory::to_middle() + walk.channel) = decay_of(walk.middle);
      *reinterpret_cast<float2*>(Memory::from_middle() + walk.channel) = decay_of(walk.all - walk.middle);
    }
    if constexpr (kind == GateKind::none) return false;
    return walk.is_strong() || walk.is_short_and_strong(query_key_rows(step).q.count);
  }

  __device__ QueryKeyRows query_key_rows(int step) const {
    return {layer_.rows(x_.in.q, d_k, chunk_of(step)), layer_.rows(x_.in.k, d_k, chunk_of(step))};
  }

  __device__ void prepare(int step, bool strong) {
    if (strong) {
      const QueryKeyRows rows = query_key_rows(step);
      scale_strongly(Memory::gates(step), Memory::q(step), Memory::k(step), rows.q, rows.k);
      strong_scores(Memory::scores(), Memory::gates(step), rows);
    } else {
      if constexpr (kind != GateKind::none) gradient_.scale_rows(Memory::from_middle() + Place::row());
    }
    if (warp_column() <= warp_row()) put_scores(step, strong);
    put_sums(Memory::gradient(), Place::row(), Place::column(), gradient_);
    if constexpr (kind != GateKind::none) put_passing(strong);
  }

  /// Sets dA, and A unless it is computed pair by pair.
  __device__ static void put_scores(int step, bool strong) {
    const int column = 16 * warp_column();
    Sums<1, 1> scores, d_scores;
    const auto d_product = scores_product(d_scores, Memory::d_o(), Memory::v(), row(), column);
    if (strong) {
      add_products(d_product);
    } else {
      add_products(scores_product(scores, Memory::q(step), Memory::k(step), row(), column), d_product);
      put_lower(Memory::scores(), scores, row(), column);
    }
    put_lower(Memory::d_scores(), d_scores, row(), column);
  }

  /// Computes all products. X and Y stay in registers until all threads have read S and D'.
  __device__ void multiply(int step, bool strong) {
    if (strong) {
      gradient_.scale_rows(Memory::to_middle() + Place::row());
      gradient_.scale_rows(Memory::from_middle() + Place::row());
    }
    set_values_and_gradient(step);
    if constexpr (kind != GateKind::none) {
      if (!strong) gradient_.scale_rows(Memory::to_middle() + Place::row());
    }
    set_sums_of_states(step, strong);
    if (!strong) add_sums_within(step);
  }

  /// Sets dv and D.
  __device__ void set_values_and_gradient(int step) {
    const int column = Place::column();
    ValueSums dv;
    dv.clear();
    add_products(
        product<d_k / 16>(dv, left_operand<RowsAre::outer>(Memory::k(step), row()),
                          right_operand<RowsAre::summed>(Memory::gradient(), column)),
        product<device_chunk / 16>(gradient_, left_operand<RowsAre::summed>(Memory::q(step), Place::row()),
                                   right_operand<RowsAre::summed>(Memory::d_o(), column)));
    add_product<device_chunk / 16>(dv, left_operand<RowsAre::summed>(Memory::scores(), row()),
                                   right_operand<RowsAre::summed>(Memory::d_o(), column), warp_row(), 4);
    auto rows = layer_.rows(x_.out.dv, d_v, chunk_of(step));
    store_sums(HeadRows<Bf16>{rows.row(row()) + column, rows.stride, rows.count - row()}, dv);
  }

  /// Sets the part of X that comes from S, or the part of Y that comes from D.
  __device__ void set_sums_of_states(int step, bool strong) {
    sums_.clear();
    const auto left = left_operand<RowsAre::outer>(holds_x() ? Memory::d_o() : Memory::v(), key_row());
    if (holds_x()) {
      add_product<d_v / 16>(sums_, left, PieceOperand<d_v>{Memory::state(), key_column()});
    } else {
      add_product<d_v / 16>(sums_, left, right_operand<RowsAre::outer>(Memory::gradient(), key_column()));
    }
    if constexpr (kind == GateKind::none) return;
    if (!holds_x()) return put_leaving(step);
    if (strong) return;
    sums_.for_each([&](int, int c, float2& x) {
      x = x * *reinterpret_cast<const float2*>(Memory::to_middle() + key_column() + c);
    });
  }

  /// Adds the pairs within the chunk to X or Y.
  __device__ void add_sums_within(int step) {
    const int edge = key_row() / 16;
    if (holds_x()) {
      add_product<device_chunk / 16>(sums_, left_operand<RowsAre::outer>(Memory::d_scores(), key_row()),
                                     right_operand<RowsAre::summed>(Memory::k(step), key_column()), 0,
                                     edge + 2);
    } else {
      add_product<device_chunk / 16>(sums_, left_operand<RowsAre::summed>(Memory::d_scores(), key_row()),
                                     right_operand<RowsAre::summed>(Memory::q(step), key_column()), edge, 4);
    }
  }

  __device__ void write(int step, bool strong) {
    load_values(step + 1);
    put_sums(holds_x() ? Memory::x() : Memory::y(), key_row(), key_column(), sums_);
    __syncthreads();
    const int n = chunk_of(step);
    const GradientRows out{layer_.rows(x_.out.dq, d_k, n), layer_.rows(x_.out.dk, d_k, n),
                           layer_.rows(x_.out.dg, GateTile<kind, d_k>::width(), n)};
    const GradientChunk<kind, d_k> chunk{
        Memory::q(step),    Memory::k(step),  Memory::gates(step), Memory::x(),    Memory::y(),
        Memory::d_scores(), Memory::starts(), Memory::middles(),   Memory::alls(), query_key_rows(step)};
    Walk walk;
    walk.write_rows(chunk, out, strong, Memory::sums());
    __syncthreads();
    load_state(step + 1);
    if constexpr (kind == GateKind::none) return;
    walk.write_gates(out, Memory::sums(), Memory::passing(), Memory::room());
    if constexpr (kind == GateKind::vector) return;
    __syncthreads();
    Walk::write_scalar_gates(out, Memory::room());
  }

  const DeviceLayer& layer_;
  const SegmentGradientsOperands& x_;
  int last_, count_;
  StateSums<d_k, d_v> gradient_;
  KeySums sums_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(tile_threads, 1) void segment_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ SegmentGradientsOperands x,
    bool marked_alone) {
  constexpr int width = GateTile<kind, d_k>::width();
  if (marked_alone && mark_of_segment(layer, x.out.dg, width) != left_to_sixteen_warps) return;
  SegmentGradientsBlock<d_k, d_v, kind>(layer, x).run();
}

cudaError_t segment_gradients(cudaStream_t stream, const SegmentGradients::Operands<OnDevice>& x,
                              const Segments& cut) {
  const bool groups = has_warp_groups();
  if (groups) {
    const cudaError_t code = segment_gradients_by_groups(stream, x, cut);
    if (code != cudaSuccess || cut.shape.gate == GateKind::none) return code;
  }
  return with_constants(cut.shape, [&](auto d_k, auto d_v, auto kind) {
    return launch_on_segments(stream, cut, GradientMemory<d_k(), d_v(), kind()>::shared_bytes,
                              segment_gradients_kernel<d_k(), d_v(), kind()>, x, groups);
  });
}

const RegisteredCudaKernel registered = device_body<SegmentGradients>(segment_gradients);

}  // namespace
}  // namespace baton
