// SPDX-License-Identifier: Apache-2.0
// One block of sixteen warps a head and chunk. Rows are scaled to a reference of the chunk's gates:
// with q' = s q e^{b-r}, k' = k e^{b-r}, k" = k e^{r-b}, to = e^r and from = e^{all-r},
//
//   dA = tril_{-1}(dO R^T B)        dG = -tril_{-1}(B Z R^T B)
//   X  = to (dO S)     + dA k"
//   Yl = -to (B Z S)   + dG k"                        then gradient_rows.cuh
//   Yr = from (B R D)  + dA^T q' + dG^T k'
//   what passes the right edge, for dg:  gamma colsum(S (.) D) + sum over u of k" (from (B R D))
//
// A strong chunk's pairs are products level by level (strong_pairs.cuh).
#include "sp_methods/kernels/device/delta/gradient_rows.cuh"
#include "sp_methods/kernels/device/delta/gradients.cuh"
#include "sp_methods/kernels/device/delta/value_gradients.cuh"

namespace baton {
namespace {

template <int d_k, int d_v>
class ChunkGradients {
 public:
  using Memory = DeltaGradientMemory<d_k, d_v>;
  using Walk = GateWalk<GateKind::vector, d_k>;

  __device__ ChunkGradients(const DeviceLayer& layer, const DeltaGradients::Operands<OnDevice>& x,
                            const SweptChunks& kept)
      : layer_(layer),
        x_(x),
        kept_(kept),
        chunk_(static_cast<int>(blockIdx.y)),
        rows_{layer.rows(x.in.of.q, d_k, chunk_), layer.rows(x.in.of.k, d_k, chunk_)} {}

  __device__ void run() {
    load();
    wait_for_copies<0>();
    __syncthreads();
    const bool strong = scale();
    __syncthreads();
    write_values();
    put_pair_gradients();
    set_sums_of_states(strong);
    put_passing();
    __syncthreads();
    Memory::gates_again().load(layer_, layer_.template loader<d_k>(), x_.in.of.g, chunk_);
    commit_copies();
    if (!strong) add_pairs();
    put_sums_of_gates();
    __syncthreads();
    write_rows(strong);
  }

 private:
  __device__ static int row() { return 16 * warp_row(); }
  __device__ static int column() { return warp_column() * (d_k / 4); }

  __device__ void load() const {
    const auto keys = layer_.template loader<d_k>();
    keys.load(Memory::q(), x_.in.of.q, chunk_);
    keys.load(Memory::keys_in(), x_.in.of.k, chunk_);
    keys.load(Memory::keys_out(), x_.in.of.k, chunk_);
    Memory::gates().load(layer_, keys, x_.in.of.g, chunk_);
    const auto values = layer_.template loader<d_v>();
    values.load(Memory::d_o(), x_.d_o, chunk_);
    values.load(Memory::missing(), kept_.missing, chunk_);
    values.load(Memory::z(), kept_.z, chunk_);
    const std::int64_t state =
        (static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk_) * d_v * d_k;
    DensePlaces<d_k, d_v>::load_async(Memory::state(), kept_.states + state);
    DensePlaces<d_k, d_v>::load_async(Memory::gradient(), kept_.gradients + state);
    commit_copies();
    const int token = static_cast<int>(threadIdx.x);
    if (token >= device_chunk) return;
    const auto beta = layer_.rows(x_.in.beta, 1, chunk_);
    Memory::beta()[token] = token < beta.count ? __bfloat162float(*beta.row(token)) : 0.0F;
  }

  /// Scales the rows, and returns true if the chunk is strong.
  __device__ bool scale() const {
    return scale_by_channel(
        ScaledChunk<d_k>{Memory::q(), Memory::keys_in(), Memory::keys_out(), Memory::gates()},
        [](const Walk& walk, bool strong) {
          if (!walk.is_first_lane()) return;
          const float2 one{1.0F, 1.0F};
          const auto put = [&](float* into, float2 x) {
            *reinterpret_cast<float2*>(into + walk.channel) = x;
          };
          put(Memory::to(), strong ? one : decay_of(walk.middle));
          put(Memory::from(), strong ? one : decay_of(walk.all - walk.middle));
          put(Memory::gamma(), decay_of(walk.all));
        });
  }

  /// Writes dv and dbeta, and sets `own`.
  __device__ void write_values() const {
    const ValueGradients into{layer_.rows(x_.out.of.dv, d_v, chunk_), layer_.rows(x_.out.dbeta, 1, chunk_),
                              Memory::own()};
    const ValueTiles<Bf16Tile<d_v>> from{Memory::z(), Memory::missing(), Memory::d_o()};
    into.write<d_v, tile_threads>(static_cast<int>(threadIdx.x), from, Memory::beta(),
                                  power_of_2(log2_scale<d_k>));
  }

  /// Sets dA and dG.
  __device__ static void put_pair_gradients() {
    if (warp_column() > warp_row()) return;
    const int first = 16 * warp_column();
    Sums<1, 1> queries, keys;
    queries.clear();
    keys.clear();
    const auto missing = right_operand<RowsAre::outer>(Memory::missing(), first);
    add_products(product<d_v / 16>(queries, left_operand<RowsAre::outer>(Memory::d_o(), row()), missing),
                 product<d_v / 16>(keys, left_operand<RowsAre::outer>(Memory::z(), row()), missing));
    queries.for_each(
        [&](int, int c, float2& x) { x = x * *reinterpret_cast<const float2*>(Memory::beta() + first + c); });
    keys.for_each([&](int r, int c, float2& x) {
      x = -Memory::beta()[row() + r] * (x * *reinterpret_cast<const float2*>(Memory::beta() + first + c));
    });
    put_strictly_lower(Memory::d_queries(), queries, row(), first);
    put_strictly_lower(Memory::d_keys(), keys, row(), first);
  }

  /// Sets the parts of X, Yl and Yr that come from S and D.
  __device__ void set_sums_of_states(bool strong) {
    sums_.queries.clear(), sums_.later.clear(), sums_.earlier.clear();
    const auto state = right_operand<RowsAre::summed>(Memory::state(), column());
    add_products(product<d_v / 16>(sums_.queries, left_operand<RowsAre::outer>(Memory::d_o(), row()), state),
                 product<d_v / 16>(sums_.later, left_operand<RowsAre::outer>(Memory::z(), row()), state));
    add_product<d_v / 16>(sums_.earlier, left_operand<RowsAre::outer>(Memory::missing(), row()),
                          right_operand<RowsAre::summed>(Memory::gradient(), column()));
    const auto edge = [&](float* decays, int c) {
      return *reinterpret_cast<const float2*>(decays + column() + c);
    };
    sums_.queries.for_each([&](int, int c, float2& x) { x = x * edge(Memory::to(), c); });
    sums_.later.for_each(
        [&](int r, int c, float2& x) { x = (-Memory::beta()[row() + r] * x) * edge(Memory::to(), c); });
    sums_.earlier.for_each(
        [&](int r, int c, float2& x) { x = (Memory::beta()[row() + r] * x) * edge(Memory::from(), c); });
  }

  /// Sets the sums of dg for pairs that pass the right edge: four of S (.) D, four of k" Yr.
  __device__ void put_passing() {
    put_leaving<d_k>(Memory::leaving() + warp_row() * d_k, Memory::keys_out(), row(), column(), sums_.earlier,
                     rows_.q.count - 1);
    const int channel = 2 * (static_cast<int>(threadIdx.x) % (d_k / 2));
    const int part = static_cast<int>(threadIdx.x) / (d_k / 2);
    if (part >= 4) return;
    float2 sum{0.0F, 0.0F};
    for (int value = part; value < d_v; value += 4) {
      const int at = Bf16Tile<d_k>::offset(value, channel);
      sum = sum + Memory::state().pair(at) * Memory::gradient().pair(at);
    }
    *reinterpret_cast<float2*>(Memory::passing() + part * d_k + channel) =
        *reinterpret_cast<const float2*>(Memory::gamma() + channel) * sum;
  }

  /// Adds the pairs within the chunk to X, Yl and Yr.
  __device__ void add_pairs() {
    const auto keys = right_operand<RowsAre::summed>(Memory::keys_out(), column());
    const int piece = warp_row();
    add_product<device_chunk / 16>(sums_.queries, left_operand<RowsAre::outer>(Memory::d_queries(), row()),
                                   keys, 0, piece + 1);
    add_product<device_chunk / 16>(sums_.later, left_operand<RowsAre::outer>(Memory::d_keys(), row()), keys,
                                   0, piece + 1);
    add_product<device_chunk / 16>(sums_.earlier, left_operand<RowsAre::summed>(Memory::d_queries(), row()),
                                   right_operand<RowsAre::summed>(Memory::q(), column()), piece, 4);
    add_product<device_chunk / 16>(sums_.earlier, left_operand<RowsAre::summed>(Memory::d_keys(), row()),
                                   right_operand<RowsAre::summed>(Memory::keys_in(), column()), piece, 4);
  }

  /// Sets b of every token and channel, and r and b at the chunk's end, in the memory of S and D.
  __device__ void put_sums_of_gates() const {
    wait_for_copies<0>();
    __syncthreads();
    if (!Walk::takes_part()) return;
    const Walk walk(Memory::gates_again());
    put_log2_decays(Memory::log2_decays(), walk);
    if (!walk.is_first_lane()) return;
    *reinterpret_cast<float2*>(Memory::to() + walk.channel) = walk.middle;
    *reinterpret_cast<float2*>(Memory::from() + walk.channel) = walk.all;
  }

  /// Adds the pairs of a strong chunk, whose scaled rows are needed no more.
  __device__ void add_strong_pairs(RowGradients<d_k>& gradients) const {
    __syncthreads();
    const auto rows = layer_.template loader<d_k>();
    rows.load(Memory::q(), x_.in.of.q, chunk_);
    rows.load(Memory::keys_in(), x_.in.of.k, chunk_);
    commit_copies();
    wait_for_copies<0>();
    RowGradients<d_k> sums = gradients;  // in memory, where `gradients` are in registers
    StrongPairs<Memory, d_k>::add_to(sums, row(), column());
    gradients = sums;
  }

  /// Writes dq, dk and dg.
  __device__ void write_rows(bool strong) {
    const FinishedRows<d_k, d_v> finished{rows_, strong};
    RowGradients<d_k> gradients = finished.gradients(sums_, row(), column());
    if (strong) add_strong_pairs(gradients);
    finished.write(gradients, layer_.rows(x_.out.of.dq, d_k, chunk_), layer_.rows(x_.out.of.dk, d_k, chunk_),
                   row(), column());
    write_gates_of_channels<d_k>(layer_.rows(x_.out.of.dg, d_k, chunk_), gradients.terms, Memory::totals(),
                                 Memory::passing(), row(), column());
  }

  const DeviceLayer& layer_;
  const DeltaGradients::Operands<OnDevice>& x_;
  const SweptChunks& kept_;
  int chunk_;
  QueryKeyRows rows_;
  KeyGradientSums<d_k> sums_;
};

template <int d_k, int d_v>
__global__ __launch_bounds__(tile_threads, 1) void delta_gradients_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ DeltaGradients::Operands<OnDevice> x,
    const __grid_constant__ SweptChunks kept) {
  ChunkGradients<d_k, d_v>(layer, x, kept).run();
}

}  // namespace

cudaError_t delta_gradients_by_channel(cudaStream_t stream, const DeltaGradients::Operands<OnDevice>& x,
                                       const SweptChunks& kept, const Chunks& p) {
  const Segments chunks{p.shape, p.work, device_chunks(p), Dtype::bf16};
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    return launch_on_segments(stream, chunks, DeltaGradientMemory<d_k(), d_v()>::shared_bytes,
                              delta_gradients_kernel<d_k(), d_v()>, x, kept);
  });
}

}  // namespace baton
