// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/kernels/state_space.hpp"

#include "sp_methods/models/kernels/host/rows.hpp"

namespace baton {

void ScaleHeads::on_host(const Operands<OnHost>& x, const StepRows& p) {
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    HostRow scales = RowIn(x.number, p.heads);
    if (x.z != nullptr) scales = softplus(scales + RowIn(x.z + t * p.heads, p.heads));
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t at = (t * p.heads + head) * p.width;
      const HostRow scaled = p.factor * scales(head) * RowIn(x.x + at, p.width);
      RowOut y(x.y + at, p.width);
      y = x.c == nullptr ? scaled : HostRow(scaled + RowIn(x.c + at, p.width));
    }
  }
}

void StepGradients::on_host(const Operands<OnHost>& x, const StepRows& p) {
  RowOut(x.d_skip, p.heads).setZero();
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    const HostRow steps = p.factor * softplus(RowIn(x.z + t * p.heads, p.heads) + RowIn(x.bias, p.heads));
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t row = t * p.heads + head, at = row * p.width;
      const RowIn own(x.x + at, p.width), d_v(x.d_v + at, p.width), d_o(x.d_o + at, p.width);
      x.d_delta[row] = p.factor * (d_v * own).sum();
      x.d_skip[head] += (d_o * own).sum();
      RowOut(x.d_x + at, p.width) = steps(head) * d_v + x.skip[head] * d_o;
    }
  }
}

}  // namespace baton
