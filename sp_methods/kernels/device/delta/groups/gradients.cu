// SPDX-License-Identifier: Apache-2.0
// Blocks of one or two groups of warps that multiply and one that copies; each block takes chunks
// in turn (chunk_walk.cuh). Each group that multiplies has 64 channels of X, Yl and Yr; two groups
// share dA and dG, which pass through shared memory.
#include "sp_methods/kernels/device/delta/groups/gradient_copies.cuh"
#include "sp_methods/kernels/device/delta/groups/gradients.cuh"
#include "sp_methods/kernels/device/gla/groups/probe.cuh"

namespace baton {
namespace {

using DeltaGradientsOperands = DeltaGradients::Operands<OnDevice>;

template <int d_k, int d_v, GateKind kind>
class DeltaGradientProducts {
 public:
  using Room = DeltaGradientRoom<d_k, d_v>;
  using Keys = typename Room::Keys;
  using Rows = PanelOperand<PanelsAlong::summed>;
  using Columns = PanelOperand<PanelsAlong::outer>;
  using StateColumns = PanelOperand<PanelsAlong::outer, d_v>;

  __device__ DeltaGradientProducts(const DeviceLayer& layer, const DeltaGradientsOperands& x,
                                   const ChunkWalk& walk)
      : layer_(layer), x_(x), walk_(walk) {}

  __device__ void run() const {
    const int count = walk_.count();
#pragma unroll 1
    for (int step = 0; step < count; ++step) {
      Room::tokens_there().wait();
      PairGradients pairs[pairs_of_group];
      set_pairs(step, pairs);
      Room::states_there().wait();
      GroupSums<64> queries, later, earlier;
      const ChannelSums sums{queries, later, earlier};
      set_sums_of_states(step, sums);
      Room::states_read().arrive();
      Room::multiplying().wait();  // dO has been read
      put_pairs(step, pairs);
      const float2 leaving = scale(step, sums);
      Room::multiplying().wait();
      add_pairs(step, sums);
      finish(step, sums, leaving);
      Room::own_group().wait();
      Room::chunk_done().arrive();
      write(step, sums);
    }
  }

 private:
  /// Gradients of pairs of tokens, as left operands: dA or dG.
  using PairGradients = std::uint32_t[device_chunk / 16][4];
  static constexpr int pairs_of_group = 2 / Room::groups;

  /// A group's 64 channels of X, Yl and Yr.
  struct ChannelSums {
    GroupSums<64>&queries, &later, &earlier;  // a struct of the sums themselves would lie in memory

    __device__ void arrived() const { queries.arrived(), later.arrived(), earlier.arrived(); }
  };

  /// True if the group's i-th matrix of pairs is dA, false if it is dG.
  __device__ static bool is_of_queries(int i) { return Room::groups == 2 ? group() == 0 : i == 0; }
  template <class Tile>
  __device__ static const char* own_channels(const Tile& tile) {
    return tile.memory + group() * Tile::panel_bytes;
  }

  __device__ void set_pairs(int step, PairGradients (&pairs)[pairs_of_group]) const {
    GroupSums<device_chunk> sums[pairs_of_group];
    begin_products();
#pragma unroll
    for (int i = 0; i < pairs_of_group; ++i) {
      const Rows left((is_of_queries(i) ? Room::d_o(step) : Room::z(step)).memory);
      start_product<d_v / 16>(sums[i], left, Rows(Room::missing(step).memory), false);
    }
    commit_products();
    wait_for_products<0>();
#pragma unroll
    for (int i = 0; i < pairs_of_group; ++i) {
      sums[i].arrived();
      decay(step, sums[i], is_of_queries(i));
#pragma unroll
      for (int piece = 0; piece < device_chunk / 16; ++piece) pack_left(pairs[i][piece], sums[i], piece);
    }
  }

  /// Turns dO R^T or Z R^T into dA or dG, and sets `own`.
  __device__ static void decay(int step, GroupSums<device_chunk>& x, bool is_of_queries) {
    const float* const beta = Room::beta(step);
    const float* const b = Room::sums(step);
    const float s = power_of_2(log2_scale<d_k>);
    const int first = x.row();
    const float strength[2] = {is_of_queries ? s : -beta[first], is_of_queries ? s : -beta[first + 8]};
    const float2 from = kind == GateKind::none ? float2{} : float2{b[first], b[first + 8]};
    x.for_each([&](int n, int half, float2& pair) {
      const int row = first + 8 * half, column = x.column() + 8 * n;
      pair = strength[half] * (*reinterpret_cast<const float2*>(beta + column) * pair);
      if (is_of_queries && row == column) Room::own()[row] = pair.x;
      if (is_of_queries && row == column + 1) Room::own()[row] = pair.y;
      if constexpr (kind != GateKind::none) {
        const float sum = half == 0 ? from.x : from.y;
        const float2 to = *reinterpret_cast<const float2*>(b + column);
        pair = pair * float2{decay_of(sum - to.x), decay_of(sum - to.y)};
      }
      if (column >= row) pair.x = 0.0F;
      if (column + 1 >= row) pair.y = 0.0F;
    });
  }

  __device__ static void set_sums_of_states(int step, const ChannelSums& sums) {
    const StateColumns state(own_channels(Room::state())), gradient(own_channels(Room::gradient()));
    begin_products();
    start_product<d_v / 16>(sums.queries, Rows(Room::d_o(step).memory), state, false);
    start_product<d_v / 16>(sums.later, Rows(Room::z(step).memory), state, false);
    start_product<d_v / 16>(sums.earlier, Rows(Room::missing(step).memory), gradient, false);
    commit_products();
    wait_for_products<0>();
    sums.arrived();
  }

  /// Stores this group's part of dA and dG for all groups.
  __device__ static void put_pairs(int step, const PairGradients (&pairs)[pairs_of_group]) {
    const GroupPlace<typename Room::Pairs> place;
#pragma unroll
    for (int i = 0; i < pairs_of_group; ++i) {
      char* const into = (is_of_queries(i) ? Room::d_queries(step) : Room::d_keys(step)).memory;
#pragma unroll
      for (int n = 0; n < device_chunk / 8; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half)
          *reinterpret_cast<std::uint32_t*>(into + place.at(n, half)) = pairs[i][n / 2][n % 2 * 2 + half];
      }
    }
    show_to_products();
  }

  /// Scales what S and D give. Returns what the thread's keys of both rows give D, without the last
  /// token's: that passes no gate, and is larger than all of dg where gates are strong.
  __device__ float2 scale(int step, const ChannelSums& sums) const {
    const float* const beta = Room::beta(step);
    const float* const b = Room::sums(step);
    const float s = power_of_2(log2_scale<d_k>);
    float query[2], later[2], earlier[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = sums.queries.row() + 8 * half;
      const float strength = beta[row];
      const float from_start = kind == GateKind::none ? 1.0F : decay_of(b[row]);
      const float to_end = kind == GateKind::none ? 1.0F : decay_of(b[device_chunk - 1] - b[row]);
      query[half] = s * from_start, later[half] = -strength * from_start, earlier[half] = strength * to_end;
    }
    sums.queries.for_each([&](int, int half, float2& x) { x = query[half] * x; });
    sums.later.for_each([&](int, int half, float2& x) { x = later[half] * x; });
    sums.earlier.for_each([&](int, int half, float2& x) { x = earlier[half] * x; });
    float2 leaving{0.0F, 0.0F};
    if constexpr (kind != GateKind::none) {
      const GroupPlace<Keys> place(0, 64 * group());
      sums.earlier.for_each([&](int n, int half, float2& x) {
        const float2 each = Room::k(step).pair(place.at(n, half)) * x;
        (half == 0 ? leaving.x : leaving.y) += each.x + each.y;
      });
      const int last = last_token(step), row = sums.earlier.row();
      if (row == last) leaving.x = 0.0F;
      if (row + 8 == last) leaving.y = 0.0F;
    }
    return leaving;
  }
  __device__ int last_token(int step) const {
    const HeadChunk at = walk_.at(step);
    return layer_.rows(x_.in.of.q, d_k, at.chunk, at.head).count - 1;
  }

  /// Adds the pairs within the chunk.
  __device__ static void add_pairs(int step, const ChannelSums& sums) {
    const char* const d_queries = Room::d_queries(step).memory;
    const char* const d_keys = Room::d_keys(step).memory;
    const Columns q(own_channels(Room::q(step))), k(own_channels(Room::k(step)));
    constexpr int steps = device_chunk / 16;
    begin_products();
    start_product<steps>(sums.queries, Rows(d_queries), k, true);
    start_product<steps>(sums.later, Rows(d_keys), k, true);
    start_product<steps>(sums.earlier, Columns(d_queries), q, true);
    start_product<steps>(sums.earlier, Columns(d_keys), k, true);
    commit_products();
    wait_for_products<0>();
    sums.arrived();
  }

  __device__ static float2 pair_of(const GroupSums<64>& sums, int n, int half) {
    return {sums.c[4 * n + 2 * half], sums.c[4 * n + 2 * half + 1]};
  }
  __device__ static void set_pair_of(GroupSums<64>& sums, int n, int half, float2 x) {
    sums.c[4 * n + 2 * half] = x.x, sums.c[4 * n + 2 * half + 1] = x.y;
  }

  /// Turns the sums into dq and dk (in `later`), and sets the terms of dg.
  __device__ void finish(int step, const ChannelSums& sums, float2 leaving) const {
    const GroupPlace<Keys> place(0, 64 * group());
    const int row = sums.queries.row(), last = last_token(step);
    const float2 own{Room::own()[row], Room::own()[row + 8]};
    float2 terms = leaving;
    sums.queries.for_each([&](int n, int half, float2& x) {
      const float2 q = Room::q(step).pair(place.at(n, half)), k = Room::k(step).pair(place.at(n, half));
      const float2 later = pair_of(sums.later, n, half), earlier = pair_of(sums.earlier, n, half);
      const float2 term = q * x + k * later, given = k * earlier;
      if constexpr (kind != GateKind::none) {
        const bool is_last = row + 8 * half == last;  // its key is the earlier one of no pair here
        (half == 0 ? terms.x : terms.y) += term.x + term.y - (is_last ? 0.0F : given.x + given.y);
      }
      const float with_itself = half == 0 ? own.x : own.y;
      x = x + with_itself * k;
      set_pair_of(sums.later, n, half, later + earlier + with_itself * q);
    });
    if constexpr (kind != GateKind::none) put_terms(terms, leaving);
  }
  __device__ static void put_terms(float2 terms, float2 leaving) {
    const int row = GroupSums<64>::row();
    const auto of_row = [](float x) {
      x += __shfl_xor_sync(0xffffffffU, x, 1);
      return x + __shfl_xor_sync(0xffffffffU, x, 2);
    };
    const float2 all{of_row(terms.x), of_row(terms.y)}, given{of_row(leaving.x), of_row(leaving.y)};
    float *const into = Room::terms(group()), *const into_given = Room::leaving(group());
    if ((group_thread() & 3) != 0) return;
    into[row] = all.x, into[row + 8] = all.y;
    into_given[row] = given.x, into_given[row + 8] = given.y;
  }

  __device__ void write(int step, const ChannelSums& sums) const {
    const HeadChunk at = walk_.at(step);
    const auto own = [&](Bf16* x) {
      auto rows = layer_.rows(x, d_k, at.chunk, at.head);
      rows.first += 64 * group();
      return rows;
    };
    store_rows(own(x_.out.of.dq), sums.queries);
    store_rows(own(x_.out.of.dk), sums.later);
  }

  const DeviceLayer& layer_;
  const DeltaGradientsOperands& x_;
  const ChunkWalk& walk_;
};

template <int d_k, int d_v, GateKind kind>
__global__ __launch_bounds__(DeltaGradientRoom<d_k, d_v>::threads, 1) void delta_gradients_by_groups_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ DeltaGradientsOperands x,
    const __grid_constant__ SweptChunks kept, const __grid_constant__ ChunkWalk walk) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  if (group() == DeltaGradientRoom<d_k, d_v>::groups) {
    DeltaGradientCopies<d_k, d_v, kind>(layer, x, kept, walk).run();
  } else {
    DeltaGradientProducts<d_k, d_v, kind>(layer, x, walk).run();
  }
#endif
}

int multiprocessors() {
  int device = 0, count = 0;
  cuda(cudaGetDevice(&device));
  cuda(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

template <int d_k, int d_v, GateKind kind>
cudaError_t launch(cudaStream_t stream, const DeltaGradientsOperands& x, const SweptChunks& kept,
                   const Chunks& p) {
  using Room = DeltaGradientRoom<d_k, d_v>;
  const auto kernel = delta_gradients_by_groups_kernel<d_k, d_v, kind>;
  const auto code =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Room::shared_bytes);
  if (code != cudaSuccess) return code;
  const ChunkWalk walk(p);
  const auto blocks = static_cast<unsigned>(std::min(walk.items(), multiprocessors()));
  kernel<<<blocks, Room::threads, Room::shared_bytes, stream>>>(
      DeviceLayer(Segments{p.shape, p.work, 1, Dtype::bf16}), x, kept, walk);
  return cudaGetLastError();
}

}  // namespace

cudaError_t delta_gradients_of_chunks(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                      const SweptChunks& kept, const Chunks& p) {
  if (p.shape.gate == GateKind::vector || !has_warp_groups())
    return delta_gradients_by_sixteen_warps(stream, x, kept, p);
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    return p.shape.gate == GateKind::none ? launch<d_k(), d_v(), GateKind::none>(stream, x, kept, p)
                                          : launch<d_k(), d_v(), GateKind::scalar>(stream, x, kept, p);
  });
}

}  // namespace baton
