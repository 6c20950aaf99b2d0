// SPDX-License-Identifier: Apache-2.0
// A panel of 64 tokens and 64 columns whose transpose a group of four warps holds as sums: its
// elements as the sums lie, and its rows on their way to global memory.
//
//   piece i, for this thread of a group: the elements of tokens [16 i, 16 i + 16) that stand with
//   its sums c[8 i] to c[8 i + 7], in pairs
//
// Warp w has columns 16 w to 16 w + 15 of the panel alone, so its pieces need no barrier.
// Source: PTX ISA, "ldmatrix", "stmatrix".
#pragma once

#include "sp_methods/kernels/device/tile/warp_group.cuh"

namespace baton {

/// The elements of a panel as pieces of this thread.
class TurnedPanel {
 public:
  static constexpr int pieces = device_chunk / 16;

  __device__ explicit TurnedPanel(const char* panel) {
    const int from = group_thread() % 32, warp = group_thread() / 32;
    const int token = 8 * (from >> 4) + (from & 7), unit = 2 * warp + (from >> 3 & 1);
    at_ = shared_address(panel) + PanelTile<64>::offset(token, 8 * unit);
  }

  __device__ void load(std::uint32_t (&x)[4], int piece) const { load_matrices<true>(x, place(piece)); }
  __device__ void store(int piece, const std::uint32_t (&x)[4]) const {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(place(piece)),
                 "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3])
                 : "memory");
  }

 private:
  __device__ std::uint32_t place(int piece) const { return at_ + piece * 16 * PanelTile<64>::row_bytes; }

  std::uint32_t at_;
};

/// This thread's part of the rows of a panel.
class PanelRows {
 public:
  __device__ explicit PanelRows(const char* panel) {
    const char* const from = panel + PanelTile<64>::offset(row(), column());
#pragma unroll
    for (int i = 0; i < count; ++i)
      x_[i] = *reinterpret_cast<const uint4*>(from + i * apart * PanelTile<64>::row_bytes);
  }
  /// Writes the rows; `rows.first` is the place of the panel's first element.
  __device__ void write(const HeadRows<Bf16>& rows) const {
    Bf16* const into = rows.row(row()) + column();
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (row() + i * apart < rows.count) store_16(into + i * apart * rows.stride, x_[i]);
  }

 private:
  static constexpr int units = 8, apart = group_threads / units, count = device_chunk / apart;
  __device__ static int row() { return group_thread() / units; }
  __device__ static int column() { return group_thread() % units * 8; }

  uint4 x_[count];
};

}  // namespace baton
