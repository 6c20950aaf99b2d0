// SPDX-License-Identifier: Apache-2.0
// A device body run on operands that lie between guard words in device memory.
//
//   | zone | operand 0 | zone | operand 1 | zone | ..
//
// Zones have 64 KiB, and operands are 256-byte aligned.
// A zone begins at the byte behind its operand. All numbers are one byte again and again: 0x00, or
// 0xbf for -1.5 and 0xc1 for -24 in bf16 and in f32, which are weak and strong gates.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/kernel.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "tests/sp_methods/kernels/recorded_steps.hpp"

namespace baton::test {

/// The memory of one step: its operands between guard words.
class GuardedMemory {
 public:
  GuardedMemory(const RecordedStep& step, unsigned char value) : step_(step) {
    for (const RecordedOperand& x : step.writes) places_.push_back(place(x.bytes()));
    for (const RecordedOperand& x : step.reads)
      places_.push_back(x.written >= 0 ? places_[x.written] : place(x.bytes()));
    host_.assign(end_ + zone, guard);
    for (std::size_t i = 0; i < places_.size(); ++i)
      std::fill_n(host_.begin() + places_[i], bytes_of_operand(i), value);
    memory_ = std::make_unique<DeviceBytes>(host_.size());
    cuda(cudaMemcpy(memory_->get(), host_.data(), host_.size(), cudaMemcpyHostToDevice));
  }

  DeviceOperands operands() const {
    DeviceOperands all;
    for (std::size_t i = 0; i < step_.writes.size(); ++i)
      all.writes.emplace_back(address(i), static_cast<std::size_t>(step_.writes[i].count));
    for (std::size_t i = 0; i < step_.reads.size(); ++i)
      all.reads.emplace_back(address(step_.writes.size() + i),
                             static_cast<std::size_t>(step_.reads[i].count));
    return all;
  }

  /// What changed beside the operands that the step writes, in words; empty if nothing did.
  std::string misdeed() {
    std::vector<unsigned char> found(host_.size());
    cuda(cudaMemcpy(found.data(), memory_->get(), found.size(), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < step_.writes.size(); ++i)
      std::copy_n(host_.begin() + places_[i], bytes_of_operand(i), found.begin() + places_[i]);
    const auto differs = std::mismatch(host_.begin(), host_.end(), found.begin()).first;
    if (differs == host_.end()) return {};
    const auto at = static_cast<std::size_t>(differs - host_.begin());
    std::string text = "byte " + std::to_string(at) + " is overwritten; operands begin at";
    for (const std::size_t one : places_) text += ' ' + std::to_string(one);
    return text;
  }

 private:
  static constexpr std::size_t zone = std::size_t{64} << 10, alignment = 256;
  static constexpr unsigned char guard = 0x5a;

  std::size_t place(std::int64_t bytes) {
    const std::size_t at = (end_ + zone + alignment - 1) / alignment * alignment;
    end_ = at + static_cast<std::size_t>(bytes);
    return at;
  }
  std::size_t bytes_of_operand(std::size_t i) const {
    const std::size_t writes = step_.writes.size();
    return static_cast<std::size_t>(i < writes ? step_.writes[i].bytes() : step_.reads[i - writes].bytes());
  }
  std::byte* address(std::size_t i) const { return memory_->get() + places_[i]; }

  const RecordedStep& step_;
  std::vector<std::size_t> places_;  // of what is written, then of what is read
  std::size_t end_ = 0;
  std::vector<unsigned char> host_;
  std::unique_ptr<DeviceBytes> memory_;
};

/// Runs a step by its device body, if that takes it, on numbers of such bytes. Returns what the
/// body did beside its work, in words.
inline std::string misdeed_on_device(const RecordedStep& step, unsigned char value) {
  GuardedMemory memory(step, value);
  const DeviceOperands operands = memory.operands();
  try {
    find_cuda_kernel(step.kernel)({nullptr, operands, step.kernel});
    cuda(cudaDeviceSynchronize());
  } catch (const SystemError& error) {
    return step.name + ": " + error.what();
  }
  const std::string text = memory.misdeed();
  return text.empty() ? text : step.name + ": " + text;
}

}  // namespace baton::test
