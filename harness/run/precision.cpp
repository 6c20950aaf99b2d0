// SPDX-License-Identifier: Apache-2.0
#include "harness/run/precision.hpp"

#include <fmt/format.h>

#include "harness/options/options.hpp"
#include "harness/record/cells.hpp"
#include "harness/record/comparisons.hpp"

namespace baton {

int most_asked(const Options& options) {
  const bool adds = options.stop_at > 0 && options.launches == 1 && options.most_seconds == 0;
  return adds ? most_launches : options.launches;
}

std::optional<Widest> widest_interval(const Comparisons& comparisons, int cases) {
  std::optional<Widest> widest;
  for (int index = 0; index < cases; ++index) {
    const std::optional<OverLaunches> over = comparisons.over_launches(index);
    if (!over || over->summary.median <= 0) continue;
    const auto& [low, high] = over->summary.ci95;
    const double percent = 50 * (high - low) / over->summary.median;
    if (!widest || percent > widest->percent) widest = Widest{index, percent};
  }
  return widest;
}

bool is_narrow(const std::optional<Widest>& widest, int launch, double percent) {
  return launch >= least_launches && (!widest || widest->percent <= percent);
}

std::string end_of_stop_at(const std::optional<Widest>& widest, const std::vector<Case>& cases, int launches,
                           double percent) {
  if (is_narrow(widest, launches, percent))
    return wrapped(fmt::format("# After {} every interval is within {} % of its time, as --stop-at asks.",
                               quantity(launches, "launch", "launches"), percent),
                   "#   ");
  const std::string why =
      widest ? fmt::format("the interval of {} is still {:.1f} % of its time to either side",
                           cases[static_cast<std::size_t>(widest->index)].name(), widest->percent)
             : fmt::format("intervals take {} launches", least_launches);
  return wrapped(fmt::format("# --stop-at {} gave up after {}: {}. --for or --launches allow more.", percent,
                             quantity(launches, "launch", "launches"), why),
                 "#   ");
}

}  // namespace baton
