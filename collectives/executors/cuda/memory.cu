// SPDX-License-Identifier: Apache-2.0
// Arenas of device memory.
#include <cstdint>
#include <exception>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/schedule/slice.hpp"

namespace baton {
namespace {

/// Where each buffer begins, and behind the last where all end.
std::vector<std::size_t> layout(const Schedule& schedule) {
  constexpr std::size_t alignment = 256;
  std::vector<std::size_t> offsets{0};
  for (const Buffer& buffer : schedule.buffers()) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes());
    offsets.push_back(offsets.back() + (bytes + alignment - 1) / alignment * alignment);
  }
  return offsets;
}

std::vector<std::uint16_t> narrowed(std::span<const float> values) {
  std::vector<std::uint16_t> narrow;
  narrow.reserve(values.size());
  for (const float value : values) narrow.push_back(to_bf16(value));
  return narrow;
}

}  // namespace

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (bytes > 0) cuda(cudaMalloc(&memory, bytes));
  memory_.reset(static_cast<std::byte*>(memory));
}

void DeviceBytes::Free::operator()(std::byte* memory) const {
  // Freeing waits for the device, which may never come to an end when another rank has failed: the process ends anyway.
  if (std::uncaught_exceptions() == 0) cudaFree(memory);
}

std::size_t DeviceMemory::bytes(const Schedule& schedule) { return layout(schedule).back(); }

DeviceMemory::DeviceMemory(const Schedule& schedule)
    : own_(std::make_unique<DeviceBytes>(bytes(schedule))),
      arena_(own_->get()),
      bytes_(bytes(schedule)),
      offsets_(layout(schedule)) {
  clear();
}

DeviceMemory::DeviceMemory(const Schedule& schedule, void* arena)
    : arena_(static_cast<std::byte*>(arena)), bytes_(bytes(schedule)), offsets_(layout(schedule)) {
  clear();
}

float* DeviceMemory::at(const Slice& slice) const {
  if (slice.empty()) return nullptr;
  return reinterpret_cast<float*>(arena_ + offsets_[slice.buffer] + slice.offset * bytes_of(slice.dtype));
}

DeviceOperands DeviceMemory::operands(const Step& step) const {
  const auto count = [](const Slice& slice) { return static_cast<std::size_t>(slice.count); };
  DeviceOperands operands;
  for (const Slice& slice : step.writes) operands.writes.emplace_back(at(slice), count(slice));
  for (const Slice& slice : step.reads) operands.reads.emplace_back(at(slice), count(slice));
  return operands;
}

void DeviceMemory::clear() {
  if (bytes_ > 0) cuda(cudaMemset(arena_, 0, bytes_));
  cuda(cudaDeviceSynchronize());
}

void DeviceMemory::write(const Slice& into, std::span<const float> from) {
  const std::vector<std::uint16_t> narrow =
      into.dtype == Dtype::bf16 ? narrowed(from) : std::vector<std::uint16_t>{};
  const void* data = into.dtype == Dtype::bf16 ? static_cast<const void*>(narrow.data()) : from.data();
  cuda(cudaMemcpy(at(into), data, from.size() * bytes_of(into.dtype), cudaMemcpyHostToDevice));
  // From pageable memory the call may return before the device has the data.
  cuda(cudaDeviceSynchronize());
}

void DeviceMemory::read(std::span<float> into, const Slice& from) const {
  if (from.dtype == Dtype::f32) {
    cuda(cudaMemcpy(into.data(), at(from), into.size_bytes(), cudaMemcpyDeviceToHost));
    return;
  }
  std::vector<std::uint16_t> narrow(into.size());
  cuda(cudaMemcpy(narrow.data(), at(from), narrow.size() * sizeof narrow[0], cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = from_bf16(narrow[i]);
}

}  // namespace baton
