// SPDX-License-Identifier: Apache-2.0
// One rank's buffers in host memory, and the steps that need no other rank.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The buffers of one schedule, page-aligned, with the values that they start with.
class HostMemory {
 public:
  /// Throws SystemError if the memory cannot be allocated.
  explicit HostMemory(const Schedule& schedule);

  std::span<float> view(const Slice& slice);
  std::span<const float> view(const Slice& slice) const;

  void write(const Slice& into, std::span<const float> from);
  void read(std::span<float> into, const Slice& from) const;

  /// The memory that `step` writes and reads.
  HostOperands operands(const Step& step);

 private:
  struct Free {
    void operator()(float* memory) const;
  };
  std::vector<std::unique_ptr<float[], Free>> buffers_;
};

/// Refuses schedules with bf16 buffers: host kernels compute in f32 only.
inline Refusal unsupported_on_host(std::span<const Schedule> schedules) {
  for (const Schedule& schedule : schedules)
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.dtype != Dtype::f32)
        return buffer.name + " is of bf16, for which only GPUs have arithmetic here";
  return {};
}

/// Runs a copy, combine or compute step of `schedule` on its operands.
inline void run_on_host(const Schedule& schedule, const Step& step, const HostOperands& operands) {
  if (step.verb == Verb::copy)
    std::copy_n(operands.reads[0].data(), operands.reads[0].size(), operands.writes[0].data());
  if (step.verb == Verb::combine) combine_on_host(operands, step.combine);
  if (step.verb == Verb::compute) schedule.kernels()[step.body].body(operands);
}

inline HostMemory::HostMemory(const Schedule& schedule) {
  constexpr std::size_t page = 4096;
  for (const Buffer& buffer : schedule.buffers()) {
    const std::size_t bytes = (static_cast<std::size_t>(buffer.count * element_bytes) + page) / page * page;
    auto* memory = static_cast<float*>(std::aligned_alloc(page, bytes));
    if (memory == nullptr)
      throw SystemError("no memory for buffer '" + buffer.name + "' of " + std::to_string(bytes) + " bytes");
    // The memory is written here because a first touch inside a timed round would time the page
    // faults.
    std::fill_n(memory, bytes / sizeof(float), buffer.start);
    buffers_.emplace_back(memory);
  }
}

inline void HostMemory::Free::operator()(float* memory) const { std::free(memory); }

inline std::span<float> HostMemory::view(const Slice& slice) {
  if (slice.empty()) return {};
  return {buffers_[slice.buffer].get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

inline std::span<const float> HostMemory::view(const Slice& slice) const {
  if (slice.empty()) return {};
  return {buffers_[slice.buffer].get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

inline void HostMemory::write(const Slice& into, std::span<const float> from) {
  std::ranges::copy(from, view(into).begin());
}

inline void HostMemory::read(std::span<float> into, const Slice& from) const {
  std::ranges::copy(view(from), into.begin());
}

inline HostOperands HostMemory::operands(const Step& step) {
  HostOperands operands;
  for (const Slice& slice : step.writes) operands.writes.push_back(view(slice));
  for (const Slice& slice : step.reads) operands.reads.push_back(view(slice));
  return operands;
}

}  // namespace baton
