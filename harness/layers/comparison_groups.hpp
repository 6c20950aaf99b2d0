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
  std::vector<std::int64_t> packed{0};
  std::vector<std::string> scans;
  std::vector<std::string> gate_kinds{"vector"};
  std::vector<std::string> gate_draws{"mixed"};
  std::vector<int> groups{1};
  std::vector<std::int64_t> heads{16};
  std::vector<std::int64_t> kv_heads{0};
  std::vector<std::int64_t> mla;
  std::vector<std::int64_t> d_k{128};
  std::vector<std::int64_t> d_v{128};
  std::vector<std::int64_t> chunks{64};
  std::vector<std::string> dtypes{"auto"};
};

inline const Choices<GateKind> gate_kind_choices{
    {"vector", GateKind::vector}, {"scalar", GateKind::scalar}, {"none", GateKind::none}};
inline const Choices<GateDraw> gate_draw_choices{{"layer", GateDraw::layer},
                                                 {"mixed", GateDraw::mixed},
                                                 {"strong", GateDraw::strong},
                                                 {"weak", GateDraw::weak}};

/// The names of all exclusive scans.
std::vector<std::string> scan_names();

/// Throws UsageError if one of `scans` is no exclusive scan, or if there are some and none of the
/// methods carries states by one.
void require_scans(const std::vector<std::string>& scans, const std::vector<std::string>& methods);

/// The scans by which a method carries states, where a user asks for `scans`: an empty text stands
/// for its own, and is all that a method without one has.
std::vector<std::string> scans_of(const SpMethod& method, const std::vector<std::string>& scans);

/// The comparison groups, one for each layer that the flags combine to: every method in every mode,
/// and by every scan. No row is there twice, where an axis says nothing of it. Throws UsageError if
/// the flags describe a layer that cannot be built.
std::vector<std::vector<std::shared_ptr<const Workload>>> comparison_groups(
    const RawOperators& raw, const std::vector<std::string>& names, const std::vector<std::string>& executors,
    std::uint64_t seed);

}  // namespace baton
