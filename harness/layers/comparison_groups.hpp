// SPDX-License-Identifier: Apache-2.0
// The groups of layers that a command line asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/layers/workload.hpp"
#include "harness/options/names.hpp"

namespace baton {

/// The flags of operator_bench alone, as the user wrote them.
struct RawOperators {
  std::vector<std::string> methods{"all"};
  std::vector<std::string> attentions;
  std::vector<std::string> passes{"both"};
  std::vector<std::string> modes{"overlapped"};
  std::vector<std::string> kernels{"auto"};
  std::vector<std::int64_t> tokens{8192};
  std::string scan;
  std::string gate_kind = "vector";
  std::string gate_draw = "mixed";
  int groups = 1;
  std::int64_t heads = 16;
  std::int64_t kv_heads = 0;
  std::vector<std::int64_t> mla;
  std::int64_t d_k = 128;
  std::int64_t d_v = 128;
  std::int64_t chunk = 64;
  std::string dtype = "auto";
  Packing packing;
};

inline const Choices<GateKind> gate_kind_choices{
    {"vector", GateKind::vector}, {"scalar", GateKind::scalar}, {"none", GateKind::none}};
inline const Choices<GateDraw> gate_draw_choices{{"layer", GateDraw::layer},
                                                 {"mixed", GateDraw::mixed},
                                                 {"strong", GateDraw::strong},
                                                 {"weak", GateDraw::weak}};

/// The names of all exclusive scans.
std::vector<std::string> scan_names();

/// Throws UsageError if `scan`, unless it is empty, is no exclusive scan, or if none of the methods
/// carries states by one.
void require_scan(const std::string& scan, const std::vector<std::string>& methods);

/// The comparison groups, one for each attention, token count, pass and body of softmax blocks:
/// every method in every mode. Linear attention has one body. Throws UsageError if the flags
/// describe no layer that can be built.
std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups(
    const RawOperators& raw, const std::vector<std::string>& names, Dtype dtype,
    const std::vector<SoftmaxBody>& kernels);

}  // namespace baton
