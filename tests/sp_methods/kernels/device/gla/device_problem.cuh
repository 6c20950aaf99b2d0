// SPDX-License-Identifier: Apache-2.0
// The layers that test the device bodies of gated linear attention: how one is cut into ranks,
// segments and head groups, and its numbers on their way to the device and back.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/schedule/slice.hpp"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"
#include "tests/sp_methods/kernels/gla_problem.hpp"

namespace baton {

/// A layer, and how it is cut.
struct DeviceProblem {
  test::Problem layer;
  int ranks, segments, groups = 1;
  std::int64_t closed_token = -1;  ///< A token, or none, whose gates let nothing pass.

  std::string name() const {
    return layer.name() + ", ranks " + std::to_string(ranks) + ", segments " + std::to_string(segments) +
           ", groups " + std::to_string(groups) +
           (closed_token < 0 ? "" : ", closed at " + std::to_string(closed_token));
  }
};

/// The inputs of a layer, each a number that bf16 holds.
inline test::Tensors drawn(const DeviceProblem& problem) {
  test::Tensors tensors = test::draw(problem.layer);
  const std::int64_t width = problem.layer.shape.heads * problem.layer.shape.gate_width();
  if (problem.closed_token >= 0) std::fill_n(tensors.g.begin() + problem.closed_token * width, width, -70.0F);
  for (auto* tensor : {&tensors.q, &tensors.k, &tensors.v, &tensors.g, &tensors.d_o})
    for (float& value : *tensor) value = from_bf16(to_bf16(value));
  return tensors;
}

/// Writes numbers as bf16.
inline void write(const DeviceArray<Bf16>& into, const std::vector<float>& from) {
  std::vector<Bf16> narrow;
  for (const float value : from) narrow.push_back(__float2bfloat16(value));
  cuda(cudaMemcpy(into.at(), narrow.data(), narrow.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
}

/// Reads numbers in bf16.
inline std::vector<float> read(const DeviceArray<Bf16>& from) {
  std::vector<float> wide;
  for (const Bf16 value : from.host()) wide.push_back(__bfloat162float(value));
  return wide;
}

}  // namespace baton
