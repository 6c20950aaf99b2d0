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
#include <memory>
#include <memory_resource>
#include <utility>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace baton {

/// Remembers the last writer of every run of elements and its readers since. O(log runs) a slice.
class Dependencies {
 public:
  Dependencies() = default;
  Dependencies(const Dependencies&) = default;
  Dependencies(Dependencies&&) = default;
  /// Keeps the memory of the old runs until they are gone, as the defaults would not.
  Dependencies& operator=(Dependencies other) noexcept {
    memory_.swap(other.memory_);
    buffers_.swap(other.buffers_);
    readers_.swap(other.readers_);
    return *this;
  }
  ~Dependencies() = default;

  /// Remembers step number `step` and returns the earlier steps that it must wait for, ascending.
  std::vector<int> record(int step, const std::vector<Slice>& writes, const std::vector<Slice>& reads);

 private:
  struct Run {
    std::int64_t end = 0;
    int writer = -1;
    int readers = -1;  // the last of its readers in `readers_`
  };
  /// A reader of a run, and the place of the one before it. Parts of a run share those from before
  /// it was cut.
  struct Reader {
    int step;
    int before;
  };
  using Runs = std::pmr::map<std::int64_t, Run>;

  /// Cuts `run` in two at `at`, and returns the second part.
  static Runs::iterator cut(Runs& runs, Runs::iterator run, std::int64_t at);
  /// Makes runs cover `slice` exactly, fills gaps with untouched runs, and returns the first one.
  Runs::iterator cover(const Slice& slice);
  void read(int step, const Slice& slice);
  void write(int step, const Slice& slice);

  /// The memory of the runs, which is freed at once: there are about as many as steps.
  std::shared_ptr<std::pmr::memory_resource> memory_ =
      std::make_shared<std::pmr::monotonic_buffer_resource>();
  std::vector<Runs> buffers_;
  std::vector<Reader> readers_;
  std::vector<int> waits_for_;  // of the step that is being recorded
};

inline Dependencies::Runs::iterator Dependencies::cut(Runs& runs, Runs::iterator run, std::int64_t at) {
  const Run tail = std::exchange(run->second, {at, run->second.writer, run->second.readers});
  return runs.emplace_hint(std::next(run), at, tail);
}

inline Dependencies::Runs::iterator Dependencies::cover(const Slice& slice) {
  while (buffers_.size() <= static_cast<std::size_t>(slice.buffer)) buffers_.emplace_back(memory_.get());
  Runs& runs = buffers_[slice.buffer];
  auto run = runs.lower_bound(slice.offset);
  if (run != runs.begin() && std::prev(run)->second.end > slice.offset)
    run = cut(runs, std::prev(run), slice.offset);
  Runs::iterator first = runs.end();
  for (std::int64_t at = slice.offset; at < slice.end(); ++run) {
    const std::int64_t next = run == runs.end() ? slice.end() : std::min(slice.end(), run->first);
    if (at < next)
      run = runs.emplace_hint(run, at, Run{.end = next});
    else if (run->second.end > slice.end())
      cut(runs, run, slice.end());
    if (at == slice.offset) first = run;
    at = run->second.end;
  }
  return first;
}

inline std::vector<int> Dependencies::record(int step, const std::vector<Slice>& writes,
                                             const std::vector<Slice>& reads) {
  waits_for_.clear();
  for (const Slice& slice : reads)
    if (!slice.empty()) read(step, slice);
  for (const Slice& slice : writes)
    if (!slice.empty()) write(step, slice);
  std::sort(waits_for_.begin(), waits_for_.end());
  return {waits_for_.begin(), std::unique(waits_for_.begin(), waits_for_.end())};
}

inline void Dependencies::read(int step, const Slice& slice) {
  const Runs::iterator first = cover(slice), end = buffers_[slice.buffer].end();
  for (auto run = first; run != end && run->first < slice.end(); ++run) {
    if (run->second.writer >= 0) waits_for_.push_back(run->second.writer);
    readers_.push_back({step, run->second.readers});
    run->second.readers = static_cast<int>(readers_.size()) - 1;
  }
}

inline void Dependencies::write(int step, const Slice& slice) {
  const Runs::iterator first = cover(slice);
  Runs& runs = buffers_[slice.buffer];
  auto run = first;
  for (; run != runs.end() && run->first < slice.end(); ++run) {
    const auto [end, writer, last] = run->second;
    for (int reader = last; reader >= 0; reader = readers_[reader].before)
      if (readers_[reader].step != step) waits_for_.push_back(readers_[reader].step);
    if (last < 0 && writer >= 0 && writer != step) waits_for_.push_back(writer);
  }
  runs.erase(std::next(first), run);
  first->second = {slice.end(), step, -1};
}

}  // namespace baton
