// SPDX-License-Identifier: Apache-2.0
// The mask of a softmax block on a device: a table of the keys that each query sees, so that
// positions.hpp alone says what a mask leaves.
#pragma once

#include "sp_methods/kernels/softmax.hpp"

namespace baton {

/// The keys of a block that a query sees: those from number `hidden` to before number `visible`.
struct SeenKeys {
  int hidden, visible;
};

/// The table [q_tokens] of a block in device memory, which stays until the process ends. The first
/// call for a block makes it on this process's GPU, before `stream` is captured. Throws SystemError
/// without enough memory.
const SeenKeys* seen_keys(cudaStream_t stream, const SoftmaxShape& shape);

/// Makes the table of a block, and returns the reason if that is impossible.
Refusal lacks_seen_keys(const SoftmaxShape& shape);

/// The mask between a block's queries and keys. Neither end of what a query sees falls from one
/// query to the next.
struct SoftmaxMask {
  const SeenKeys* table;
  int q_tokens, k_tokens, heads;
  float scale;

  SoftmaxMask(cudaStream_t stream, const SoftmaxShape& shape)
      : table(seen_keys(stream, shape)),
        q_tokens(static_cast<int>(shape.q_tokens)),
        k_tokens(static_cast<int>(shape.k_tokens)),
        heads(static_cast<int>(shape.heads)),
        scale(shape.scale()) {}

  /// The keys that query i sees; those of the last query past it.
  __device__ SeenKeys seen(int i) const { return table[min(i, q_tokens - 1)]; }
  /// True if query i sees key j.
  __device__ bool sees(int i, int j) const {
    const SeenKeys keys = seen(i);
    return j >= keys.hidden && j < keys.visible;
  }
  /// False if none of `queries` queries from i on sees any of `keys` keys from j on.
  __device__ bool sees_any(int i, int queries, int j, int keys) const {
    return seen(i + queries - 1).visible > j && seen(i).hidden < j + keys;
  }
  /// True if all of `queries` queries from i on see all of `keys` keys from j on. Queries past the
  /// last one do not count.
  __device__ bool sees_all(int i, int queries, int j, int keys) const {
    return seen(i).visible >= j + keys && seen(i + queries - 1).hidden <= j;
  }

  /// The first query that sees key j or a later one; q_tokens if none does.
  __device__ int first_query(int j) const {
    return first_where([&](int i) { return table[i].visible > j; });
  }
  /// The query behind the last one that sees key j or an earlier one.
  __device__ int end_query(int j) const {
    return first_where([&](int i) { return table[i].hidden > j; });
  }

 private:
  /// The first query for which `holds`, as it does for all queries behind such a one.
  template <class Condition>
  __device__ int first_where(Condition holds) const {
    int low = 0, high = q_tokens;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (holds(middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

}  // namespace baton
