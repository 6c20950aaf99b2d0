// SPDX-License-Identifier: Apache-2.0
// The groups of layers that a command line asks for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/layers/workload.hpp"
#include "harness/options/grid.hpp"
#include "harness/options/names.hpp"

namespace baton {

/// A layer that the flags ask for, without its attention, its method, its mode and its scan.
struct AskedLayer {
  Layer layer;
  LayerDraw draw;
  /// The words of --dtype and --kernel; "auto" is chosen by the executors.
  std::string dtype = "auto", kernel = "auto";
};

/// The flags of operator_bench alone, as the user wrote them.
struct RawOperators {
  explicit RawOperators(Flags& flags) : layers(flags) {}

  std::vector<std::string> methods{"all"};
  std::vector<std::string> attentions;
  std::vector<std::string> modes{"overlapped"};
  std::vector<std::string> scans;
  std::vector<std::int64_t> mla;
  std::vector<std::string> documents;         ///< Lengths, or the path of a file.
  std::vector<std::string> shares{"padded"};  ///< Words, or a number of tokens for each rank.
  AxisFlags<AskedLayer> layers;
};

inline const Choices<SoftmaxBody> kernel_choices{{"own", SoftmaxBody::own}, {"cudnn", SoftmaxBody::cudnn}};

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
