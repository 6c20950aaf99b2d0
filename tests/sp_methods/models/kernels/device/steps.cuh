// SPDX-License-Identifier: Apache-2.0
// The compute steps of a model for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"
#include "sp_methods/models/kernels/gates.hpp"
#include "sp_methods/models/kernels/key_parts.hpp"
#include "sp_methods/models/kernels/state_space.hpp"
#include "tests/sp_methods/kernels/device/step.cuh"

namespace baton {

inline DeviceStep product_step(Product p, bool in_place = false) {
  p.dtype = Dtype::bf16;
  p.adds = p.adds || in_place;
  const StepOperand out{p.rows * p.columns, p.out},
      c{p.adds ? out.count : 0, p.out, out.of, in_place ? 0 : -1};
  return {kernel_of<Matmul>(p), {out}, {{p.rows * p.depth}, {p.depth * p.columns}, c}};
}

inline StepOperand norm_weight(std::int64_t width) {
  return {width, Dtype::bf16, [](float drawn) { return 1 + drawn / 8; }};
}

template <class Contract>
DeviceStep row_step(std::int64_t count, std::int64_t width) {
  constexpr float epsilon = 1e-5F, factor = 1.0F / 16;
  constexpr bool is_of_gates =
      std::is_same_v<Contract, LogGates> || std::is_same_v<Contract, LogGateGradients>;
  const Rows p{count, width, is_of_gates ? factor : epsilon, Dtype::bf16};
  const StepOperand all{count * width}, weight = norm_weight(width), sums{width, Dtype::f32};
  const Kernel kernel = kernel_of<Contract>(p);
  if constexpr (std::is_same_v<Contract, RmsNorm>) return {kernel, {all}, {all, weight}};
  if constexpr (std::is_same_v<Contract, RmsNormGradients>)
    return {kernel, {all, sums}, {all, weight, all, all}};
  if constexpr (std::is_same_v<Contract, GatedNorm>) return {kernel, {all}, {all, all, weight}};
  if constexpr (std::is_same_v<Contract, GatedNormGradients>)
    return {kernel, {all, all, sums}, {all, all, weight, all}};
  if constexpr (std::is_same_v<Contract, LogGates>) return {kernel, {all}, {all, {width}}};
  if constexpr (std::is_same_v<Contract, LogGateGradients>) {
    const StepOperand gates{all.count, Dtype::bf16, [](float drawn) { return -std::fabs(drawn) / 16; }};
    return {kernel, {all, sums}, {gates, all}};
  }
  if constexpr (std::is_same_v<Contract, FixedGates>) return {kernel, {all}, {}};
  if constexpr (std::is_same_v<Contract, Logistic>) return {kernel, {all}, {all}};
  if constexpr (std::is_same_v<Contract, LogisticGradients>) {
    const StepOperand shares{all.count, Dtype::bf16, [](float drawn) { return 1 / (1 + std::exp(drawn)); }};
    return {kernel, {all}, {shares, all}};
  }
  if constexpr (std::is_same_v<Contract, SigmoidGate>) return {kernel, {all}, {all, all}};
  if constexpr (std::is_same_v<Contract, SigmoidGateGradients>) return {kernel, {all, all}, {all, all, all}};
  if constexpr (std::is_same_v<Contract, SwiGlu>) return {kernel, {all}, {all, all}};
  if constexpr (std::is_same_v<Contract, SwiGluGradients>) return {kernel, {all, all}, {all, all, all}};
}

/// SwiGLU without its second operand, silu, or without its first one, the square of relu; or the
/// gradient.
inline DeviceStep one_operand_step(std::int64_t count, std::int64_t width, bool is_silu, bool is_gradient) {
  const Rows p{count, width, 0, Dtype::bf16};
  const StepOperand all{count * width}, none{};
  if (!is_silu && is_gradient) return {kernel_of<SwiGluGradients>(p), {none, all}, {none, all, all}};
  if (!is_silu) return {kernel_of<SwiGlu>(p), {all}, {none, all}};
  if (is_gradient) return {kernel_of<SwiGluGradients>(p), {all, none}, {all, none, all}};
  return {kernel_of<SwiGlu>(p), {all}, {all, none}};
}

inline DeviceStep decay_gates_step(const GateRows& p) {
  const StepOperand all{p.count * p.width()}, bias{p.width()}, rate{p.heads};
  return {kernel_of<DecayGates>(p), {all}, {all, bias, rate}};
}

inline DeviceStep decay_gate_gradients_step(const GateRows& p, bool has_steps) {
  const StepOperand all{p.count * p.width()}, bias{p.width()}, rate{p.heads};
  return {kernel_of<DecayGateGradients>(p),
          {all, {p.width(), Dtype::f32}, {p.heads, Dtype::f32}},
          {all, bias, rate, all, has_steps ? all : StepOperand{}}};
}

/// Rows times their steps, or times numbers that are added in place.
inline DeviceStep scale_heads_step(const StepRows& p, bool has_steps) {
  const StepOperand all{p.tokens * p.heads * p.width}, z{p.tokens * p.heads}, number{p.heads}, none{};
  if (has_steps) return {kernel_of<ScaleHeads>(p), {all}, {all, z, number, none}};
  return {kernel_of<ScaleHeads>(p), {all}, {all, none, number, {all.count, Dtype::bf16, all.of, 0}}};
}

inline DeviceStep step_gradients_step(const StepRows& p) {
  const StepOperand all{p.tokens * p.heads * p.width}, z{p.tokens * p.heads}, of_heads{p.heads};
  return {
      kernel_of<StepGradients>(p), {all, z, {p.heads, Dtype::f32}}, {all, z, of_heads, of_heads, all, all}};
}

/// RMSNorm of rows in groups, or its gradients.
inline DeviceStep group_norm_step(const Rows& p, bool is_gradient) {
  const StepOperand all{p.count * p.width}, weight = norm_weight(p.width), sums{p.width, Dtype::f32};
  if (is_gradient) return {kernel_of<RmsNormGradients>(p), {all, sums}, {all, weight, all, {}}};
  return {kernel_of<RmsNorm>(p), {all}, {all, weight}};
}

inline DeviceStep rotate_step(const Rotation& p) {
  const StepOperand all{p.tokens * p.heads * p.width};
  return {kernel_of<Rotate>(p), {all}, {all}};
}

inline DeviceStep join_keys_step(const KeyParts& p) {
  const StepOperand shared{p.tokens * p.shared}, own{p.tokens * p.heads * p.own},
      all{p.tokens * p.heads * p.width()};
  return {kernel_of<JoinKeys>(p), {all}, {shared, own}};
}

inline DeviceStep join_key_gradients_step(const KeyParts& p) {
  const StepOperand shared{p.tokens * p.shared}, own{p.tokens * p.heads * p.own},
      all{p.tokens * p.heads * p.width()};
  return {kernel_of<JoinKeyGradients>(p), {shared, own}, {all}};
}

/// Numbers of tokens, some of them often.
inline StepOperand token_numbers(std::int64_t tokens, std::int64_t vocabulary) {
  return {tokens, Dtype::f32, [vocabulary](float drawn) {
            return std::floor(std::fmod(std::fabs(drawn) * 37, static_cast<float>(vocabulary)));
          }};
}

inline DeviceStep embed_step(const TokenRows& p) {
  return {kernel_of<Embed>(p),
          {{p.tokens * p.width}},
          {token_numbers(p.tokens, p.vocabulary), {p.vocabulary * p.width}}};
}

inline DeviceStep embed_gradients_step(const TokenRows& p) {
  return {kernel_of<EmbedGradients>(p),
          {{p.vocabulary * p.width, Dtype::f32}},
          {token_numbers(p.tokens, p.vocabulary), {p.tokens * p.width}}};
}

inline DeviceStep loss_step(std::int64_t tokens, std::int64_t vocabulary) {
  const StepOperand logits{tokens * vocabulary}, losses{tokens, Dtype::f32};
  return {kernel_of<CrossEntropy>({tokens, vocabulary, 2 * tokens, Dtype::bf16}),
          {logits, losses},
          {token_numbers(tokens, vocabulary), {logits.count, Dtype::bf16, logits.of, 0}}};
}

inline DeviceStep adamw_step(std::int64_t count) {
  const StepOperand weights{count}, numbers{count, Dtype::f32},
      squares{count, Dtype::f32, [](float drawn) { return 0.5F + drawn * drawn; }};
  AdamW::Parameters p{count};
  p.dtype = Dtype::bf16;
  return {kernel_of<AdamW>(p), {weights, numbers, numbers}, {weights, numbers, numbers, squares}};
}

}  // namespace baton
