// SPDX-License-Identifier: Apache-2.0
// What the device bodies compute of all that parameters can say. What they would ignore is refused
// by name, since a body that ignores a size computes another layer and may leave its buffers.
#pragma once

#include <bit>
#include <string>

#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/conv.hpp"
#include "sp_methods/kernels/left_product.hpp"
#include "sp_methods/kernels/shape.hpp"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// The reason why device bodies cannot compute a layer of this shape, as the end of a sentence
/// about a body; empty if they can.
inline std::string beyond_devices(const LayerShape& shape) {
  constexpr std::int64_t chunk = KernelTraits{}.tile;
  if (shape.chunk != chunk)
    return "works in chunks of " + std::to_string(chunk) + " tokens, not in those of --chunk " +
           std::to_string(shape.chunk);
  if (shape.packed) return "has no chunks of packed documents";
  if (shape.latent) return "is not for latent keys";
  if (shape.query_heads() != shape.heads) return "is for as many heads of q and k as of values";
  return shape.key_heads() == shape.heads ? "" : "is for as many heads of keys as of queries";
}

/// The same of left products.
inline std::string beyond_devices(const LeftProduct& p) {
  if (p.block_tokens != p.shape.tokens) return "is for blocks of as many tokens as a rank has";
  if (!p.has_accumulators) return "adds to f32 accumulators, and this call has none";
  if (p.kernels.tile != KernelTraits{}.tile)
    return "has tiles of " + std::to_string(KernelTraits{}.tile) + " tokens, not of " +
           std::to_string(p.kernels.tile);
  return beyond_devices(p.shape);
}

/// The same of parameters of any kind, whoever computes softmax blocks.
template <class Parameters>
std::string beyond_devices_at_all(const Parameters& p) {
  if constexpr (requires { p.latent; })
    if (p.latent) return "is not for latent keys";
  if constexpr (requires { p.widths(); }) {
    KernelTraits kernels;
    if constexpr (requires { p.body; }) kernels.softmax = p.body;
    bool fits = p.dtype == Dtype::bf16;
    for (const std::int64_t width : p.widths()) fits = fits && kernels.takes(width);
    const bool by_cudnn = kernels.softmax == SoftmaxBody::cudnn;
    if (!fits)
      return std::string("is for bf16 tensors, d_k and d_v ") +
             (by_cudnn ? "of up to 256, multiples of 8" : "of 64 and 128");
  }
  if constexpr (requires { p.block_tokens; })
    return beyond_devices(static_cast<const LeftProduct&>(p));
  else if constexpr (requires { p.shape.chunk; })
    return beyond_devices(p.shape);
  return {};
}

inline bool adds_to_f32(const GradientsInto& into) { return into.dtype == Dtype::f32 && !into.sets; }

/// The most weights of a channel that the bodies of convolutions have.
inline constexpr int device_taps = 4;

/// The same of convolutions.
inline std::string beyond_devices(const ConvShape& p) {
  const bool has_width =
      p.width >= 8 && p.width <= 256 && std::has_single_bit(static_cast<std::uint64_t>(p.width));
  if (!has_width) return "is for heads of 8 to 256 channels, a power of two, not " + std::to_string(p.width);
  return p.taps <= device_taps ? "" : "has up to 4 weights a channel, not " + std::to_string(p.taps);
}

/// The same of calls that our own bodies compute.
template <class Contract>
std::string beyond_own_bodies(const typename Contract::Parameters& p) {
  if constexpr (requires { p.key_heads(); })
    if (p.key_heads() != p.heads) return "is for as many heads of keys as of queries";
  if constexpr (std::is_same_v<typename Contract::Parameters, ConvShape>) return beyond_devices(p);
  if constexpr (std::is_same_v<Contract, Narrow>)
    if (p.dtype != Dtype::bf16) return "rounds to bf16 alone";
  if constexpr (std::is_same_v<Contract, SoftmaxBlock>)
    if (p.out_dtype != Dtype::f32) return "writes its output in f32 alone";
  if constexpr (std::is_same_v<Contract, SoftmaxBlockGradients>)
    if (!adds_to_f32(p.dq) || !adds_to_f32(p.keys)) return "adds its gradients to f32 memory alone";
  return {};
}

/// The reason of `text`, a sentence about the device body of a contract; empty if `text` is.
template <class Contract>
Refusal refusal_of_body(const std::string& text) {
  return text.empty() ? Refusal{} : Refusal("the device body of " + std::string(Contract::name) + " " + text);
}

}  // namespace baton
