// SPDX-License-Identifier: Apache-2.0
#include "sp_methods/models/kernels/gates.hpp"

#include <cmath>

#include "sp_methods/models/kernels/host/rows.hpp"

namespace baton {

void LogGates::on_host(const Operands<OnHost>& x, const Rows& p) {
  const RowIn bias(x.bias, p.width);
  for (std::int64_t i = 0; i < p.count; ++i) {
    const HostRow z = RowIn(x.z + i * p.width, p.width) + bias;
    RowOut(x.g + i * p.width, p.width) = -p.constant * softplus(-z);
  }
}

void LogGateGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  RowOut d_bias(x.d_bias, p.width);
  d_bias.setZero();
  for (std::int64_t i = 0; i < p.count; ++i) {
    const std::int64_t at = i * p.width;
    RowOut d_z(x.d_z + at, p.width);
    d_z = -p.constant * RowIn(x.d_g + at, p.width) * (RowIn(x.g + at, p.width) / p.constant).expm1();
    d_bias += d_z;
  }
}

void DecayGates::on_host(const Operands<OnHost>& x, const GateRows& p) {
  for (std::int64_t i = 0; i < p.count * p.heads; ++i) {
    const std::int64_t head = i % p.heads, at = i * p.group;
    const HostRow z = RowIn(x.z + at, p.group) + RowIn(x.bias + head * p.group, p.group);
    const float speed = std::exp(x.rate[head]);
    if (p.bound > 0)
      RowOut(x.g + at, p.group) = -p.bound * sigmoid(speed * z);
    else
      RowOut(x.g + at, p.group) = -speed * softplus(z);
  }
}

void DecayGateGradients::on_host(const Operands<OnHost>& x, const GateRows& p) {
  RowOut(x.d_bias, p.width()).setZero();
  RowOut(x.d_rate, p.heads).setZero();
  for (std::int64_t i = 0; i < p.count * p.heads; ++i) {
    const std::int64_t head = i % p.heads, at = i * p.group;
    const HostRow z = RowIn(x.z + at, p.group) + RowIn(x.bias + head * p.group, p.group);
    const RowIn d_g(x.d_g + at, p.group);
    const float speed = std::exp(x.rate[head]);
    const HostRow open = sigmoid(z * (p.bound > 0 ? speed : 1));
    HostRow d_z = -speed * d_g * open;
    if (p.bound > 0) d_z *= p.bound * (1 - open);
    if (x.d_delta != nullptr) d_z += open * RowIn(x.d_delta + at, p.group);
    RowOut(x.d_z + at, p.group) = d_z;
    RowOut(x.d_bias + head * p.group, p.group) += d_z;
    x.d_rate[head] += p.bound > 0 ? (d_z * z).sum() : -speed * (d_g * softplus(z)).sum();
  }
}

void FixedGates::on_host(const Operands<OnHost>& x, const Rows& p) {
  const HostRow heads = HostRow::LinSpaced(p.width, 1, static_cast<float>(p.width));
  const HostRow slopes = (heads * (-8 * std::log(2.0F) / static_cast<float>(p.width))).exp();
  for (std::int64_t i = 0; i < p.count; ++i) RowOut(x.g + i * p.width, p.width) = -p.constant * slopes;
}

void Logistic::on_host(const Operands<OnHost>& x, const Rows& p) {
  const std::int64_t all = p.count * p.width;
  RowOut(x.y, all) = sigmoid(RowIn(x.x, all));
}

void LogisticGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  const std::int64_t all = p.count * p.width;
  const RowIn y(x.y, all);
  RowOut(x.d_x, all) = RowIn(x.d_y, all) * y * (1 - y);
}

void SigmoidGate::on_host(const Operands<OnHost>& x, const Rows& p) {
  const std::int64_t all = p.count * p.width;
  RowOut(x.y, all) = RowIn(x.o, all) * sigmoid(RowIn(x.gate, all));
}

void SigmoidGateGradients::on_host(const Operands<OnHost>& x, const Rows& p) {
  const std::int64_t all = p.count * p.width;
  const HostRow open = sigmoid(RowIn(x.gate, all));
  const RowIn d_y(x.d_y, all);
  RowOut(x.d_gate, all) = d_y * RowIn(x.o, all) * open * (1 - open);
  RowOut(x.d_o, all) = d_y * open;
}

double Rotation::angle(std::int64_t position, std::int64_t i) const {
  return static_cast<double>(position) *
         std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(rotated));
}

void Rotate::on_host(const Operands<OnHost>& x, const Rotation& p) {
  const std::int64_t half = p.rotated / 2, rest = p.width - p.rotated;
  HostRow cosine(half), sine(half);
  for (std::int64_t t = 0; t < p.tokens; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = p.angle(p.positions.at(t), i);
      cosine(i) = static_cast<float>(std::cos(angle));
      sine(i) = static_cast<float>(p.turns_back ? -std::sin(angle) : std::sin(angle));
    }
    for (std::int64_t head = 0; head < p.heads; ++head) {
      const std::int64_t at = (t * p.heads + head) * p.width;
      const HostRow first = RowIn(x.x + at, half), second = RowIn(x.x + at + half, half);
      const HostRow others = RowIn(x.x + at + p.rotated, rest);
      RowOut(x.y + at, half) = first * cosine - second * sine;
      RowOut(x.y + at + half, half) = second * cosine + first * sine;
      RowOut(x.y + at + p.rotated, rest) = others;
    }
  }
}

}  // namespace baton
