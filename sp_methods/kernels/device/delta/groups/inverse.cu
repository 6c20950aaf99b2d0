// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/groups/inverse.cuh"
#include "sp_methods/kernels/device/delta/groups/inverse_steps.cuh"

namespace baton {
namespace {

template <int d_k, GateKind kind>
class InverseBlock {
 public:
  using Inverse = ChunkInverse<group_threads>;
  using Gates = GateTile<kind, d_k>;
  static constexpr int scores_at = PanelTile<d_k>::bytes,
                       inverse_at = scores_at + ChunkMatrix::bytes(Inverse::stride);
  static constexpr int floats_at = inverse_at + ChunkMatrix::bytes(Inverse::stride);
  static constexpr int shared_bytes = floats_at + 3 * device_chunk * 4;

  __device__ InverseBlock(const DeviceLayer& layer, const ChunkTensors& x) : layer_(layer), x_(x) {}

  __device__ void run(char* inverses) const {
    load();
    put_scores();
    __syncthreads();
    const Inverse found{scores(), matrix(inverse_at), beta()};
    found.run();
    const std::int64_t number = static_cast<std::int64_t>(DeviceLayer::place()) * layer_.chunks() + chunk();
    found.write(inverses + number * Inverse::Pairs::bytes);
  }

 private:
  __device__ static int chunk() { return DeviceLayer::segment(); }
  __device__ static PanelTile<d_k> keys() { return {shared_space()}; }
  __device__ static ChunkMatrix matrix(int at) {
    return {reinterpret_cast<float*>(shared_space() + at), Inverse::stride};
  }
  __device__ static ChunkMatrix scores() { return matrix(scores_at); }
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

  const DeviceLayer& layer_;
  const ChunkTensors& x_;
};

template <int d_k, GateKind kind>
__global__ __launch_bounds__(group_threads,
                             4) void chunk_inverses_kernel(const __grid_constant__ DeviceLayer layer,
                                                           const __grid_constant__ ChunkTensors x,
                                                           char* inverses) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  InverseBlock<d_k, kind>(layer, x).run(inverses);
#endif
}

}  // namespace

cudaError_t chunk_inverses(cudaStream_t stream, char* chunks, const ChunkTensors& x, const Chunks& p) {
  if (p.shape.gate == GateKind::vector) return gated_records(stream, chunks, x, p);
  const auto launch = [&](auto d_k, auto kind) {
    return launch_on_segments<group_threads>(stream, each_chunk(p), InverseBlock<d_k(), kind()>::shared_bytes,
                                             chunk_inverses_kernel<d_k(), kind()>, x, chunks);
  };
  return with_widths(p.shape, [&](auto d_k, auto) {
    return p.shape.gate == GateKind::none ? launch(d_k, GateConstant<GateKind::none>{})
                                          : launch(d_k, GateConstant<GateKind::scalar>{});
  });
}

}  // namespace baton
