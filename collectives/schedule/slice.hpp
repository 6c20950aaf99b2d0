// SPDX-License-Identifier: Apache-2.0
// Runs of elements of named buffers, which steps read and write, and the maps that are made of
// them, of three kinds; bf16 on the host.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

namespace baton {

/// Role of a buffer: the caller fills it (input), or the schedule fills it for the caller (output)
/// or for itself (scratch).
enum class Role { input, output, scratch };

/// The type of an element. States and decays are f32; a layer's tensors may be bf16 if the executor
/// can compute in it.
enum class Dtype : std::uint8_t { f32, bf16 };

inline std::int64_t bytes_of(Dtype dtype) { return dtype == Dtype::bf16 ? 2 : 4; }
inline const char* to_string(Dtype dtype) { return dtype == Dtype::bf16 ? "bf16" : "f32"; }

/// One rank's array.
struct Buffer {
  std::string name;
  Role role = Role::scratch;
  std::int64_t count = 0;
  /// False if the schedule must leave an output untouched, as the first rank of an exclusive scan
  /// does.
  bool covered = true;
  Dtype dtype = Dtype::f32;
  /// Initial value of every element.
  float start = 0;

  std::int64_t bytes() const { return count * bytes_of(dtype); }
};

/// Bytes of one element of a state.
inline constexpr std::int64_t element_bytes = 4;

/// A run of elements of one buffer.
struct Slice {
  int buffer = -1;
  std::int64_t offset = 0;
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;

  bool empty() const { return count == 0; }
  std::int64_t bytes() const { return count * bytes_of(dtype); }
  std::int64_t end() const { return offset + count; }
  /// True if some element lies in both slices.
  bool overlaps(const Slice& other) const {
    return buffer == other.buffer && !empty() && !other.empty() && offset < other.end() &&
           other.offset < end();
  }

  /// The slice of `length` elements from element `from` on.
  Slice part(std::int64_t from, std::int64_t length) const { return {buffer, offset + from, length, dtype}; }

  /// Block k of n nearly equal ones, cut at multiples of `unit` elements. Some are empty if there
  /// are fewer units than blocks.
  Slice block(std::int64_t k, std::int64_t n, std::int64_t unit = 1) const {
    const std::int64_t units = count / unit;
    const std::int64_t from = units * k / n;
    return part(from * unit, (units * (k + 1) / n - from) * unit);
  }

  bool operator==(const Slice&) const = default;
};

/// The kind of a map: how it acts on an earlier state.
enum class MapKind : std::uint8_t {
  /// A decay for each row.
  diagonal,
  /// A decay for each head.
  scalar,
  /// A matrix A [row, row] for each head: every row x of the head becomes A x.
  affine,
};

inline const char* to_string(MapKind kind) {
  return kind == MapKind::affine ? "affine" : kind == MapKind::scalar ? "scalar" : "diagonal";
}

/// The form of a map's decays: their kind, and the rows that they act on.
struct MapForm {
  MapKind kind = MapKind::diagonal;
  /// Number of rows that share a decay or a matrix: one, or all rows of a head.
  std::int64_t share = 1;
  /// Number of rows of the first decay or matrix that lie before the map, if the map is a block.
  std::int64_t first = 0;
  /// True if a row x becomes A^T x, as in the backward pass. Matrices are stored as A either way.
  bool transposed = false;

  /// Number of elements of one decay or matrix that acts on rows of `row` elements: 1 or row^2.
  std::int64_t unit(std::int64_t row) const { return kind == MapKind::affine ? row * row : 1; }
  bool operator==(const MapForm&) const = default;
};

/// A map x -> decay (.) x + state of a state [rows, row], with a decay for each row. Its form may
/// say otherwise: one decay for all rows of a head, or in its place a matrix [row, row] a head, the
/// map x -> A x + state of each row. Without a decay it is a plain state.
struct Map {
  Slice decay;
  Slice state;
  /// Elements of one row of the state: d_v, or d_k if the map is affine.
  std::int64_t row = 1;
  MapForm form = {};

  bool is_state() const { return decay.empty(); }
  std::int64_t rows() const { return state.count / row; }
  /// Elements of the decays or matrices that act on the rows, whether the map has them or not.
  std::int64_t decay_count() const {
    return state.empty() ? 0 : (form.first + rows() + form.share - 1) / form.share * form.unit(row);
  }
  Map only_state() const { return {{}, state, row, form}; }

  /// The map of `count` rows from row `from` on. Two parts that cut a head both have its decay or
  /// matrix.
  Map part(std::int64_t from, std::int64_t count) const {
    Map cut{decay, state.part(from * row, count * row), row, form};
    const std::int64_t at = form.first + from;
    cut.form.first = at % form.share;
    if (!is_state()) cut.decay = decay.part(at / form.share * form.unit(row), cut.decay_count());
    return cut;
  }

  /// Block k of n blocks of the map, cut between rows.
  Map block(std::int64_t k, std::int64_t n) const {
    return part(rows() * k / n, rows() * (k + 1) / n - rows() * k / n);
  }

  /// The whole map as one run of elements, decay first. Its decay and state must lie side by side.
  Slice packed() const { return is_state() ? state : decay.part(0, decay.count + state.count); }
};

/// The largest relative error of a value rounded to bf16.
inline constexpr double bf16_roundoff = 1.0 / 256;

/// Rounds `value` to the nearest bf16, ties to even; NaN stays NaN.
inline std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>((value == value ? rounded : bits | 0x400000) >> 16);
}

inline float from_bf16(std::uint16_t narrow) { return std::bit_cast<float>(std::uint32_t{narrow} << 16); }

}  // namespace baton
