// SPDX-License-Identifier: Apache-2.0
// One compute step for tests: by its device body and by its host body, on the same random numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "collectives/drawn_numbers.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"

namespace baton {

/// ||got - expected|| / ||expected||.
inline double error_of(const std::vector<float>& got, const std::vector<float>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - double{expected[i]}, 2);
    size += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / size);
}

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

}  // namespace baton
