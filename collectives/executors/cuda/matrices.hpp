// SPDX-License-Identifier: Apache-2.0
// The products of affine maps on a device: which matrix acts on which rows, and the tiles of rows
// that a block multiplies at once. Host code, and shared by both executors on GPUs.
//
// A combine of affine maps is one or two products of rows with matrices from the right:
//
//   state'  row x of a head -> A x + later, or A^T x + later
//   decay'  row x of the left matrix of a head -> x right matrix
//
// The second is the first with the rows of a matrix in the place of a state's and the right matrix
// in the place of A^T, so there is one kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// Threads of a block that multiplies.
inline constexpr unsigned product_threads = 512;

/// The most elements of a tile in shared memory, padding between its rows included.
inline constexpr unsigned most_tile_elements = 2560;

/// Matrices [row, row], one for every `share` rows of a slice of states.
struct Matrices {
  const float* first = nullptr;
  unsigned row = 1;
  unsigned share = 1;
  /// Rows of the first matrix that lie before the slice.
  unsigned before = 0;
  /// True if a row x becomes A^T x.
  bool transposed = false;
};

/// Elements of a tile that tensor cores multiply.
inline constexpr unsigned tensor_tile_elements = 2048;

/// The width of the rows that tensor cores multiply by a body of their own, or 0 where plain
/// multiplications do it: a head must be whole tiles, and the matrices lie on 16 bytes.
inline unsigned tensor_width(const Matrices& by) {
  const unsigned rows = by.row == 128 || by.row == 64 ? tensor_tile_elements / by.row : 0;
  const bool fits = rows > 0 && by.share % rows == 0 && reinterpret_cast<std::uintptr_t>(by.first) % 16 == 0;
  return fits ? by.row : 0;
}

/// The fewest rows of `row` elements that are whole packets, of at most eight elements.
constexpr std::int64_t whole_rows(std::int64_t row) { return 8 / std::gcd(row, std::int64_t{8}); }

/// Number of rows of `row` elements in a tile; `width` is the result of tensor_width.
inline unsigned tile_rows(unsigned row, unsigned width) {
  if (width > 0) return tensor_tile_elements / width;
  const auto fewest = static_cast<unsigned>(whole_rows(row));
  return fewest * std::max(1U, most_tile_elements / (row * fewest));
}

/// True if a tile can hold the fewest rows of `row` elements that are whole packets.
inline bool has_tile(std::int64_t row) { return row * whole_rows(row) <= most_tile_elements; }

/// The product that composes the matrices of two maps, and which operand of `combine_on_host` is
/// its left factor, whose rows become those of the result.
struct MatrixProduct {
  bool left_is_later = true;
  Combine by;
};

/// The product of the matrices of an earlier map A1 and a later map A2: A2 A1, or A1 A2 if matrices
/// act transposed.
inline MatrixProduct product_of_matrices(const Combine& by) {
  MapForm form{.kind = MapKind::affine, .share = by.row, .transposed = true};
  return {!by.form.transposed, {form, by.row}};
}

}  // namespace baton
