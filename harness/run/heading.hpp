// SPDX-License-Identifier: Apache-2.0
// What all cases of a run share stands above its table, with the links of its ranks; and what the
// cases of a contest share above its rows.
#pragma once

#include <string>
#include <vector>

namespace baton {

class AxisValues;
struct Case;
struct Options;

/// The lines above the table: the machine, and what all of `options.cases` share. At most 100
/// columns.
std::string heading(const Options& options);

/// Words for what not all cases of a run share, apart from columns of the table.
class Differences {
 public:
  using Words = std::string (*)(const AxisValues&);

  explicit Differences(const std::vector<Case>& cases);

  /// Words for the contest of a case; may be empty.
  std::string of_contest(const Case& one) const;
  /// The same with what tells rows of one name apart: the mode, and the blocks.
  std::string of_case(const Case& one) const;

 private:
  std::vector<Words> facts_;
  bool has_variants_ = false, has_blocks_ = false;
};

}  // namespace baton
