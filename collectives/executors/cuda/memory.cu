// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdint>
#include <exception>
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {
namespace {

/// The offset of each buffer in bytes, and behind them the size of all.
std::vector<std::size_t> layout(const Schedule& schedule) {
  constexpr std::size_t alignment = 256;
  std::vector<std::size_t> offsets{0};
  for (const Buffer& buffer : schedule.buffers()) {
    const auto bytes = static_cast<std::size_t>(buffer.bytes());
    offsets.push_back(offsets.back() + (bytes + alignment - 1) / alignment * alignment);
  }
  return offsets;
}

/// The buffers that do not start as zeros, and what they start as.
std::vector<std::pair<Slice, float>> starts(const Schedule& schedule) {
  std::vector<std::pair<Slice, float>> all;
  for (int b = 0; b < static_cast<int>(schedule.buffers().size()); ++b) {
    const Buffer& buffer = schedule.buffers()[b];
    if (buffer.start != 0) all.push_back({{b, 0, buffer.count, buffer.dtype}, buffer.start});
  }
  return all;
}

std::vector<std::uint16_t> narrowed(std::span<const float> values) {
  std::vector<std::uint16_t> narrow(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) narrow[i] = to_bf16(values[i]);
  return narrow;
}

/// An inter-process handle stands for whole pages of the device: smaller allocations would share
/// theirs with others.
constexpr std::size_t page = std::size_t{2} << 20;

constexpr int threads = 256;

/// Number of blocks of `threads` threads for `count` elements, at most 1024.
unsigned blocks_for(std::int64_t count) {
  constexpr std::int64_t most = 1024;
  return static_cast<unsigned>(std::clamp<std::int64_t>((count + threads - 1) / threads, 1, most));
}

/// Adds the terms of elements numbered from `first` to `sum`.
template <class Word>
__global__ void checksum_kernel(unsigned long long* sum, const Word* words, std::int64_t count,
                                std::uint64_t first) {
  const std::int64_t all = static_cast<std::int64_t>(gridDim.x) * threads;
  std::uint64_t mine = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < count; i += all)
    mine += words[i] * ((first + static_cast<std::uint64_t>(i)) * checksum_step | 1);
  for (int apart = 16; apart > 0; apart /= 2) mine += __shfl_xor_sync(0xffffffffU, mine, apart);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, static_cast<unsigned long long>(mine));
}

template <class Word>
__global__ void scatter_kernel(Word* words, std::int64_t count, std::int64_t stride, Word value) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) * stride;
  if (i < count) words[i] = value;
}

}  // namespace

DeviceBytes::DeviceBytes(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (bytes > 0) cuda(cudaMalloc(&memory, bytes));
  memory_.reset(static_cast<std::byte*>(memory));
}

void DeviceBytes::Free::operator()(std::byte* memory) const {
  // Freeing waits for the device, which may wait for a failed rank for ever; the process ends
  // anyway.
  if (std::uncaught_exceptions() == 0) cudaFree(memory);
}

std::size_t DeviceMemory::bytes(const Schedule& schedule) { return layout(schedule).back(); }

DeviceMemory::DeviceMemory(const Schedule& schedule)
    : own_(std::make_unique<DeviceBytes>(bytes(schedule))),
      arena_(own_->get()),
      bytes_(bytes(schedule)),
      offsets_(layout(schedule)),
      starts_(starts(schedule)) {
  clear();
}

DeviceMemory::DeviceMemory(const Schedule& schedule, void* arena)
    : arena_(static_cast<std::byte*>(arena)),
      bytes_(bytes(schedule)),
      offsets_(layout(schedule)),
      starts_(starts(schedule)) {
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
  for (const auto& [buffer, value] : starts_)
    write(buffer, std::vector<float>(static_cast<std::size_t>(buffer.count), value));
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

std::uint64_t ChecksumDevice::of(const DeviceMemory& memory, std::span<const Slice> slices,
                                 cudaStream_t stream) const {
  auto* sum = reinterpret_cast<unsigned long long*>(sum_.get());
  cuda(cudaMemsetAsync(sum, 0, sizeof *sum, stream));
  std::uint64_t first = 0;
  for (const Slice& slice : slices) {
    if (slice.empty()) continue;
    const void* words = memory.at(slice);
    if (slice.dtype == Dtype::bf16)
      checksum_kernel<<<blocks_for(slice.count), threads, 0, stream>>>(
          sum, static_cast<const std::uint16_t*>(words), slice.count, first);
    else
      checksum_kernel<<<blocks_for(slice.count), threads, 0, stream>>>(
          sum, static_cast<const std::uint32_t*>(words), slice.count, first);
    cuda(cudaGetLastError());
    first += static_cast<std::uint64_t>(slice.count);
  }
  std::uint64_t total = 0;
  cuda(cudaMemcpyAsync(&total, sum, sizeof total, cudaMemcpyDeviceToHost, stream));
  cuda(cudaStreamSynchronize(stream));
  return total;
}

void scatter_on_device(const DeviceMemory& memory, const Slice& into, std::int64_t stride, float value,
                       cudaStream_t stream) {
  if (into.empty()) return;
  void* words = memory.at(into);
  const std::int64_t written = (into.count + stride - 1) / stride;
  const auto blocks = static_cast<unsigned>((written + threads - 1) / threads);
  if (into.dtype == Dtype::bf16)
    scatter_kernel<<<blocks, threads, 0, stream>>>(static_cast<std::uint16_t*>(words), into.count, stride,
                                                   to_bf16(value));
  else
    scatter_kernel<<<blocks, threads, 0, stream>>>(static_cast<std::uint32_t*>(words), into.count, stride,
                                                   std::bit_cast<std::uint32_t>(value));
  cuda(cudaGetLastError());
  cuda(cudaStreamSynchronize(stream));
}

SharedBuffer::SharedBuffer(const CudaRanks& ranks, std::size_t bytes)
    : ranks_(ranks), pointers_(ranks.size()) {
  const std::size_t whole = (bytes + page - 1) / page * page;
  void* memory = nullptr;
  cuda(cudaMalloc(&memory, whole));
  // Before any other rank can reach it: a flag that is raised early must not be wiped.
  cuda(cudaMemset(memory, 0, whole));
  cuda(cudaDeviceSynchronize());
  cudaIpcMemHandle_t mine;
  cuda(cudaIpcGetMemHandle(&mine, memory));
  const auto handles = ranks.gather(mine);
  pointers_[ranks.rank()] = static_cast<std::byte*>(memory);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (rank == ranks.rank()) continue;
    cuda(cudaIpcOpenMemHandle(&memory, handles[rank], cudaIpcMemLazyEnablePeerAccess));
    pointers_[rank] = static_cast<std::byte*>(memory);
  }
  cuda(cudaMalloc(&on_device_, pointers_.size() * sizeof pointers_[0]));
  cuda(cudaMemcpy(on_device_, pointers_.data(), pointers_.size() * sizeof pointers_[0],
                  cudaMemcpyHostToDevice));
  cuda(cudaDeviceSynchronize());
  ranks.barrier();
}

SharedBuffer::~SharedBuffer() {
  // When one rank fails, the others cannot meet here, and the device may wait for it for ever.
  if (std::uncaught_exceptions() > 0) return;
  cudaDeviceSynchronize();
  ranks_.barrier();  // no rank may free memory that another still uses
  for (int rank = 0; rank < ranks_.size(); ++rank)
    if (rank != ranks_.rank()) cudaIpcCloseMemHandle(pointers_[rank]);
  ranks_.barrier();
  cudaFree(own());
  cudaFree(on_device_);
}

}  // namespace baton
