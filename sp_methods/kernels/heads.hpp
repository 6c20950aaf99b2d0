// SPDX-License-Identifier: Apache-2.0
// The contracts of the kernels that pack heads: each rank's heads out of [tokens, heads, width]
// into one block a rank, and such blocks back.
//
//   pack:     block j = heads j * heads / ranks and on of all tokens, at least one
//   unpack:   each head from the block of its rank; the sum over the ranks that share it
//
// A tensor with fewer heads than ranks, such as the keys of grouped queries, has each head in
// ranks / heads blocks.
#pragma once

#include <algorithm>

#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// A tensor's heads as one block a rank. `ranks` divides `heads`, or `heads` divides `ranks`.
struct HeadBlocks {
  std::int64_t tokens = 0;
  std::int64_t ranks = 1;
  std::int64_t heads = 1;
  std::int64_t width = 0;
  Dtype dtype = Dtype::f32;  ///< Type of both operands.

  /// Elements of a token in all heads.
  std::int64_t row() const { return heads * width; }
  /// Elements of a token in one block.
  std::int64_t block_row() const { return std::max<std::int64_t>(1, heads / ranks) * width; }
  /// Number of ranks that share a head.
  std::int64_t sharers() const { return std::max<std::int64_t>(1, ranks / heads); }
  /// Elements of all blocks.
  std::int64_t elements() const { return ranks * tokens * block_row(); }
  /// Offset of a block's first element in a token's row.
  std::int64_t place(std::int64_t block) const { return block * heads / ranks * width; }
  double bytes() const { return static_cast<double>((tokens * row() + elements()) * bytes_of(dtype)); }
};

/// Copies the heads of each rank into its block.
struct PackHeads {
  static constexpr const char* name = "pack_heads";
  using Parameters = HeadBlocks;
  template <class A>
  struct Operands {
    Out<A, TypedByParameters> blocks{};  ///< [ranks, tokens, heads of a block, width]
    In<A, TypedByParameters> tensor{};   ///< [tokens, heads, width]
    auto reads() { return std::tie(tensor); }
    auto writes() { return std::tie(blocks); }
  };
  static double flops(const HeadBlocks&) { return 0; }
  static double bytes(const HeadBlocks& p) { return p.bytes(); }
  static void on_host(const Operands<OnHost>& x, const HeadBlocks& p) {
    float* into = x.blocks;
    for (std::int64_t block = 0; block < p.ranks; ++block)
      for (std::int64_t t = 0; t < p.tokens; ++t, into += p.block_row())
        std::copy_n(x.tensor + t * p.row() + p.place(block), p.block_row(), into);
  }
};

/// Sets each head to its block, or to the sum of the blocks of the ranks that share it.
struct UnpackHeads {
  static constexpr const char* name = "unpack_heads";
  using Parameters = HeadBlocks;
  template <class A>
  struct Operands {
    Out<A, TypedByParameters> tensor{};  ///< [tokens, heads, width]
    In<A, TypedByParameters> blocks{};   ///< [ranks, tokens, heads of a block, width]
    auto reads() { return std::tie(blocks); }
    auto writes() { return std::tie(tensor); }
  };
  static double flops(const HeadBlocks& p) { return static_cast<double>(p.elements() - p.tokens * p.row()); }
  static double bytes(const HeadBlocks& p) { return p.bytes(); }
  static void on_host(const Operands<OnHost>& x, const HeadBlocks& p) {
    const float* from = x.blocks;
    for (std::int64_t block = 0; block < p.ranks; ++block)
      for (std::int64_t t = 0; t < p.tokens; ++t, from += p.block_row()) {
        float* into = x.tensor + t * p.row() + p.place(block);
        if (block % p.sharers() == 0)
          std::copy_n(from, p.block_row(), into);
        else
          std::transform(into, into + p.block_row(), from, into, std::plus<>());
      }
  }
};

}  // namespace baton
