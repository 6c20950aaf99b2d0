// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "sp_methods/kernels/device/softmax/mask.cuh"
#include "sp_methods/kernels/device/workspace.cuh"

namespace baton {
namespace {

/// What a table depends on.
struct TableKey {
  std::array<std::int64_t, 13> numbers;
  std::shared_ptr<const std::vector<std::int64_t>> starts;

  explicit TableKey(const SoftmaxShape& s)
      : numbers{s.q_tokens,
                s.k_tokens,
                s.q_positions.first,
                s.q_positions.second,
                s.q_positions.split,
                s.q_positions.stride,
                s.k_positions.first,
                s.k_positions.second,
                s.k_positions.split,
                s.k_positions.stride,
                static_cast<std::int64_t>(s.mask.kind),
                s.mask.end,
                s.mask.window},
        starts(s.mask.starts) {}
  bool operator<(const TableKey& other) const {
    if (numbers != other.numbers) return numbers < other.numbers;
    if (!starts || !other.starts) return !starts && other.starts;
    return starts != other.starts && *starts < *other.starts;
  }
};

}  // namespace

const SeenKeys* seen_keys(cudaStream_t stream, const SoftmaxShape& shape) {
  static auto& tables =
      *new std::map<TableKey, DeviceBytes>;  // stays: the device may be gone when statics end
  TableKey key(shape);
  auto found = tables.find(key);
  if (found == tables.end()) {
    require_before_capture(stream, "the table of a mask");
    std::vector<SeenKeys> seen;
    for (std::int64_t i = 0; i < shape.q_tokens; ++i)
      seen.push_back({static_cast<int>(shape.hidden(i)), static_cast<int>(shape.visible(i))});
    DeviceBytes memory(seen.size() * sizeof(SeenKeys));
    cuda(cudaMemcpy(memory.get(), seen.data(), memory.bytes(), cudaMemcpyHostToDevice));
    found = tables.emplace(std::move(key), std::move(memory)).first;
  }
  return reinterpret_cast<const SeenKeys*>(found->second.get());
}

Refusal lacks_seen_keys(const SoftmaxShape& shape) {
  try {
    seen_keys(nullptr, shape);
    return {};
  } catch (const SystemError& error) {
    return error.what();
  }
}

}  // namespace baton
