// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/kernels/key_parts.hpp"

#include "sp_methods/models/kernels/host/rows.hpp"

namespace baton {

void JoinKeys::on_host(const Operands<OnHost>& x, const KeyParts& p) {
  for (std::int64_t row = 0; row < p.tokens * p.heads; ++row) {
    RowOut k(x.k + row * p.width(), p.width());
    k << RowIn(x.shared + row / p.heads * p.shared, p.shared), RowIn(x.own + row * p.own, p.own);
  }
}

void JoinKeyGradients::on_host(const Operands<OnHost>& x, const KeyParts& p) {
  RowOut(x.d_shared, p.tokens * p.shared).setZero();
  for (std::int64_t row = 0; row < p.tokens * p.heads; ++row) {
    const RowIn d_k(x.d_k + row * p.width(), p.width());
    RowOut(x.d_shared + row / p.heads * p.shared, p.shared) += d_k.head(p.shared);
    RowOut(x.d_own + row * p.own, p.own) = d_k.tail(p.own);
  }
}

}  // namespace baton
