// SPDX-License-Identifier: Apache-2.0
// The compute steps of a model for tests: each by its device body and by its host body, on the same
// random numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <type_traits>
#include <vector>

#include "collectives/drawn_numbers.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "sp_methods/models/kernels/embedding_loss_adamw.hpp"
#include "sp_methods/models/kernels/gates.hpp"

namespace baton {

/// A run of numbers that a step reads or writes.
struct StepOperand {
  std::int64_t count = 0;
  Dtype dtype = Dtype::bf16;
  /// What a drawn number of N(0, 1) becomes.
  std::function<float(float)> of = [](float drawn) { return drawn; };
  /// Of one that is read: the number of the written operand that it is, or -1.
  int written = -1;
};

/// Numbers of one type in device memory: some values again and again.
class DeviceNumbers {
 public:
  DeviceNumbers(const std::vector<float>& values, const StepOperand& x)
      : count_(x.count), dtype_(x.dtype), memory_(std::max<std::size_t>(16, bytes(count_))) {
    write(values);
  }
  void write(const std::vector<float>& values) const {
    std::vector<std::uint16_t> narrow;
    for (const float x : values) narrow.push_back(to_bf16(x));
    const void* from = dtype_ == Dtype::bf16 ? static_cast<const void*>(narrow.data()) : values.data();
    std::size_t there = bytes(static_cast<std::int64_t>(values.size()));
    cuda(cudaMemcpy(memory_.get(), from, there, cudaMemcpyHostToDevice));
    for (const std::size_t all = bytes(count_); there < all; there *= 2)
      cuda(cudaMemcpy(memory_.get() + there, memory_.get(), std::min(there, all - there),
                      cudaMemcpyDeviceToDevice));
  }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    std::vector<std::uint16_t> narrow(dtype_ == Dtype::bf16 ? count_ : 0);
    void* into = dtype_ == Dtype::bf16 ? static_cast<void*>(narrow.data()) : values.data();
    cuda(cudaMemcpy(into, memory_.get(), bytes(count_), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < narrow.size(); ++i) values[i] = from_bf16(narrow[i]);
    return values;
  }
  DeviceSlice<float> slice() const { return {memory_.get(), static_cast<std::size_t>(count_)}; }

 private:
  std::size_t bytes(std::int64_t count) const { return static_cast<std::size_t>(count * bytes_of(dtype_)); }

  std::int64_t count_;
  Dtype dtype_;
  DeviceBytes memory_;
};

/// A step with its operands on a device, and on the host when they are asked for.
class DeviceStep {
 public:
  DeviceStep(Kernel kernel, std::vector<StepOperand> writes, std::vector<StepOperand> reads)
      : kernel_(std::move(kernel)), writes_(std::move(writes)), reads_(std::move(reads)) {
    for (const StepOperand& x : writes_)
      written_.emplace_back(std::vector<float>(std::min<std::int64_t>(1, x.count), NAN), x);
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      values_.push_back(drawn(reads_[i], key_of(7, i)));
      if (reads_[i].written >= 0) written_[reads_[i].written].write(values_[i]);
      read_.emplace_back(values_[i], reads_[i]);
    }
    for (const DeviceNumbers& x : written_) operands_.writes.push_back(x.slice());
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      const auto slice = (reads_[i].written >= 0 ? written_[reads_[i].written] : read_[i]).slice();
      operands_.reads.emplace_back(slice.data(), slice.size());
    }
  }

  const Kernel& kernel() const { return kernel_; }
  /// Number `i` of the operand `read` that is read.
  float value(std::size_t read, std::int64_t i) const { return values_[read][i % values_[read].size()]; }

  /// Why the device cannot; empty if it can.
  Refusal unsupported() const { return unsupported_on_device(kernel_); }

  void enqueue(cudaStream_t stream) const { find_cuda_kernel(kernel_)({stream, operands_, kernel_}); }

  /// What the device body writes.
  std::vector<std::vector<float>> on_device() const {
    for (std::size_t i = 0; i < reads_.size(); ++i)
      if (reads_[i].written >= 0) written_[reads_[i].written].write(values_[i]);
    enqueue(nullptr);
    cuda(cudaDeviceSynchronize());
    std::vector<std::vector<float>> all;
    for (const DeviceNumbers& x : written_) all.push_back(x.read());
    return all;
  }

  /// What the host body writes.
  std::vector<std::vector<float>> on_host() const {
    std::vector<std::vector<float>> writes, reads;
    for (const StepOperand& x : writes_) writes.emplace_back(x.count, NAN);
    for (std::size_t read = 0; read < reads_.size(); ++read) {
      std::vector<float>& values = reads.emplace_back(reads_[read].count);
      for (std::int64_t i = 0; i < reads_[read].count; ++i) values[i] = value(read, i);
      if (reads_[read].written >= 0) writes[reads_[read].written] = values;
    }
    HostOperands operands;
    for (auto& x : writes) operands.writes.emplace_back(x);
    for (std::size_t i = 0; i < reads.size(); ++i)
      operands.reads.emplace_back(reads_[i].written >= 0 ? writes[reads_[i].written] : reads[i]);
    kernel_.body(operands);
    return writes;
  }

 private:
  /// The first numbers of an operand, which repeat: drawing all would take longer than the rest.
  static std::vector<float> drawn(const StepOperand& x, std::uint64_t key) {
    constexpr std::int64_t period = 999983;
    std::vector<float> values(std::min(period, x.count));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const float value = x.of(normal_value(key + i));
      values[i] = x.dtype == Dtype::bf16 ? from_bf16(to_bf16(value)) : value;
    }
    return values;
  }

  Kernel kernel_;
  std::vector<StepOperand> writes_, reads_;
  std::vector<std::vector<float>> values_;  // of what is read
  std::vector<DeviceNumbers> written_, read_;
  DeviceOperands operands_;
};

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

inline DeviceStep decay_gates_step(const GateRows& p) {
  const StepOperand all{p.count * p.width()}, bias{p.width()}, rate{p.heads};
  return {kernel_of<DecayGates>(p), {all}, {all, bias, rate}};
}

inline DeviceStep decay_gate_gradients_step(const GateRows& p) {
  const StepOperand all{p.count * p.width()}, bias{p.width()}, rate{p.heads};
  return {kernel_of<DecayGateGradients>(p),
          {all, {p.width(), Dtype::f32}, {p.heads, Dtype::f32}},
          {all, bias, rate, all}};
}

inline DeviceStep rotate_step(const Rotation& p) {
  const StepOperand all{p.tokens * p.heads * p.width};
  return {kernel_of<Rotate>(p), {all}, {all}};
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
