// SPDX-License-Identifier: Apache-2.0
// Linear layers that every rank runs over the whole sequence, as servers do where a layer has no
// exchange of states (rtp-llm #876, sglang #38344 for Kimi's layers):
//
//   n = norm(x) of a rank's own tokens; gather n of all ranks
//   q, k, v, gates = projections of all rows;  o = attention of all tokens, without an exchange
//   go on with o of the rank's own tokens: norms, output gates, the MLP and softmax layers stay cut
//
// Cost: (P - 1) C width numbers that a rank of C tokens sends; projections and attention take as
// long as on one rank.
#pragma once

#include "sp_methods/sp_method.hpp"

namespace baton {

/// The choice `whole` for the linear layers of a model. It has a forward pass alone. It is not
/// registered, since a layer alone has no hidden states to gather.
const SpMethod& whole_sequence();

/// Records the gather of a layer's rows: each rank has set its own block of `rows`.
void gather_rows(Schedule& schedule, const Slice& rows);

}  // namespace baton
