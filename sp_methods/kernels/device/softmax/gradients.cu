// SPDX-License-Identifier: Apache-2.0
// The device body of softmax_block_gradients: three kernels, for dq, dk and dv. One block of
// threads a head and 256 rows, eight warps; rows are queries for dq, keys for dk and dv.
//
//   for column tiles that see or are seen:   p = 2^{c rows1 columns1^T - lse log2 e},  c = s log2 e
//     dv:       sums += p columns2
//     dq, dk:   sums += (p (.) (rows2 columns2^T - delta)) columns1, times s at the end
//   rows1, rows2 = q, d_o and columns1, columns2 = k, v for dq; the other way round for dk and dv
//
// Each gradient is summed by the block that owns its rows, so that two runs give the same bits.
// Forming scores three times and d_o v^T twice costs 10 d_k + 6 d_v flop for each visible pair.
#include "sp_methods/kernels/device/cudnn/bodies.cuh"
#include "sp_methods/kernels/device/cudnn/calls.cuh"
#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/softmax/mask.cuh"
#include "sp_methods/kernels/device/tile/attention_tile.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"

namespace baton {
namespace {

constexpr int threads = 256, row_tile = 256;
constexpr int score_columns = 32;  // whose scores are formed at a time, for the sake of registers

enum class Gradient { q, k, v };

/// Operands of one kernel, with the gradient that it adds to.
struct GradientCall {
  SoftmaxInputs<OnDevice> in;
  const Bf16* d_o;
  const float *lse, *delta;
  float* out;
  SoftmaxMask mask;
};

/// lse and delta of a query, in registers for rows and in shared memory for columns.
struct QueryNumbers {
  float lse, delta;  ///< lse to base 2.
};

template <int d_k, int d_v, Gradient gradient>
class GradientTile {
 public:
  static constexpr bool rows_are_queries = gradient == Gradient::q;
  static constexpr bool needs_delta = gradient != Gradient::v;
  static constexpr int d_out = gradient == Gradient::v ? d_v : d_k;
  static constexpr int second_at = Bf16Tile<d_k>::bytes(row_tile);
  static constexpr int slots_at = second_at + (needs_delta ? Bf16Tile<d_v>::bytes(row_tile) : 0);
  static constexpr int key_bytes = Bf16Tile<d_k>::bytes(column_tile);
  static constexpr int slot_bytes = key_bytes + Bf16Tile<d_v>::bytes(column_tile);
  static constexpr int numbers_at = slots_at + 2 * slot_bytes;
  static constexpr int numbers_bytes = column_tile * static_cast<int>(sizeof(QueryNumbers));
  static constexpr int shared_bytes = numbers_at + (rows_are_queries ? 0 : 2 * numbers_bytes);

  __device__ explicit GradientTile(const GradientCall& x)
      : x_(x),
        head_(static_cast<int>(blockIdx.y)),
        first_row_(row_tile * (rows_are_queries
                                   ? static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)
                                   : static_cast<int>(blockIdx.x))),
        own_row_(first_row_ + warp_rows * warp()),
        first_((rows_are_queries ? x.mask.seen(first_row_).hidden : x.mask.first_query(first_row_)) /
               column_tile),
        count_(max(tiles_of(end_of_columns(x), column_tile) - first_, 0)),
        first_loader_(head_of(rows_are_queries ? x.in.k : x.in.q, !rows_are_queries, d_k)),
        second_loader_(head_of(rows_are_queries ? x.in.v : x.d_o, !rows_are_queries, d_v)) {}

  __device__ void run() {
    load_rows();
    load(0);
    put_numbers(0, column_numbers(0));
    if constexpr (rows_are_queries) read_numbers();
    out_.clear();
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<0>();
      __syncthreads();
      load(step + 1);
      const QueryNumbers next = column_numbers(step + 1);
      const int columns = (first_ + step) * column_tile;
      if (is_visible(columns)) add(step, columns);
      put_numbers(step + 1, next);
    }
    wait_for_copies<0>();
    const float scale = needs_delta ? x_.mask.scale : 1.0F;
    const HeadOf<float> out(x_.out, tokens_of(rows_are_queries), x_.mask.heads, head_, d_out);
    const auto scaled = [scale](int, int, float2 x) { return make_float2(scale * x.x, scale * x.y); };
    write_rows(out, own_row_, true, out_, scaled);
  }

 private:
  using Scores = Sums<2, score_columns / 16>;
  __device__ int tokens_of(bool queries) const { return queries ? x_.mask.q_tokens : x_.mask.k_tokens; }
  __device__ int end_of_columns(const GradientCall& x) const {
    return rows_are_queries ? x.mask.seen(first_row_ + row_tile - 1).visible
                            : x.mask.end_query(first_row_ + row_tile - 1);
  }
  __device__ HeadOf<const Bf16> head_of(const Bf16* x, bool is_queries, int width) const {
    return {x, tokens_of(is_queries), x_.mask.heads, head_, width};
  }
  __device__ static Bf16Tile<d_k> first_rows() { return {shared_space()}; }
  __device__ static Bf16Tile<d_v> second_rows() { return {shared_space() + second_at}; }
  __device__ static Bf16Tile<d_k> first_columns(int step) {
    return {shared_space() + slots_at + (step & 1) * slot_bytes};
  }
  __device__ static auto second_columns(int step) {
    return Bf16Tile<d_v>{first_columns(step).memory + key_bytes};
  }
  __device__ static QueryNumbers* numbers(int step) {
    return reinterpret_cast<QueryNumbers*>(shared_space() + numbers_at + (step & 1) * numbers_bytes);
  }

  __device__ void load_rows() const {
    const RowLoader<d_k, threads> first(head_of(rows_are_queries ? x_.in.q : x_.in.k, rows_are_queries, d_k));
    first.template load<row_tile>(first_rows(), first_row_);
    if constexpr (!needs_delta) return;
    const RowLoader<d_v, threads> second(head_of(rows_are_queries ? x_.d_o : x_.in.v, rows_are_queries, d_v));
    second.template load<row_tile>(second_rows(), first_row_);
  }
  __device__ void load(int step) const {
    if (step < count_) {
      first_loader_.template load<column_tile>(first_columns(step), (first_ + step) * column_tile);
      second_loader_.template load<column_tile>(second_columns(step), (first_ + step) * column_tile);
    }
    commit_copies();
  }

  /// lse and delta of a query. Past the last query lse is infinite, so that probabilities are zero.
  __device__ QueryNumbers numbers_of(int query) const {
    if (query >= x_.mask.q_tokens) return {INFINITY, 0.0F};
    const std::int64_t at = static_cast<std::int64_t>(query) * x_.mask.heads + head_;
    return {log2_e * x_.lse[at], needs_delta ? x_.delta[at] : 0.0F};
  }
  __device__ void read_numbers() {
#pragma unroll
    for (int i = 0; i < 4; ++i) own_[i] = numbers_of(own_row_ + 8 * i + (lane() >> 2));
  }
  __device__ QueryNumbers column_numbers(int step) const {
    if (rows_are_queries || step >= count_ || threadIdx.x >= column_tile) return {};
    return numbers_of((first_ + step) * column_tile + static_cast<int>(threadIdx.x));
  }
  __device__ void put_numbers(int step, const QueryNumbers& x) const {
    if (rows_are_queries || step >= count_ || threadIdx.x >= column_tile) return;
    numbers(step)[threadIdx.x] = x;
  }

  /// True if the mask leaves any pair of this warp's rows and a column tile from `columns` on.
  __device__ bool is_visible(int columns) const {
    return rows_are_queries ? x_.mask.sees_any(own_row_, warp_rows, columns, column_tile)
                            : x_.mask.sees_any(columns, column_tile, own_row_, warp_rows);
  }
  /// True if the mask leaves all pairs of this warp's rows and a column tile from `columns` on.
  __device__ bool is_whole(int columns) const {
    return rows_are_queries ? x_.mask.sees_all(own_row_, warp_rows, columns, column_tile)
                            : x_.mask.sees_all(columns, column_tile, own_row_, warp_rows);
  }

  __device__ void add(int step, int columns) {
    const bool masked = !is_whole(columns);
#pragma unroll
    for (int at = 0; at < column_tile; at += score_columns) {
      Scores scores;
      scores.clear();
      add_product<d_k / 16>(scores, left_operand<RowsAre::outer>(first_rows(), warp_rows * warp()),
                            right_operand<RowsAre::outer>(first_columns(step), at));
      exponentiate(scores, numbers(step) + at);
      if (masked) hide(scores, columns + at);
      if constexpr (needs_delta) differentiate(scores, step, at);
      const PackedSums<2, score_columns / 16> packed(scores);
      if constexpr (needs_delta) {
        multiply(packed, right_operand<RowsAre::summed>(first_columns(step), 0), at);
      } else {
        multiply(packed, right_operand<RowsAre::summed>(second_columns(step), 0), at);
      }
    }
  }

  template <class Right>
  __device__ void multiply(const auto& left, const Right& right, int at) {
    add_product<score_columns / 16>(out_, left, FromStep<Right>{right, at / 16});
  }

  /// lse and delta of the query of row r, or of column c if columns are queries.
  __device__ QueryNumbers numbers_at_place(const QueryNumbers* of_columns, int r, int c) const {
    return rows_are_queries ? own_[r / 8] : of_columns[c];
  }

  __device__ void exponentiate(Scores& scores, const QueryNumbers* columns) const {
    const float slope = x_.mask.scale * log2_e;
    scores.for_each([&](int r, int c, float2& x) {
      x.x = power_of_2(fmaf(slope, x.x, -numbers_at_place(columns, r, c).lse));
      x.y = power_of_2(fmaf(slope, x.y, -numbers_at_place(columns, r, c + 1).lse));
    });
  }

  __device__ bool is_seen(int row, int column) const {
    return rows_are_queries ? x_.mask.sees(row, column) : x_.mask.sees(column, row);
  }
  __device__ void hide(Scores& scores, int columns) const {
    scores.for_each([&](int r, int c, float2& x) {
      if (!is_seen(own_row_ + r, columns + c)) x.x = 0.0F;
      if (!is_seen(own_row_ + r, columns + c + 1)) x.y = 0.0F;
    });
  }

  /// Replaces probabilities by gradients of the scores.
  __device__ void differentiate(Scores& scores, int step, int at) const {
    Scores d_scores;
    d_scores.clear();
    add_product<d_v / 16>(d_scores, left_operand<RowsAre::outer>(second_rows(), warp_rows * warp()),
                          right_operand<RowsAre::outer>(second_columns(step), at));
    const QueryNumbers* columns = numbers(step) + at;
    for_each_of_both(scores, d_scores, [&](int r, int c, float2& p, float2 d) {
      p = {p.x * (d.x - numbers_at_place(columns, r, c).delta),
           p.y * (d.y - numbers_at_place(columns, r, c + 1).delta)};
    });
  }

  const GradientCall& x_;
  int head_, first_row_, own_row_;
  int first_, count_;  // column tiles
  RowLoader<d_k, threads> first_loader_;
  RowLoader<d_v, threads> second_loader_;
  QueryNumbers own_[4];
  Sums<2, d_out / 16> out_;
};

template <int d_k, int d_v, Gradient gradient>
__global__ __launch_bounds__(threads,
                             1) void softmax_block_gradients_kernel(const __grid_constant__ GradientCall x) {
  GradientTile<d_k, d_v, gradient>(x).run();
}

template <int d_k, int d_v, Gradient gradient>
cudaError_t launch_gradient(cudaStream_t stream, const GradientCall& x) {
  const int rows = gradient == Gradient::q ? x.mask.q_tokens : x.mask.k_tokens;
  const dim3 grid(static_cast<unsigned>(tiles_of(rows, row_tile)), static_cast<unsigned>(x.mask.heads));
  return launch(stream, grid, threads, GradientTile<d_k, d_v, gradient>::shared_bytes,
                softmax_block_gradients_kernel<d_k, d_v, gradient>, x);
}

cudaError_t softmax_block_gradients(cudaStream_t stream, const SoftmaxBlockGradients::Operands<OnDevice>& x,
                                    const SoftmaxGradientsShape& shape) {
  if (shape.body == SoftmaxBody::cudnn) return cudnn_softmax_block_gradients(stream, x, shape);
  const SoftmaxMask mask(stream, shape);
  return with_widths({.d_k = shape.d_k, .d_v = shape.d_v}, [&](auto d_k, auto d_v) {
    const auto call = [&](void* out) {
      return GradientCall{x.in, x.d_o, x.lse, x.delta, static_cast<float*>(out), mask};
    };
    cuda(launch_gradient<d_k(), d_v(), Gradient::q>(stream, call(x.dq)));
    cuda(launch_gradient<d_k(), d_v(), Gradient::k>(stream, call(x.dk)));
    return launch_gradient<d_k(), d_v(), Gradient::v>(stream, call(x.dv));
  });
}

const RegisteredCudaKernel registered =
    device_body<SoftmaxBlockGradients>(softmax_block_gradients, gradients_refused_by_cudnn,
                                       [](const SoftmaxGradientsShape& p) { return lacks_seen_keys(p); });

}  // namespace
}  // namespace baton
