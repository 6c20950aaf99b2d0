// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/inverse.cuh"
#include "sp_methods/kernels/device/delta/inverse.cuh"

namespace baton {
namespace {

template <int d_k, GateKind kind>
class InverseBlock {
 public:
  using Pairs = PanelTile<device_chunk>;
  using Gates = GateTile<kind, d_k>;
  static constexpr int stride = device_chunk + 4;
  static constexpr int scores_at = PanelTile<d_k>::bytes, inverse_at = scores_at + ChunkMatrix::bytes(stride);
  static constexpr int floats_at = inverse_at + ChunkMatrix::bytes(stride);
  static constexpr int shared_bytes = floats_at + 3 * device_chunk * 4;

  __device__ InverseBlock(const DeviceLayer& layer, const ChunkTensors& x) : layer_(layer), x_(x) {}

  __device__ void run(char* inverses) const {
    load();
    put_scores();
    __syncthreads();
    if (lane() < 16) invert_diagonal(16 * warp() + lane());
    __syncthreads();
    join<16>();
    join<32>();
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk();
    write(inverses + number * Pairs::bytes);
  }

 private:
  __device__ static int chunk() { return DeviceLayer::segment(); }
  __device__ static PanelTile<d_k> keys() { return {shared_space()}; }
  __device__ static ChunkMatrix matrix(int at) { return {reinterpret_cast<float*>(shared_space() + at), stride}; }
  /// G, zero on and above the diagonal; later Y of joined halves above it.
  __device__ static ChunkMatrix scores() { return matrix(scores_at); }
  /// N~, zero on and above the diagonal.
  __device__ static ChunkMatrix inverse() { return matrix(inverse_at); }
  __device__ static float* beta() { return reinterpret_cast<float*>(shared_space() + floats_at); }
  __device__ static float* sums() { return beta() + device_chunk; }
  __device__ static Gates gates() { return {reinterpret_cast<char*>(sums() + device_chunk)}; }

  __device__ void load() const {
    const PanelLoader<d_k> loader(layer_.tokens, layer_.heads, layer_.first_head + DeviceLayer::place());
    loader.load(keys(), x_.k, chunk());
    commit_copies();
    const int token = static_cast<int>(threadIdx.x);
    if (token < device_chunk) {
      gates().load(layer_, loader, x_.g, chunk(), token);
      const auto rows = layer_.rows(x_.beta, 1, chunk());
      beta()[token] = token < rows.count ? __bfloat162float(*rows.row(token)) : 0.0F;
    }
    wait_for_copies<0>();
    show_to_products();
    __syncthreads();
    if (kind != GateKind::none && warp() == 0) sum_gates_of_head(sums(), gates());
    __syncthreads();
  }

  __device__ static void put_scores() {
    using Rows = PanelOperand<PanelsAlong::summed>;
    GroupSums<device_chunk> g;
    begin_products();
    start_product<d_k / 16>(g, Rows(keys().memory), Rows(keys().memory), false);
    commit_products();
    wait_for_products<0>();
    g.arrived();
    g.for_each([&](int n, int half, float2& x) {
      const int row = g.row() + 8 * half, column = g.column() + 8 * n;
      if constexpr (kind != GateKind::none)
        x = x * decay_of(float2{sums()[row] - sums()[column], sums()[row] - sums()[column + 1]});
      *reinterpret_cast<float2*>(&scores().at(row, column)) = {column < row ? x.x : 0.0F,
                                                               column + 1 < row ? x.y : 0.0F};
    });
  }

  /// Sets column `column` of N~ within its 16 x 16 block on the diagonal.
  __device__ static void invert_diagonal(int column) {
    const int first = column & ~15;
    float x[16];  // B N~
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      float sum = scores().at(first + i, column);
#pragma unroll
      for (int m = 0; m < i; ++m) sum = fmaf(scores().at(first + i, first + m), x[m], sum);
      inverse().at(first + i, column) = -sum;
      x[i] = -beta()[first + i] * sum;
    }
  }

  /// The sum over m < half of left[m] strengths[m] right(m) for four columns.
  template <int half>
  __device__ static float4 weighted_row(const float* left, const float* strengths, const float* right) {
    float4 sum{0.0F, 0.0F, 0.0F, 0.0F};
#pragma unroll
    for (int m = 0; m < half; m += 4) {
      const float4 x = *reinterpret_cast<const float4*>(left + m);
      const float4 b = *reinterpret_cast<const float4*>(strengths + m);
      add(sum, x.x * b.x, right + m * stride);
      add(sum, x.y * b.y, right + (m + 1) * stride);
      add(sum, x.z * b.z, right + (m + 2) * stride);
      add(sum, x.w * b.w, right + (m + 3) * stride);
    }
    return sum;
  }
  __device__ static void add(float4& sum, float weight, const float* row) {
    const float4 x = *reinterpret_cast<const float4*>(row);
    sum = {fmaf(weight, x.x, sum.x), fmaf(weight, x.y, sum.y), fmaf(weight, x.z, sum.z),
           fmaf(weight, x.w, sum.w)};
  }

  /// Joins neighbouring blocks of `half` rows on the diagonal into blocks of twice the size.
  template <int half>
  __device__ static void join() {
    constexpr int fours = half * half / 4, count = device_chunk / (2 * half) * fours;
    const auto each = [](auto f) {
      for (int four = static_cast<int>(threadIdx.x); four < count; four += group_threads) {
        const int first = four / fours * 2 * half, row = four / (half / 4) % half, column = four % (half / 4) * 4;
        f(first, row, column);
      }
      __syncthreads();
    };
    each([](int first, int row, int column) {
      const float* const of_pairs = &scores().at(first + half + row, first);
      const float4 sum = weighted_row<half>(of_pairs, beta() + first, &inverse().at(first, first + column));
      const float4 own = *reinterpret_cast<const float4*>(of_pairs + column);
      *reinterpret_cast<float4*>(&scores().at(first + row, first + half + column)) = {
          own.x + sum.x, own.y + sum.y, own.z + sum.z, own.w + sum.w};
      *reinterpret_cast<float4*>(&inverse().at(first + row, first + half + column)) = {};
    });
    each([](int first, int row, int column) {
      const float* const products = &scores().at(first, first + half + column);
      const float4 sum = weighted_row<half>(&inverse().at(first + half + row, first + half),
                                            beta() + first + half, products);
      const float4 own = *reinterpret_cast<const float4*>(products + row * stride);
      *reinterpret_cast<float4*>(&inverse().at(first + half + row, first + column)) = {
          -own.x - sum.x, -own.y - sum.y, -own.z - sum.z, -own.w - sum.w};
    });
  }

  /// Writes N~ in the order of a panel tile, zero on and above the diagonal.
  __device__ static void write(char* into) {
#pragma unroll
    for (int i = 0; i < Pairs::bytes / 16 / group_threads; ++i) {
      const int unit = static_cast<int>(threadIdx.x) + i * group_threads, row = unit / 8;
      const int column = ((unit ^ row) & 7) * 8;
      const float* const from = &inverse().at(row, column);
      const auto pair = [&](int c) {
        return packed_pair(column + c < row ? from[c] : 0.0F, column + c + 1 < row ? from[c + 1] : 0.0F);
      };
      reinterpret_cast<uint4*>(into)[unit] = {pair(0), pair(2), pair(4), pair(6)};
    }
  }

  const DeviceLayer& layer_;
  const ChunkTensors& x_;
};

template <int d_k, GateKind kind>
__global__ __launch_bounds__(group_threads, 4) void chunk_inverses_kernel(
    const __grid_constant__ DeviceLayer layer, const __grid_constant__ ChunkTensors x, char* inverses) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  InverseBlock<d_k, kind>(layer, x).run(inverses);
#endif
}

}  // namespace

cudaError_t chunk_inverses(cudaStream_t stream, char* inverses, const ChunkTensors& x, const Chunks& p) {
  const Segments chunks{p.shape, p.work, p.shape.chunks(), Dtype::bf16};
  return with_few_gates(p.shape, [&](auto d_k, auto, auto kind) {
    return launch_on_segments<group_threads>(stream, chunks, InverseBlock<d_k(), kind()>::shared_bytes,
                                             chunk_inverses_kernel<d_k(), kind()>, x, inverses);
  });
}

}  // namespace baton
