// SPDX-License-Identifier: Apache-2.0
// Rows of tensors as host bodies of models compute with them.
#pragma once

#include <Eigen/Core>

namespace baton {

using HostRow = Eigen::ArrayXf;
using RowIn = Eigen::Map<const HostRow>;
using RowOut = Eigen::Map<HostRow>;

template <class Numbers>
HostRow sigmoid(const Eigen::ArrayBase<Numbers>& x) {
  return 1 / (1 + (-x).exp());
}

/// log(1 + e^z), which overflows nowhere.
inline HostRow softplus(const HostRow& z) { return z.max(0.0F) + (-z.abs()).exp().log1p(); }

}  // namespace baton
