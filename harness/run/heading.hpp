// SPDX-License-Identifier: Apache-2.0
// What all cases of a run share stands above its table, with the links of its ranks; and what the
// cases of a contest share above its rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/hosts.hpp"

namespace baton {

class AxisValues;
class Device;
struct Case;
struct Options;

/// Measurements of the links between ranks.
struct RankLinks {
  AlphaBeta model;
  StartSkew start_skew;
  std::optional<HostsOfRanks> hosts;
};

/// The lines above the table that describe the links of the executor called `name`; `device` is
/// null for processors.
std::string link_lines(const std::string& name, int ranks, const Device* device, const RankLinks& links);

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
