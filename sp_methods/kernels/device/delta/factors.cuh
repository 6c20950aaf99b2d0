// SPDX-License-Identifier: Apache-2.0
// The records of all chunks under a delta rule (layer.cuh): one block a head and chunk.
//
//   q', k', k" and the decays      scaling.cuh
//   G, A                           products; of strong chunks level by level (pair_levels.cuh)
//   N = (I + G B)^{-1}             in fp32 (inverse.cuh)
//   W = N k',  U^T = v^T N^T       products of bf16 tiles
//
// A gate a head needs no reference: scores of plain queries and keys are multiplied by
// e^{b_i - b_j}, whose exponent is never above zero, and W = (N e^b) k, so only the records have
// scaled rows.
// Cost: tokens (64 (3 d_k + d_v) + 64^2 / 3) flop a head beside zeros; q, k, v, g read and the
// record written once.
// Source: "Parallelizing Linear Transformers with the Delta Rule", arXiv 2406.06484; "Kimi Linear",
// arXiv 2510.26692.
#pragma once

#include "sp_methods/kernels/device/delta/layer.cuh"

namespace baton {

/// Parts of the records that a call needs besides W, k", U and the decays.
struct RecordParts {
  bool queries = true;     ///< q' and A
  bool gradients = false;  ///< T and G
};

/// Writes the records of all chunks.
cudaError_t delta_factors(cudaStream_t stream, char* records, const DeltaInputs<OnDevice>& in,
                          const Chunks& p, RecordParts parts);

}  // namespace baton
