// SPDX-License-Identifier: Apache-2.0
// The dependencies of steps, derived from the slices that they read and write.
//
//   read  after the last write of any of its elements
//   write after every read since then, or after the last write where nobody read
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
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

  /// Cuts the run that contains `at` in two, so that a run starts there.
  static void cut(Runs& runs, std::int64_t at);
  /// Makes the runs cover [begin, end) exactly and fills gaps with untouched runs.
  static void cover(Runs& runs, std::int64_t begin, std::int64_t end);
  void read(int step, const Slice& slice, std::vector<int>& waits_for);
  void write(int step, const Slice& slice, std::vector<int>& waits_for);

  std::vector<Runs> buffers_;
};

inline void Dependencies::cut(Runs& runs, std::int64_t at) {
  auto next = runs.upper_bound(at);
  if (next == runs.begin()) return;
  auto run = std::prev(next);
  if (run->first == at || run->second.end <= at) return;
  Run tail = run->second;
  run->second.end = at;
  runs.emplace_hint(next, at, std::move(tail));
}

inline void Dependencies::cover(Runs& runs, std::int64_t begin, std::int64_t end) {
  cut(runs, begin);
  cut(runs, end);
  std::int64_t at = begin;
  for (auto run = runs.lower_bound(begin); at < end; ++run) {
    const std::int64_t next = run == runs.end() ? end : std::min(end, run->first);
    if (at < next) run = runs.emplace_hint(run, at, Run{next, -1, {}});
    at = run->second.end;
  }
}

inline std::vector<int> Dependencies::record(int step, const std::vector<Slice>& writes,
                                             const std::vector<Slice>& reads) {
  std::vector<int> waits_for;
  for (const Slice& slice : reads)
    if (!slice.empty()) read(step, slice, waits_for);
  for (const Slice& slice : writes)
    if (!slice.empty()) write(step, slice, waits_for);
  std::sort(waits_for.begin(), waits_for.end());
  waits_for.erase(std::unique(waits_for.begin(), waits_for.end()), waits_for.end());
  return waits_for;
}

inline void Dependencies::read(int step, const Slice& slice, std::vector<int>& waits_for) {
  if (buffers_.size() <= static_cast<std::size_t>(slice.buffer)) buffers_.resize(slice.buffer + 1);
  Runs& runs = buffers_[slice.buffer];
  cover(runs, slice.offset, slice.end());
  for (auto run = runs.find(slice.offset); run != runs.end() && run->first < slice.end(); ++run) {
    if (run->second.writer >= 0) waits_for.push_back(run->second.writer);
    run->second.readers.push_back(step);
  }
}

inline void Dependencies::write(int step, const Slice& slice, std::vector<int>& waits_for) {
  if (buffers_.size() <= static_cast<std::size_t>(slice.buffer)) buffers_.resize(slice.buffer + 1);
  Runs& runs = buffers_[slice.buffer];
  cover(runs, slice.offset, slice.end());
  auto run = runs.find(slice.offset);
  while (run != runs.end() && run->first < slice.end()) {
    for (int reader : run->second.readers)
      if (reader != step) waits_for.push_back(reader);
    const int writer = run->second.writer;
    if (run->second.readers.empty() && writer >= 0 && writer != step) waits_for.push_back(writer);
    run = runs.erase(run);
  }
  runs.emplace(slice.offset, Run{slice.end(), step, {}});
}

}  // namespace baton
