// SPDX-License-Identifier: Apache-2.0
// An exclusive scan run on words: every number of rank r's map is the word "r", and to combine is
// to join two words. The word of an element tells which maps it was made of, in order.
//
//   own state, own decay of rank r = r
//   combine: state' = earlier state, later state      decay' = earlier decay, later decay
//   at the end rank r must hold 0 1 .. r-1 in every element; in reverse P-1 .. r+1
//   a matrix reads a whole row: its elements must have one word, and so must the matrix
//
// Words are the free semigroup, so a scan that is right on words is right on every associative
// operator. A step that mixes what does not belong together leaves a broken element: a decay on
// another row or of another word than the state beside it, a map of another form than the scan's,
// or memory that nothing has written.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// The maps of a scan that is run on words.
struct WordScan {
  /// The name of the scan and of its setting in errors, as in "all_scan, 8 ranks".
  std::string name;
  /// Rows of each rank's map, and elements of a row of its state.
  std::int64_t rows = 0;
  std::int64_t row = 1;
  /// True if the last rank is the first in scan order.
  bool is_reversed = false;
  /// The form of the maps, which every combine must have.
  MapForm form = {};

  /// Elements of decays or matrices in a rank's map.
  std::int64_t decays() const { return Map{{}, {-1, 0, rows * row}, row, form}.decay_count(); }
};

/// True if every step of `schedules` can be run on words: none is a native or a compute step, whose
/// bodies take numbers alone.
bool has_words(std::span<const Schedule> schedules);

/// Runs `schedules`, one a rank, on words. Their buffers are "own", a map of scan.decays() decays
/// and scan.rows * scan.row states, and "into", the state before it. Throws ScheduleError naming
/// the first rank that does not get its prefix: "all_scan, 8 ranks: rank 5 has 0 1 2 4 3, must
/// have 0 1 2 3 4".
void run_on_words(const WordScan& scan, std::span<const Schedule> schedules);

}  // namespace baton
