// SPDX-License-Identifier: Apache-2.0
// The dependencies of steps, derived from the slices that they read and write.
//
//   read  after the last write of any of its elements
//   write after every read since then, or after the last write where nobody read
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace baton {

/// Remembers the last writer of every run of elements and its readers since. O(log runs) a slice.
class Dependencies {
 public:
  /// Remembers step number `step` and returns the earlier steps that it must wait for, ascending.
  std::vector<int> record(int step, const std::vector<Slice>& writes, const std::vector<Slice>& reads);

 private:
  struct Run {
    std::int64_t end = 0;
    int writer = -1;
    std::vector<int> readers;
  };
  using Runs = std::map<std::int64_t, Run>;

  void read(int step, const Slice& slice, std::vector<int>& waits_for);
  void write(int step, const Slice& slice, std::vector<int>& waits_for);

  std::vector<Runs> buffers_;
};

}  // namespace baton
