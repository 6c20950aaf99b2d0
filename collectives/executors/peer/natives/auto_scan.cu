// SPDX-License-Identifier: Apache-2.0
// Native `auto_scan`: the scan of the peer executor that is fastest for this state on this machine.
//
//   prepare: time a few rounds of all_scan_fused and of two_shot_fused; keep the faster one
//   run:     that one
//
// These stand for their interpreted forms too, all_scan and two_shot: the same packets pass the
// same ports, and the interpreter does nothing that they leave out, so it should never be the
// faster one (docs/decisions/0021).
// A model says where they cross (few bytes and many ranks: slice owners need two hops instead of
// P-1; else the chain moves fewer bytes through a port), but not what a hop costs with this many
// instructions. Rounds of some microseconds are cheaper to time than to predict. Nothing is
// claimed: it is either.
#include "collectives/collective.hpp"
#include "collectives/executors/peer/rounds.cuh"

namespace baton {
namespace {

/// The schedule of the collective `name` for the request in `asked`. Its first buffers are those of
/// `asked`.
Schedule ask(const Schedule& asked, const std::string& name) {
  const Step& step = asked.steps()[0];
  const NativeCall& call = asked.natives()[step.body];
  Schedule schedule(asked.home_rank(), asked.ranks());
  for (const Buffer& buffer : asked.buffers()) {
    if (buffer.role == Role::input) schedule.input(buffer.name, buffer.count);
    if (buffer.role == Role::output) schedule.output(buffer.name, buffer.count, buffer.covered);
    if (buffer.role == Role::scratch) schedule.scratch(buffer.name, buffer.count);
  }
  std::optional<Reversed> reversed;
  if (call.reversed) reversed.emplace(schedule);
  const Slice decay = step.reads[0], state = step.reads[1];
  embed(schedule, name, {{decay, state, state.count / decay.count}, step.writes[0], call.blocks});
  return schedule;
}

std::vector<std::vector<Schedule>> candidates(std::span<const Schedule> asked) {
  std::vector<std::vector<Schedule>> all;
  for (const char* name : {"all_scan_fused", "two_shot_fused"}) {
    auto& schedules = all.emplace_back();
    for (const Schedule& schedule : asked) schedules.push_back(ask(schedule, name));
  }
  return all;
}

const RegisteredPeerNative native{"auto_scan", {.candidates = candidates}};

const Registered registered{{
    .name = "auto_scan",
    .kind = Kind::exclusive_scan,
    .summary = "native: chain or slice owners, whichever is faster here for this state",
    .build =
        [](Schedule& s, const Operands& x) {
          s.native("auto_scan", x.blocks, {x.into}, {x.own.decay, x.own.state});
        },
    .claim = [](const Shape&, const Split&) { return std::nullopt; },
}};

}  // namespace
}  // namespace baton
