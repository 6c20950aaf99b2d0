// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/listing.hpp"

#include "collectives/schedule/kernel.hpp"

namespace baton {
namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string form_of(const MapForm& form) {
  if (form.kind == MapKind::diagonal) return {};
  return std::string(", ") + to_string(form.kind) + (form.transposed ? ", transposed" : "");
}

std::string action(const Schedule& schedule, const Step& step) {
  const std::string peer = "rank " + std::to_string(step.peer);
  const std::string writes = text(schedule, step.writes), reads = text(schedule, step.reads);
  switch (step.verb) {
    case Verb::send: return reads + " to " + peer;
    case Verb::recv: return writes + " from " + peer;
    case Verb::compute: return writes + " = " + schedule.kernels()[step.body].name + "(" + reads + ")";
    case Verb::native: return writes + " = " + schedule.natives()[step.body].name + "(" + reads + ")";
    case Verb::combine: return writes + " from " + reads + form_of(step.combine.form);
    default: return writes + " from " + reads;
  }
}

}  // namespace

std::string text(const Schedule& schedule, const std::vector<Slice>& slices) {
  std::string text;
  for (const Slice& slice : slices) {
    if (slice.empty()) continue;
    text += (text.empty() ? "" : ", ") + schedule.buffers()[slice.buffer].name + "[" +
            std::to_string(slice.offset) + ":" + std::to_string(slice.end()) + ")";
  }
  return text;
}

std::string text(const Schedule& schedule) {
  std::string text =
      "rank " + std::to_string(schedule.home_rank()) + " of " + std::to_string(schedule.ranks()) + "\n";
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    const Step& step = schedule.steps()[i];
    std::string after;
    for (int before : step.waits_for) after += (after.empty() ? "after " : ",") + std::to_string(before);
    const std::string& region = schedule.regions()[step.region];
    text += padded(std::to_string(i), 5) + padded(to_string(step.verb), 8) +
            padded(action(schedule, step), 60) + " " + padded(after, 12) + " " + where(step) +
            (region.empty() ? "" : " in " + region) + "\n";
  }
  return text;
}

}  // namespace baton
