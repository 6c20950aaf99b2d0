// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/reverse_sweep.cuh"
#include "sp_methods/kernels/device/delta/sweep.cuh"

namespace baton {
namespace {

template <int d_k, int d_v, int tiles, ChunkRule rule>
class ReverseSweep {
 public:
  using Record = ChunkRecord<d_k, d_v, rule>;
  using Pairs = Bf16Tile<device_chunk>;
  static constexpr int rows = 16 * tiles, stages = 3;
  static constexpr int run_bytes = Record::value_pairs_at - Record::w_at, beta_bytes = 4 * device_chunk;
  using Stream = RecordStream<stages, run_bytes, 0, beta_bytes>;
  static constexpr int state_at = Stream::bytes, written_at = state_at + Bf16Tile<d_k>::bytes(rows);
  static constexpr int d_o_at = written_at + Pairs::bytes(rows);
  static constexpr int shared_bytes = d_o_at + 2 * Pairs::bytes(rows);

  __device__ ReverseSweep(const DeviceLayer& layer, const ReverseSweepOperands& x, char* records)
      : layer_(layer),
        x_(x),
        chunks_(layer.chunks()),
        row_(rows * static_cast<int>(blockIdx.y)),
        records_(records + static_cast<std::int64_t>(DeviceLayer::place()) * chunks_ * Record::bytes) {}

  __device__ void run() {
    Stream::start();
    if (works()) {
      sweep();
    } else if (lane() == 0) {
      copy();
    }
    __syncwarp();
    meet_cluster();
  }

 private:
  __device__ void copy() const {
    Stream::copy(
        chunks_, [&](int step) { return record(step).memory + Record::w_at; },
        [](int) {
          return RecordRun{nullptr, 0};
        },
        [&](int step) {
          return RecordRun{reinterpret_cast<const char*>(record(step).beta()), beta_bytes};
        });
  }

  __device__ void sweep() {
    const std::int64_t first = static_cast<std::int64_t>(DeviceLayer::place()) * d_v + row_;
    if (holds_state()) {
      read_state(state_, x_.after == nullptr ? nullptr : x_.after + first * d_k, d_k, column());
      decays_.read(record(0), column());
      put_state();
    }
    read_d_o(0);
    put_d_o(0);
    read_d_o(1);
#pragma unroll 1
    for (int step = 0; step < chunks_; ++step) {
      meet_workers();
      if (step > 0 && warp() == 7) Stream::release(step - 1);
      if (holds_state() && step + 1 < chunks_) next_.read(record(step + 1), column());
      if (x_.gradients != nullptr) keep_state(step);
      put_d_o(step + 1);
      read_d_o(step + 2);
      Stream::wait(step);
      if (warp() < 4) put_written(step);
      meet_workers();
      move(step);
    }
    if (holds_state() && x_.map_state != nullptr)
      write_state(x_.map_state + first * d_k, d_k, column(), state_);
  }

  __device__ static bool holds_state() { return warp() < d_k / 16; }
  __device__ static int column() { return 16 * warp(); }
  __device__ static int token() { return 16 * warp(); }
  __device__ int chunk_of(int step) const { return chunks_ - 1 - step; }
  __device__ Record record(int step) const {
    return {records_ + static_cast<std::int64_t>(chunk_of(step)) * Record::bytes};
  }

  /// The memory of a record whose parts from W on are in the step's stage.
  __device__ static char* stage(int step) { return Stream::stage(step) - Record::w_at; }
  __device__ static Bf16Tile<d_k> w(int step) { return {stage(step) + Record::w_at}; }
  __device__ static Bf16Tile<d_k> k(int step) { return {stage(step) + Record::k_at}; }
  __device__ static Bf16Tile<d_k> q(int step) { return {stage(step) + Record::q_at}; }
  __device__ static Pairs pairs(int step) { return {stage(step) + Record::pairs_at}; }
  __device__ static const float* beta(int step) {
    return reinterpret_cast<const float*>(Stream::stage(step) + run_bytes);
  }
  __device__ static Bf16Tile<d_k> state_tile() { return {shared_space() + state_at}; }
  __device__ static Pairs written_tile() { return {shared_space() + written_at}; }
  __device__ static Pairs d_o_tile(int step) {
    return {shared_space() + d_o_at + (step & 1) * Pairs::bytes(rows)};
  }

  /// First row of this thread's values of d_o, which are read to registers and then stored in the
  /// chunk's tile.
  __device__ static int d_o_row() { return 4 * tiles * (static_cast<int>(threadIdx.x) & 3); }
  __device__ void read_d_o(int step) {
    const int token = static_cast<int>(threadIdx.x) / 4;
    for (auto& pair : d_o_) pair = 0;
    if (step >= chunks_) return;
    const auto from = layer_.rows(x_.d_o, d_v, chunk_of(step));
    if (token >= from.count) return;
    const auto* at = reinterpret_cast<const std::uint32_t*>(from.row(token) + row_ + d_o_row());
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i) d_o_[i] = at[i];
  }
  __device__ void put_d_o(int step) const {
    const int token = static_cast<int>(threadIdx.x) / 4;
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i) {
      const float2 pair = unpacked_pair(d_o_[i]);
      d_o_tile(step).set(d_o_row() + 2 * i, token, pair.x);
      d_o_tile(step).set(d_o_row() + 2 * i + 1, token, pair.y);
    }
  }

  __device__ void put_state() { put_sums(state_tile(), 0, column(), scaled_columns(state_, decays_.from)); }

  __device__ std::int64_t number(int step) const {
    return static_cast<std::int64_t>(DeviceLayer::place()) * chunks_ + chunk_of(step);
  }
  __device__ void keep_state(int step) {
    if (!holds_state()) return;
    Bf16* at = x_.gradients + (number(step) * d_v + row_) * d_k + column();
    store_sums(HeadRows<Bf16>{at, d_k, rows},
               Record::has_keys ? scaled_columns(state_, decays_.from) : state_);
  }

  /// Sets Y^T of 16 tokens.
  __device__ void put_written(int step) {
    Sums<tiles, 1> x;
    x.clear();
    add_product<d_k / 16>(x, left_operand<RowsAre::outer>(state_tile(), 0),
                          right_operand<RowsAre::outer>(k(step), token()));
    add_product<device_chunk / 16>(x, left_operand<RowsAre::outer>(d_o_tile(step), 0),
                                   right_operand<RowsAre::summed>(pairs(step), token()), warp(), 4);
    if (x_.d_written != nullptr)
      put_sums(Pairs{x_.d_written + number(step) * Pairs::bytes(d_v)}, row_, token(), x);
    const float* strength = beta(step) + token();
    x.for_each([&](int, int c, float2& pair) { pair = {-strength[c] * pair.x, -strength[c + 1] * pair.y}; });
    put_sums(written_tile(), 0, token(), x);
  }

  /// Moves the gradient before the chunk, and copies it for the next chunk.
  __device__ void move(int step) {
    if (!holds_state()) return;
    Sums<tiles, 1> added;
    added.clear();
    add_products(product<device_chunk / 16>(added, left_operand<RowsAre::outer>(d_o_tile(step), 0),
                                            right_operand<RowsAre::summed>(q(step), column())),
                 product<device_chunk / 16>(added, left_operand<RowsAre::outer>(written_tile(), 0),
                                            right_operand<RowsAre::summed>(w(step), column())));
    advance(state_, decays_.gamma, added, decays_.to);
    decays_ = next_;
    if (step + 1 < chunks_) put_state();
  }

  const DeviceLayer& layer_;
  const ReverseSweepOperands& x_;
  int chunks_, row_;
  char* records_;
  std::uint32_t d_o_[2 * tiles];
  Sums<tiles, 1> state_;
  LaneDecays decays_, next_;
};

template <int d_k, int d_v, int tiles, ChunkRule rule>
__global__ __launch_bounds__(sweep_threads,
                             1) void reverse_sweep_kernel(const __grid_constant__ DeviceLayer layer,
                                                          const __grid_constant__ ReverseSweepOperands x,
                                                          char* records) {
  ReverseSweep<d_k, d_v, tiles, rule>(layer, x, records).run();
}

template <ChunkRule rule>
cudaError_t sweep_of(cudaStream_t stream, const ReverseSweepOperands& x, char* records, const Chunks& p) {
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    const auto launch = [&](auto tiles) {
      return launch_sweep(stream, p, d_v() / (16 * tiles()),
                          ReverseSweep<d_k(), d_v(), tiles(), rule>::shared_bytes,
                          reverse_sweep_kernel<d_k(), d_v(), tiles(), rule>, x, records);
    };
    return tiles_of_block(p, d_v()) == 1 ? launch(Width<1>{}) : launch(Width<2>{});
  });
}

}  // namespace

cudaError_t reverse_sweep(cudaStream_t stream, const ReverseSweepOperands& x, char* records, const Chunks& p,
                          ChunkRule rule) {
  return rule == ChunkRule::delta ? sweep_of<ChunkRule::delta>(stream, x, records, p)
                                  : sweep_of<ChunkRule::low_rank>(stream, x, records, p);
}

}  // namespace baton
