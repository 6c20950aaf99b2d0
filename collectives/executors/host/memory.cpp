// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/host/memory.hpp"

#include <algorithm>
#include <cstdlib>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"

namespace baton {

HostMemory::HostMemory(const Schedule& schedule) {
  constexpr std::size_t page = 4096;
  for (const Buffer& buffer : schedule.buffers()) {
    const std::size_t bytes = (static_cast<std::size_t>(buffer.count * element_bytes) + page) / page * page;
    auto* memory = static_cast<float*>(std::aligned_alloc(page, bytes));
    if (memory == nullptr)
      throw SystemError("no memory for buffer '" + buffer.name + "' of " + std::to_string(bytes) + " bytes");
    // The memory is written here because a first touch inside a timed round would time the page
    // faults.
    std::fill_n(memory, bytes / sizeof(float), 0.0f);
    buffers_.emplace_back(memory);
  }
}

void HostMemory::Free::operator()(float* memory) const { std::free(memory); }

std::span<float> HostMemory::view(const Slice& slice) {
  if (slice.empty()) return {};
  return {buffers_[slice.buffer].get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

std::span<const float> HostMemory::view(const Slice& slice) const {
  if (slice.empty()) return {};
  return {buffers_[slice.buffer].get() + slice.offset, static_cast<std::size_t>(slice.count)};
}

HostOperands HostMemory::operands(const Step& step) {
  HostOperands operands;
  for (const Slice& slice : step.writes) operands.writes.push_back(view(slice));
  for (const Slice& slice : step.reads) operands.reads.push_back(view(slice));
  return operands;
}

Refusal unsupported_on_host(std::span<const Schedule> schedules) {
  for (const Schedule& schedule : schedules)
    for (const Buffer& buffer : schedule.buffers())
      if (buffer.dtype != Dtype::f32)
        return buffer.name + " is of bf16, for which only GPUs have arithmetic here";
  return {};
}

void run_on_host(const Schedule& schedule, const Step& step, const HostOperands& operands) {
  if (step.verb == Verb::copy)
    std::copy_n(operands.reads[0].data(), operands.reads[0].size(), operands.writes[0].data());
  if (step.verb == Verb::combine) combine_on_host(operands);
  if (step.verb == Verb::compute) schedule.kernels()[step.body].body(operands);
}

}  // namespace baton
