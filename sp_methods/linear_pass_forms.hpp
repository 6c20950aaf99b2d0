// SPDX-License-Identifier: Apache-2.0
// The two forms of local work that forward_pass and backward_pass choose between.
#pragma once

#include <memory>

#include "sp_methods/linear_passes.hpp"

namespace baton {

/// Parameters as those of forward_pass and backward_pass.
std::unique_ptr<LinearPass> chunked_forward(Schedule& schedule, const Layer& layer,
                                            const LayerTensors& tensors, const Slice& prefix, bool is_first);
std::unique_ptr<LinearPass> chunked_backward(Schedule& schedule, const Layer& layer,
                                             const LayerTensors& tensors, const Slice& prefix, bool is_first,
                                             bool is_last);
std::unique_ptr<LinearPass> segmented_forward(Schedule& schedule, const Layer& layer,
                                              const LayerTensors& tensors, const Slice& prefix,
                                              bool is_first);
std::unique_ptr<LinearPass> segmented_backward(Schedule& schedule, const Layer& layer,
                                               const LayerTensors& tensors, const Slice& prefix,
                                               bool is_first, bool is_last);

}  // namespace baton
