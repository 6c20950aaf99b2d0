// SPDX-License-Identifier: Apache-2.0
// Schedules recorded once more with some of their steps replaced, to plant a fault.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "collectives/schedule/schedule.hpp"

namespace baton {

/// Records another step, or none, in the place of one. False leaves the step as it is.
using Edit = std::function<bool(Schedule& into, const Schedule& from, const Step& step)>;

using Body = std::function<void(const HostOperands&)>;

/// The maps of a combine step.
struct CombinedMaps {
  Map into, earlier, later;

  explicit CombinedMaps(const Step& step) {
    const auto& [form, row] = step.combine;
    const bool composes = step.writes.size() == 2;
    const std::size_t at = composes ? 1 : 0;
    into = {composes ? step.writes[0] : Slice{}, step.writes.back(), row, form};
    earlier = {composes ? step.reads[0] : Slice{}, step.reads[at], row, form};
    later = {step.reads[at + 1], step.reads[at + 2], row, form};
  }
};

/// The right body of a combine step.
inline Body combine_of(const Step& step) {
  return [by = step.combine](const HostOperands& x) { combine_on_host(x, by); };
}

/// `from` recorded once more, step by step, under `edit`. Fences are lost.
inline Schedule rewritten(const Schedule& from, const Edit& edit) {
  Schedule into(from.home_rank(), from.ranks());
  for (const Buffer& buffer : from.buffers()) {
    if (buffer.role == Role::input) into.input(buffer.name, buffer.count, buffer.dtype);
    if (buffer.role == Role::output) into.output(buffer.name, buffer.count, buffer.covered, buffer.dtype);
    if (buffer.role == Role::scratch) into.scratch(buffer.name, buffer.count, buffer.dtype);
  }
  for (const Step& step : from.steps()) {
    if (edit(into, from, step)) continue;
    switch (step.verb) {
      case Verb::send: into.send(step.peer, step.reads[0], step.source); break;
      case Verb::recv: into.recv(step.writes[0], step.peer, step.source); break;
      case Verb::copy: into.copy(step.writes[0], step.reads[0], step.source); break;
      case Verb::combine: {
        const CombinedMaps maps(step);
        into.combine(maps.into, maps.earlier, maps.later, step.source);
        break;
      }
      case Verb::compute:
        into.compute(from.kernels()[step.body], step.writes, step.reads, step.source);
        break;
      case Verb::native:
        into.native(from.natives()[step.body].name, from.natives()[step.body].blocks, step.writes, step.reads,
                    step.source);
        break;
    }
  }
  return into;
}

/// An edit that gives combine steps which `applies` selects the body that `make` returns.
template <class Applies, class Make>
Edit other_combines(const Applies& applies, const Make& make) {
  return [=](Schedule& into, const Schedule& from, const Step& step) {
    if (step.verb != Verb::combine || !applies(from, step)) return false;
    into.compute({.name = "wrong_combine", .body = make(step)}, step.writes, step.reads, step.source);
    return true;
  };
}

/// An edit that wraps the body of every kernel called `name`: `make` gets the kernel.
template <class Make>
Edit other_kernel(const std::string& name, const Make& make) {
  return [=](Schedule& into, const Schedule& from, const Step& step) {
    if (step.verb != Verb::compute || from.kernels()[step.body].name != name) return false;
    Kernel kernel = from.kernels()[step.body];
    kernel.body = make(kernel);
    into.compute(std::move(kernel), step.writes, step.reads, step.source);
    return true;
  };
}

/// The edits of all faults in steps, by name (faults.cpp).
const std::map<std::string, Edit>& step_faults();

}  // namespace baton
