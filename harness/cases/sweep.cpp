// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// The threads of each of `ranks` ranks for which this host has cores: 2 or 1.
int that_fit(int ranks) {
  const int here = launcher().size_on_host > 0 ? std::min(ranks, launcher().size_on_host) : ranks;
  return std::clamp(cores_for_each(here), 1, 2);
}

using Workloads = std::vector<std::shared_ptr<const Workload>>;

/// The cases of a sweep, made point by point.
class Sweep {
 public:
  explicit Sweep(const Axes& axes) : axes_(axes) {}

  std::vector<Case> cases() {
    for (int cycle = 1; cycle <= axes_.cycles; ++cycle)
      for (const auto& family : families())
        for (Case point : axes_.points) {
          point.cycle = axes_.cycles > 1 ? cycle : 0;
          add_groups(family, point);
        }
    if (all_.empty() && !left_out_.empty()) throw UsageError(left_out_ + ", and nothing else is to run");
    return std::move(all_);
  }

 private:
  /// The backends of each family together, so that all rows that compete are there before others
  /// begin.
  std::vector<std::vector<const Backend*>> families() const {
    std::vector<std::vector<const Backend*>> all;
    for (const std::string& executor : axes_.executors) {
      const Backend& backend = find_backend(executor);
      const auto found = std::find_if(all.begin(), all.end(),
                                      [&](const auto& one) { return one[0]->family == backend.family; });
      if (found == all.end())
        all.push_back({&backend});
      else
        found->push_back(&backend);
    }
    return all;
  }

  /// Adds the cases of all groups on some backends, at a point of the other axes.
  void add_groups(const std::vector<const Backend*>& family, const Case& point) {
    for (const Workloads& group : axes_.comparison_groups)
      for (const Backend* backend : family) {
        Case base = point;
        base.backend = backend;
        if (!backend->shares_gpus) base.ranks_per_gpu = 1;
        add_group(group, base);
      }
  }

  /// Adds the cases of one comparison group at the point of the other axes that `base` describes.
  void add_group(Workloads workloads, const Case& base) {
    std::stable_partition(workloads.begin(), workloads.end(),
                          [&](const auto& w) { return w->name() == axes_.baseline; });
    // One contest after the other.
    const std::string first = workloads[0]->axes().text("attention");
    std::stable_partition(workloads.begin(), workloads.end(),
                          [&](const auto& w) { return w->axes().text("attention") == first; });
    for (const auto& workload : workloads) {
      if (is_left_out(workload, *base.backend)) continue;
      for (int blocks : workload->cuts_blocks() ? axes_.blocks : std::vector{1}) {
        Case one = base;
        const auto sized = workload->sized(base.ranks);
        one.workload = sized ? sized : workload;
        one.blocks = blocks;
        one.threads_per_rank = threads_of(*workload, base);
        if (names_.insert(one.name()).second) all_.push_back(std::move(one));
      }
    }
  }

  int threads_of(const Workload& workload, const Case& base) const {
    if (!workload.is_layer()) return 1;
    const int asked = base.threads_per_rank > 0 ? base.threads_per_rank : that_fit(base.ranks);
    return std::min(asked, base.backend->most_threads);
  }

  bool is_left_out(const std::shared_ptr<const Workload>& workload, const Backend& backend) {
    const auto [native, is_new] = natives_.try_emplace(workload.get());
    if (is_new) native->second = workload->native();
    if (native->second.empty() || axes_.runs_native(backend, native->second)) return false;
    left_out_ = fmt::format("{} calls the native {}, which executor {} does not run", workload->name(),
                            native->second, backend.name);
    return true;
  }

  const Axes& axes_;
  std::vector<Case> all_;
  std::set<std::string> names_;  // of the cases
  std::map<const Workload*, std::string> natives_;
  std::string left_out_;  // why the last of them was
};

}  // namespace

std::vector<Case> cases(const Axes& axes) {
  constexpr double most_cases = 100000;
  double points = 0;
  for (const auto& group : axes.comparison_groups) points += static_cast<double>(group.size());
  for (const std::size_t axis : {axes.executors.size(), axes.points.size(), axes.blocks.size()})
    points *= static_cast<double>(axis);
  points *= axes.cycles;
  if (points > most_cases)
    throw UsageError(
        fmt::format("--ranks, --blocks, --cycles and the other lists ask for {:.0f} cases, at most {:.0f}",
                    points, most_cases));
  return Sweep(axes).cases();
}

}  // namespace baton
