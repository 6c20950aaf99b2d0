// SPDX-License-Identifier: Apache-2.0
// The links between the ranks of an executor in words, for the lines above a table.
#pragma once

#include <optional>
#include <string>

#include "harness/measure/alpha_beta.hpp"
#include "harness/measure/hosts.hpp"

namespace baton {

class Device;

/// Measurements of the links between ranks.
struct RankLinks {
  AlphaBeta model;
  StartSkew start_skew;
  std::optional<HostsOfRanks> hosts;
};

/// The lines above the table that describe the links of the executor called `name`; `device` is
/// null for processors.
std::string link_lines(const std::string& name, int ranks, const Device* device, const RankLinks& links);

/// One line with what a call of an empty function in Python takes, measured now; empty where the
/// program has none.
std::string call_line();

}  // namespace baton
