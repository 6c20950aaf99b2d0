// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/kernels/device/delta/forward_sweep.cuh"
#include "sp_methods/kernels/device/delta/sweep.cuh"

namespace baton {
namespace {

/// The results that a sweep's kernel is compiled for.
enum class Leaves { map, output };

template <int d_k, int d_v, int tiles, Leaves leaves, ChunkRule rule>
class ForwardSweep {
 public:
  using Record = ChunkRecord<d_k, d_v, rule>;
  using Pairs = Bf16Tile<device_chunk>;
  static constexpr int rows = 16 * tiles;
  static constexpr int stages = (leaves == Leaves::map ? 4 : 3) - (Record::has_keys ? 1 : 0);
  // Of a stage: W and k", or those with q' and A; the block's rows of U; beta, or the block's rows
  // of V.
  static constexpr int run_bytes = leaves == Leaves::map ? Record::q_at : Record::u_at;
  static constexpr int u_bytes = Pairs::bytes(rows),
                       last_bytes = Record::has_keys ? u_bytes : 4 * device_chunk;
  using Stream = RecordStream<stages, run_bytes, u_bytes, last_bytes>;
  static constexpr int state_at = Stream::bytes, written_at = state_at + Bf16Tile<d_k>::bytes(rows);
  static constexpr int shared_bytes = written_at + Pairs::bytes(rows);

  __device__ ForwardSweep(const DeviceLayer& layer, const ForwardSweepOutputs& out, char* records)
      : layer_(layer),
        out_(out),
        chunks_(layer.chunks()),
        records_(records + static_cast<std::int64_t>(DeviceLayer::place()) * chunks_ * Record::bytes) {
    const int value_slabs = starts_from_values() ? d_v / rows : 0;
    has_values_ = static_cast<int>(blockIdx.y) < value_slabs;
    row_ = rows * (static_cast<int>(blockIdx.y) - (has_values_ ? 0 : value_slabs));
  }

  __device__ void run(const float* incoming) {
    Stream::start();
    if (works()) {
      sweep(incoming);
    } else if (lane() == 0) {
      copy();
    }
    __syncwarp();
    meet_cluster();
  }

 private:
  __device__ void copy() const {
    Stream::copy(
        chunks_, [&](int step) { return record(step).memory; },
        [&](int step) { return rows_of(record(step).u()); },
        [&](int step) {
          if constexpr (Record::has_keys) return rows_of(record(step).values());
          return RecordRun{reinterpret_cast<const char*>(record(step).beta()), last_bytes};
        });
  }

  /// The block's rows of a tile, or nothing without values.
  __device__ RecordRun rows_of(const Pairs& tile) const {
    return {tile.memory + row_ * Pairs::row_bytes, has_values_ ? u_bytes : 0};
  }

  __device__ void sweep(const float* incoming) {
    start(incoming);
    if (holds_state()) {
      decays_.read(record(0), column());
      put_state();
    }
#pragma unroll 1
    for (int step = 0; step < chunks_; ++step) {
      meet_workers();
      if (step > 0 && warp() == 7) Stream::release(step - 1);
      if (holds_state() && step + 1 < chunks_) next_.read(record(step + 1), column());
      if (out_.states != nullptr) keep_state(step);
      Stream::wait(step);
      Sums<tiles, 1> added;
      Sums<1, tiles> o;
      added.clear();
      if (warp() < 4) {
        put_written(step, added);
      } else {
        if (writes_values()) add_products(product_of_values(added, step));
        if constexpr (leaves == Leaves::output) start_output(step, o);
      }
      meet_workers();
      move(step, added);
      if constexpr (leaves == Leaves::output) {
        if (warp() >= 4) put_output(step, o);
      }
    }
    finish();
  }

  __device__ bool starts_from_values() const {
    if (leaves == Leaves::output) return out_.correction == nullptr;
    return out_.map_state != nullptr || out_.states != nullptr;
  }
  __device__ static bool holds_state() { return warp() < d_k / 16; }
  __device__ static int column() { return 16 * warp(); }
  __device__ static int token() { return 16 * (warp() & 3); }
  __device__ Record record(int step) const {
    return {records_ + static_cast<std::int64_t>(step) * Record::bytes};
  }

  __device__ static char* stage(int step) { return Stream::stage(step); }
  __device__ static Bf16Tile<d_k> w(int step) { return {stage(step) + Record::w_at}; }
  __device__ static Bf16Tile<d_k> k(int step) { return {stage(step) + Record::k_at}; }
  __device__ static Bf16Tile<d_k> q(int step) { return {stage(step) + Record::q_at}; }
  __device__ static Pairs pairs(int step) { return {stage(step) + Record::pairs_at}; }
  /// Rows row_ and on of U^T, at their offsets in the whole tile.
  __device__ Pairs u(int step) const { return {stage(step) + run_bytes - row_ * Pairs::row_bytes}; }
  /// The same rows of V^T.
  __device__ Pairs values(int step) const { return {u(step).memory + u_bytes}; }
  __device__ static Bf16Tile<d_k> keys(int step) { return {stage(step) + Record::keys_at}; }
  __device__ static Pairs value_pairs(int step) { return {stage(step) + Record::value_pairs_at}; }
  __device__ static float2 beta(int step, int token) {
    if constexpr (Record::has_keys) {
      return {1.0F, 1.0F};
    } else {
      return reinterpret_cast<const float2*>(stage(step) + run_bytes + u_bytes)[token / 2];
    }
  }
  __device__ static Bf16Tile<d_k> state_tile() { return {shared_space() + state_at}; }
  __device__ static Pairs written_tile() { return {shared_space() + written_at}; }

  __device__ void start(const float* incoming) {
    if (!holds_state()) return;
    if (has_values_) {
      const std::int64_t first = static_cast<std::int64_t>(DeviceLayer::place()) * d_v + row_;
      return read_state(state_, incoming == nullptr ? nullptr : incoming + first * d_k, d_k, column());
    }
    state_.for_each([&](int r, int c, float2& x) {
      const int ahead = row_ + r - column() - c;
      x = {ahead == 0 ? 1.0F : 0.0F, ahead == 1 ? 1.0F : 0.0F};
    });
  }

  __device__ void put_state() { put_sums(state_tile(), 0, column(), scaled_columns(state_, decays_.to)); }

  /// True if the block's warp adds what values write along keys of their own.
  __device__ bool writes_values() const { return Record::has_keys && has_values_ && holds_state(); }
  __device__ auto product_of_values(Sums<tiles, 1>& added, int step) const {
    return product<device_chunk / 16>(added, left_operand<RowsAre::outer>(values(step), row_),
                                      right_operand<RowsAre::summed>(keys(step), column()));
  }

  /// Sets Vn^T of 16 tokens, and starts what is added to the state.
  __device__ void put_written(int step, Sums<tiles, 1>& added) {
    Sums<tiles, 1> x;
    x.clear();
    const auto lacked = product<d_k / 16>(x, left_operand<RowsAre::outer>(state_tile(), 0),
                                          right_operand<RowsAre::outer>(w(step), token()));
    if (writes_values()) {
      add_products(lacked, product_of_values(added, step));
    } else {
      add_products(lacked);
    }
    const SumsPlace<Pairs> place(row_, token());
#pragma unroll
    for (int i = 0; i < 4 * tiles; ++i) {
      const int m = i / 4, half = i / 2 % 2, n = i % 2, at = place.at(m, half, n);
      float2 missing{-x.c[m][n][2 * half], -x.c[m][n][2 * half + 1]};
      if (has_values_) missing = missing + u(step).pair(at);
      if (out_.missing != nullptr) kept_missing(step).set_pair(at, missing);
      const float2 written = beta(step, token() + 8 * n + 2 * (lane() & 3)) * missing;
      x.c[m][n][2 * half] = written.x;
      x.c[m][n][2 * half + 1] = written.y;
    }
    put_sums(written_tile(), 0, token(), x);
  }

  __device__ std::int64_t number(int step) const {
    return static_cast<std::int64_t>(DeviceLayer::place()) * chunks_ + step;
  }
  __device__ Pairs kept_missing(int step) const { return {out_.missing + number(step) * Pairs::bytes(d_v)}; }
  __device__ void keep_state(int step) {
    if (!holds_state()) return;
    Bf16* at = out_.states + (number(step) * d_v + row_) * d_k + column();
    store_sums(HeadRows<Bf16>{at, d_k, rows}, Record::has_keys ? scaled_columns(state_, decays_.to) : state_);
  }

  /// Moves the state behind the chunk, and copies it for the next chunk.
  __device__ void move(int step, Sums<tiles, 1>& added) {
    if (!holds_state()) return;
    add_product<device_chunk / 16>(added, left_operand<RowsAre::outer>(written_tile(), 0),
                                   right_operand<RowsAre::summed>(k(step), column()));
    advance(state_, decays_.gamma, added, decays_.from);
    decays_ = next_;
    if (step + 1 < chunks_) put_state();
  }

  /// Starts the output of 16 tokens by what does not depend on the chunk's reads.
  __device__ void start_output(int step, Sums<1, tiles>& o) const {
    o.clear();
    add_product<d_k / 16>(o, left_operand<RowsAre::outer>(q(step), token()),
                          right_operand<RowsAre::outer>(state_tile(), 0));
    if (Record::has_keys && has_values_)
      add_product<device_chunk / 16>(o, left_operand<RowsAre::outer>(value_pairs(step), token()),
                                     right_operand<RowsAre::outer>(values(step), row_), 0, token() / 16 + 1);
  }

  __device__ void put_output(int step, Sums<1, tiles>& o) const {
    add_product<device_chunk / 16>(o, left_operand<RowsAre::outer>(pairs(step), token()),
                                   right_operand<RowsAre::outer>(written_tile(), 0), 0, token() / 16 + 1);
    const bool is_correction = out_.correction != nullptr;
    auto into = layer_.rows(is_correction ? out_.correction : out_.o, is_correction ? d_k : d_v, step);
    store_sums(HeadRows<Bf16>{into.row(token()) + row_, into.stride, into.count - token()}, o);
  }

  __device__ void finish() {
    if (!holds_state() || leaves != Leaves::map || out_.states != nullptr) return;
    const std::int64_t head = DeviceLayer::place();
    if (has_values_) return write_state(out_.map_state + (head * d_v + row_) * d_k, d_k, column(), state_);
    float* matrix = out_.map_matrix + head * d_k * d_k;
    state_.for_each([&](int r, int c, float2& x) {
      matrix[(column() + c) * d_k + row_ + r] = x.x;
      matrix[(column() + c + 1) * d_k + row_ + r] = x.y;
    });
  }

  const DeviceLayer& layer_;
  const ForwardSweepOutputs& out_;
  int chunks_;
  char* records_;
  bool has_values_;
  int row_;  // of the state, the first of the block
  Sums<tiles, 1> state_;
  LaneDecays decays_, next_;
};

template <int d_k, int d_v, int tiles, Leaves leaves, ChunkRule rule>
__global__ __launch_bounds__(sweep_threads,
                             1) void forward_sweep_kernel(const __grid_constant__ DeviceLayer layer,
                                                          const __grid_constant__ ForwardSweepOutputs out,
                                                          char* records, const float* incoming) {
  ForwardSweep<d_k, d_v, tiles, leaves, rule>(layer, out, records).run(incoming);
}

template <int d_k, int d_v, Leaves leaves, ChunkRule rule>
cudaError_t launch_forward(cudaStream_t stream, const ForwardSweepOutputs& out, char* records,
                           const float* incoming, const Chunks& p) {
  int rows = out.correction == nullptr ? d_v : d_k;
  if (leaves == Leaves::map)
    rows =
        (out.map_state == nullptr && out.states == nullptr ? 0 : d_v) + (out.map_matrix == nullptr ? 0 : d_k);
  const auto launch = [&](auto tiles) {
    return launch_sweep(stream, p, rows / (16 * tiles()),
                        ForwardSweep<d_k, d_v, tiles(), leaves, rule>::shared_bytes,
                        forward_sweep_kernel<d_k, d_v, tiles(), leaves, rule>, out, records, incoming);
  };
  return tiles_of_block(p, rows) == 1 ? launch(Width<1>{}) : launch(Width<2>{});
}

template <ChunkRule rule>
cudaError_t sweep_of(cudaStream_t stream, const ForwardSweepOutputs& out, char* records,
                     const float* incoming, const Chunks& p) {
  return with_widths(p.shape, [&](auto d_k, auto d_v) {
    if (out.o == nullptr && out.correction == nullptr)
      return launch_forward<d_k(), d_v(), Leaves::map, rule>(stream, out, records, incoming, p);
    return launch_forward<d_k(), d_v(), Leaves::output, rule>(stream, out, records, incoming, p);
  });
}

}  // namespace

cudaError_t forward_sweep(cudaStream_t stream, const ForwardSweepOutputs& out, char* records,
                          const float* incoming, const Chunks& p, ChunkRule rule) {
  return rule == ChunkRule::delta ? sweep_of<ChunkRule::delta>(stream, out, records, incoming, p)
                                  : sweep_of<ChunkRule::low_rank>(stream, out, records, incoming, p);
}

}  // namespace baton
