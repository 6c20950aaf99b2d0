// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "sp_methods/kernels/device/gla/layer.cuh"
#include "sp_methods/kernels/device/left_product/product.cuh"
#include "sp_methods/kernels/device/tile/attention_tile.cuh"

namespace baton {
namespace {

constexpr int threads = 128;
constexpr int row_tile = 128;
/// Number of column tiles in a row tile, each with its own exponents.
constexpr int halves = row_tile / column_tile;

/// 2^e for e <= 0; zero if f32 has no normal number for it.
__device__ float exact_power_of_2(int e) { return e < -126 ? 0.0F : __int_as_float((127 + e) << 23); }

__device__ std::uint32_t times(std::uint32_t x, std::uint32_t y) {
  const __nv_bfloat162 product =
      __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&x), *reinterpret_cast<const __nv_bfloat162*>(&y));
  return *reinterpret_cast<const std::uint32_t*>(&product);
}

/// A left operand whose summed index is multiplied by factors in shared memory.
template <class Left>
struct ScaledOperand {
  Left left;
  const Bf16* factors;

  __device__ void load(std::uint32_t (&x)[4], int piece, int step) const {
    left.load(x, piece, step);
    const auto* at = reinterpret_cast<const std::uint32_t*>(factors) + 8 * step + (lane() & 3);
    const std::uint32_t low = at[0], high = at[4];
    x[0] = times(x[0], low);
    x[1] = times(x[1], low);
    x[2] = times(x[2], high);
    x[3] = times(x[3], high);
  }
};

template <int d_in, int d_out, DecayIndex index>
class Product {
 public:
  static constexpr int rows_bytes = Bf16Tile<d_in>::bytes(row_tile);
  static constexpr int middle_bytes = Bf16Tile<d_in>::bytes(column_tile);
  static constexpr int slot_bytes = middle_bytes + Bf16Tile<d_out>::bytes(column_tile);
  static constexpr int factors_at = rows_bytes + 2 * slot_bytes;
  static constexpr int factor_bytes = index == DecayIndex::inner   ? halves * d_in * 2
                                      : index == DecayIndex::outer ? d_out * 4
                                                                   : 0;
  static constexpr int shared_bytes = factors_at + 2 * factor_bytes;

  __device__ explicit Product(const ProductCall& call)
      : call_(call),
        head_(static_cast<int>(blockIdx.y)),
        row_tile_(tile_of_block(call)),
        middle_loader_(head_of(call.middle, d_in)),
        right_loader_(head_of(call.right, d_out)) {
    const int tiles = tiles_of(call.tokens, column_tile);
    const int first_tile = halves * row_tile_;
    first_ = call.columns == ColumnTiles::later ? first_tile + 1 : 0;
    const int end = call.columns == ColumnTiles::earlier ? min(first_tile + 1, tiles) : tiles;
    count_ = max(end - first_, 0);
  }

  __device__ void run() {
    const RowLoader<d_in, threads> rows(head_of(call_.left, d_in));
    rows.template load<row_tile>(row_tile_memory(), static_cast<std::int64_t>(row_tile_) * row_tile);
    load(0);
    put_factors(0, factor_exponents(0));
    out_.clear();
#pragma unroll 1
    for (int step = 0; step < count_; ++step) {
      wait_for_copies<0>();
      __syncthreads();
      load(step + 1);
      const Exponents next = factor_exponents(step + 1);
      if (takes_part(step)) multiply(step);
      put_factors(step + 1, next);
    }
    wait_for_copies<0>();
    write();
  }

 private:
  /// Differences of exponents for this thread's factors of one step.
  static constexpr int own_factors =
      std::max((index == DecayIndex::inner ? halves * d_in : d_out) / threads, 1);
  struct Exponents {
    int e[own_factors];
  };

  /// The row tile of a block. Blocks start in order, those with the most columns first.
  __device__ static int tile_of_block(const ProductCall& call) {
    const int number = static_cast<int>(blockIdx.x);
    return call.columns == ColumnTiles::earlier ? static_cast<int>(gridDim.x) - 1 - number : number;
  }
  __device__ HeadOf<const Bf16> head_of(const Bf16* x, int width) const {
    return {x, call_.tokens, call_.heads, head_, width};
  }
  __device__ static Bf16Tile<d_in> row_tile_memory() { return {shared_space()}; }
  __device__ static Bf16Tile<d_in> middle(int step) {
    return {shared_space() + rows_bytes + (step & 1) * slot_bytes};
  }
  __device__ static Bf16Tile<d_out> right(int step) { return {middle(step).memory + middle_bytes}; }
  template <class Element>
  __device__ static Element* factors(int step) {
    return reinterpret_cast<Element*>(shared_space() + factors_at + (step & 1) * factor_bytes);
  }

  /// The column tile of a step, from the farthest one on.
  __device__ int column_of(int step) const {
    return call_.rows_are_queries ? first_ + step : first_ + count_ - 1 - step;
  }
  __device__ static int half() { return warp() * warp_rows / column_tile; }
  /// True if this warp's rows see the columns of a step.
  __device__ bool takes_part(int step) const {
    const int row = halves * row_tile_ + half(), column = column_of(step);
    return call_.columns == ColumnTiles::all ||
           (call_.columns == ColumnTiles::earlier ? column < row : column > row);
  }

  __device__ void load(int step) const {
    if (step < count_) {
      const std::int64_t first = static_cast<std::int64_t>(column_of(step)) * column_tile;
      middle_loader_.template load<column_tile>(middle(step), first);
      right_loader_.template load<column_tile>(right(step), first);
    }
    commit_copies();
  }

  __device__ int exponent(const int* of, int tile, int d, int channel) const {
    const int last = tiles_of(call_.tokens, column_tile) - 1;
    return of[(static_cast<std::int64_t>(min(tile, last)) * call_.heads + head_) * d + channel];
  }
  __device__ int row_exponent(int in_half, int d, int channel) const {
    return exponent(call_.row_exponents, halves * row_tile_ + in_half, d, channel);
  }
  /// The exponent of the query minus the exponent of the key.
  __device__ int difference(int row, int column) const {
    return call_.rows_are_queries ? row - column : column - row;
  }

  __device__ Exponents factor_exponents(int step) const {
    Exponents all{};
    if (step >= count_) return all;
#pragma unroll
    for (int i = 0; i < own_factors; ++i) {
      const int number = static_cast<int>(threadIdx.x) + i * threads;
      if constexpr (index == DecayIndex::inner) {
        const int channel = number % d_in;
        all.e[i] = difference(row_exponent(number / d_in, d_in, channel),
                              exponent(call_.column_exponents, column_of(step), d_in, channel));
      }
      if constexpr (index == DecayIndex::outer) {
        if (step == 0 || number >= d_out) continue;
        all.e[i] = -abs(exponent(call_.column_exponents, column_of(step), d_out, number) -
                        exponent(call_.column_exponents, column_of(step - 1), d_out, number));
      }
    }
    return all;
  }

  __device__ void put_factors(int step, const Exponents& exponents) const {
    if (step >= count_) return;
#pragma unroll
    for (int i = 0; i < own_factors; ++i) {
      const int number = static_cast<int>(threadIdx.x) + i * threads;
      const float power = exact_power_of_2(exponents.e[i]);
      if constexpr (index == DecayIndex::inner) factors<Bf16>(step)[number] = __float2bfloat16(power);
      if constexpr (index == DecayIndex::outer)
        if (number < d_out) factors<float>(step)[number] = power;
    }
  }

  __device__ void multiply(int step) {
    Sums<2, column_tile / 16> scores;
    scores.clear();
    const auto rows = left_operand<RowsAre::outer>(row_tile_memory(), warp_rows * warp());
    const auto columns = right_operand<RowsAre::outer>(middle(step), 0);
    if constexpr (index == DecayIndex::inner) {
      const ScaledOperand<decltype(rows)> faded{rows, factors<Bf16>(step) + half() * d_in};
      add_product<d_in / 16>(scores, faded, columns);
    } else {
      add_product<d_in / 16>(scores, rows, columns);
    }
    if constexpr (index == DecayIndex::outer) follow(step);
    const PackedSums<2, column_tile / 16> packed(scores);
    add_product<column_tile / 16>(out_, packed, right_operand<RowsAre::summed>(right(step), 0));
  }

  /// Multiplies the sums by the decay up to the columns of a step.
  __device__ void follow(int step) {
    const float* by = factors<float>(step);
    out_.for_each([&](int, int c, float2& x) {
      const float2 factor = *reinterpret_cast<const float2*>(by + c);
      x = {x.x * factor.x, x.y * factor.y};
    });
  }

  __device__ void write() {
    const HeadOf<float> out(call_.out, call_.tokens, call_.heads, head_, d_out);
    const std::int64_t first = static_cast<std::int64_t>(row_tile_) * row_tile + warp_rows * warp();
    write_rows(out, first, call_.adds, out_, [&](int, int, float2 x) {
      return float2{call_.scale * x.x, call_.scale * x.y};
    });
  }

  const ProductCall& call_;
  int head_, row_tile_;
  int first_, count_;  // column tiles
  RowLoader<d_in, threads> middle_loader_;
  RowLoader<d_out, threads> right_loader_;
  Sums<2, d_out / 16> out_;
};

template <int d_in, int d_out, DecayIndex index>
__global__ __launch_bounds__(threads, 2) void left_product_kernel(const __grid_constant__ ProductCall call) {
  Product<d_in, d_out, index>(call).run();
}

template <int d_in, int d_out, DecayIndex index>
cudaError_t launch_product(cudaStream_t stream, const ProductCall& call) {
  const dim3 grid(static_cast<unsigned>(tiles_of(call.tokens, row_tile)), static_cast<unsigned>(call.heads));
  return launch(stream, grid, threads, Product<d_in, d_out, index>::shared_bytes,
                left_product_kernel<d_in, d_out, index>, call);
}

}  // namespace

cudaError_t enqueue_product(cudaStream_t stream, const ProductCall& call, int d_in, int d_out,
                            DecayIndex index) {
  return with_widths({.d_k = d_in, .d_v = d_out}, [&](auto in, auto out) {
    if (index == DecayIndex::inner) return launch_product<in(), out(), DecayIndex::inner>(stream, call);
    if (index == DecayIndex::outer) return launch_product<in(), out(), DecayIndex::outer>(stream, call);
    return launch_product<in(), out(), DecayIndex::none>(stream, call);
  });
}

}  // namespace baton
