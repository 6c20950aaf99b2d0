// SPDX-License-Identifier: Apache-2.0
// The mask of a block without a window and documents as a library takes it: runs of queries whose
// visible keys are either the same for all, or one more from each query to the next.
//
//   own block, any layout          one run, causal: the last query sees all keys
//   block of another rank          one run, whole: with zigzag half of the keys, or half of the
//                                  queries; queries that see no key belong to no run
//   striped, block of a later rank one run, causal: the first query sees nothing
//   zigzag queries, gathered keys  two runs, causal, each with the keys before it
//
// Queries of two runs share no row of the output, so their results need no merge; the gradients of
// their keys are sums over the runs.
#pragma once

#include <vector>

#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// Neighbouring queries that see the first keys of a block.
struct MaskRun {
  std::int64_t first = 0;  ///< The first query.
  std::int64_t queries = 0;
  std::int64_t keys = 0;  ///< Number of keys that the last of these queries sees.
  /// True if each query sees one key more than the query before it; else all see `keys`.
  bool causal = false;

  bool operator==(const MaskRun&) const = default;
};

/// The runs of a block's mask, where an ambiguous cut makes the first run longest. At most `most` +
/// 1 runs are returned; positions such as every second one against all give one run a query.
inline std::vector<MaskRun> mask_runs(const SoftmaxShape& shape, std::size_t most = 4) {
  std::vector<MaskRun> runs;
  std::int64_t seen_before = 0;
  for (std::int64_t i = 0; i < shape.q_tokens; ++i) {
    const std::int64_t seen = shape.visible(i), more = seen - seen_before;
    seen_before = seen;
    if (seen == 0) continue;
    MaskRun* run = runs.empty() ? nullptr : &runs.back();
    const bool follows = run != nullptr && (run->queries == 1 ? more <= 1 : more == (run->causal ? 1 : 0));
    if (!follows) {
      if (runs.size() > most) break;
      run = &runs.emplace_back(MaskRun{i, 0, 0, false});
    } else if (run->queries == 1) {
      run->causal = more == 1;
    }
    ++run->queries;
    run->keys = seen;
  }
  return runs;
}

}  // namespace baton
