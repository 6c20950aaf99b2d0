// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/whole_sequence.hpp"

#include "collectives/collective.hpp"

namespace baton {

const SpMethod& whole_sequence() {
  static const SpMethod whole = [] {
    SpMethod method = find_method("local");
    method.name = "whole";
    method.summary =
        "all-gather of hidden states before the projections of linear layers; every rank runs the whole "
        "sequence, forward only";
    method.sequence = Sequence::cut;  // that of the rest of the model
    method.unsupported = [of_local = method.unsupported](const Layer& layer, int ranks) -> Refusal {
      if (layer.pass != Pass::forward) return "the whole sequence is run forward only";
      if (layer.mode == Mode::compute_only) return "its work is on what the exchange brings";
      return of_local(layer, ranks);
    };
    return method;
  }();
  return whole;
}

void gather_rows(Schedule& schedule, const Slice& rows) {
  const Slice own = rows.block(schedule.rank(), schedule.ranks());
  embed(schedule, "ring_all_gather", {{{}, own, own.count}, rows});
}

}  // namespace baton
