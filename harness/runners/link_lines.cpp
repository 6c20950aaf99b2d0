// SPDX-License-Identifier: Apache-2.0
#include "harness/runners/link_lines.hpp"

#include <fmt/format.h>

#include <cmath>

#include "collectives/executors/executor.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/executors/routine.hpp"
#include "harness/process/world.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

std::string device_lines(const std::string& name, int ranks, const Device& device, const AlphaBeta& model) {
  std::string text =
      device.is_shared()
          ? fmt::format("# {}, {} ranks, up to {} on a GPU by turns: no time here is a measure of a link",
                        name, ranks, executor_choices().ranks_per_gpu)
          : fmt::format("# {}, {}: empty round {:.2f} us", name, quantity(ranks, "rank"),
                        model.floor_seconds * 1e6);
  if (ranks > 1 && !device.is_shared())
    text += fmt::format(", alpha {:.2f} us, beta {:.1f} GB/s", model.alpha_seconds * 1e6, model.beta * 1e-9);
  if (model.message_beta > 0)
    text += fmt::format(" (its own messages {:.2f} us, {:.1f} GB/s)", model.message_alpha_seconds * 1e6,
                        model.message_beta * 1e-9);
  text += "; rounds start by ";
  text += device.starts_on_device() ? "flags between the GPUs" : "a barrier";
  std::string facts = "#";
  for (const auto& [fact, value] : device.facts()) facts += fmt::format(" {} {};", fact, value);
  facts.pop_back();
  return wrapped(text, "#   ") + wrapped(facts, "#   ");
}

std::string processor_lines(const std::string& name, int ranks, const RankLinks& links) {
  const AlphaBeta& model = links.model;
  const std::string where = links.hosts ? " on " + links.hosts->placement : "";
  const std::string classes = links.hosts ? links.hosts->words(model)
                                          : fmt::format("alpha {:.2f} us, beta {:.2f} GB/s",
                                                        model.alpha_seconds * 1e6, model.beta * 1e-9);
  std::string skew = std::isnan(links.start_skew.seconds)
                         ? "unknown (several hosts)"
                         : fmt::format("{:.2f} us", links.start_skew.seconds * 1e6);
  if (links.hosts && links.start_skew.clock_error_seconds > 0)
    skew +=
        fmt::format(", clocks of hosts compared to {:.2f} us", links.start_skew.clock_error_seconds * 1e6);
  return wrapped(fmt::format("# {}, {} ranks{}: {}, start skew {}", name, ranks, where, classes, skew),
                 "#   ");
}

}  // namespace

std::string call_line() {
  if (!empty_call_seconds()) return {};
  return fmt::format("# a call of an empty function in Python takes {:.2f} us\n",
                     empty_call_seconds()() * 1e6);
}

std::string link_lines(const std::string& name, int ranks, const Device* device, const RankLinks& links) {
  if (device == nullptr && ranks < 2) return {};
  std::string text = device != nullptr ? device_lines(name, ranks, *device, links.model)
                                       : processor_lines(name, ranks, links);
  if (links.hosts && device != nullptr)
    text += fmt::format("# {} ranks on {}\n", ranks, links.hosts->placement);
  if (links.hosts && !links.hosts->irregular.empty()) text += wrapped("# " + links.hosts->irregular, "#   ");
  return text;
}

}  // namespace baton
