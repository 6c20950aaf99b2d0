// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/inputs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "collectives/drawn_numbers.hpp"

namespace baton {
namespace {

/// The most decays of 1/2 in a column of `ranks` decays.
int most_halves(int ranks) { return ranks <= 8 ? 2 : 3; }

/// The key of the random numbers of a rank's decays; `state_key` is that of its state.
std::uint64_t decay_key(std::uint64_t seed, int rank) {
  return key_of(seed, 2 * static_cast<std::uint64_t>(rank));
}
std::uint64_t state_key(std::uint64_t seed, int rank) {
  return key_of(seed, 2 * static_cast<std::uint64_t>(rank) + 1);
}

/// The most ranks whose matrices may double the magnitude of a state.
constexpr int most_doubling_ranks = 20;

int ceil_log2(int ranks) { return std::bit_width(static_cast<unsigned>(std::max(ranks, 1) - 1)); }

int state_bits_for(MapKind map, int ranks) {
  if (map != MapKind::affine) return 24 - most_halves(ranks) - ceil_log2(ranks);
  return ranks <= most_doubling_ranks ? std::min(24 - ranks, 20) : 24 - ceil_log2(ranks);
}

/// 0 .. count-1 in an order that `key` gives.
std::vector<std::int64_t> permutation(std::uint64_t key, std::int64_t count) {
  std::vector<std::int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[mixed(key_of(key, i)) % static_cast<std::uint64_t>(i + 1)]);
  return order;
}

float sign_of(std::uint64_t number) { return mixed(number) >> 63 == 0 ? 1.0F : -1.0F; }

}  // namespace

ExactInputs::ExactInputs(std::uint64_t seed, int ranks, MapKind map)
    : seed_(seed),
      ranks_(std::max(ranks, 1)),
      places_between_resets_(map == MapKind::affine ? 4 : 8),
      ranks_between_halves_(std::max(2, (ranks + most_halves(ranks) - 1) / most_halves(ranks))),
      state_bits_(state_bits_for(map, ranks)) {}

bool ExactInputs::is_reset(int rank, std::int64_t place) const {
  const auto number = static_cast<std::uint64_t>(place);
  return (seed_ + number) % places_between_resets_ == 0 &&
         static_cast<int>(key_of(seed_, number) % ranks_) == rank;
}

void ExactInputs::fill_matrices(int rank, std::span<float> matrices, std::int64_t d) const {
  std::ranges::fill(matrices, 0.0F);
  const std::int64_t heads = static_cast<std::int64_t>(matrices.size()) / (d * d);
  const bool doubles = ranks_ <= most_doubling_ranks && d > 1;
  for (std::int64_t head = 0; head < heads; ++head) {
    if (is_reset(rank, head)) continue;
    const std::uint64_t key = key_of(decay_key(seed_, rank), static_cast<std::uint64_t>(head));
    const auto column = permutation(key, d);
    const std::int64_t shift = doubles ? 1 + static_cast<std::int64_t>(mixed(key) % (d - 1)) : 0;
    for (std::int64_t i = 0; i < d; ++i) {
      float* row = matrices.data() + (head * d + i) * d;
      if (!doubles && key_of(key, 3 * d + i) % (2 * ranks_) == 0) continue;
      row[column[i]] = sign_of(key_of(key, d + i));
      if (doubles) row[column[(i + shift) % d]] = sign_of(key_of(key, 2 * d + i));
    }
  }
}

void ExactInputs::fill_decay(int rank, std::span<float> decay) const {
  // Each row halves at one rank of every run of ranks_between_halves_.
  const std::uint64_t key = mixed(seed_);
  for (std::size_t row = 0; row < decay.size(); ++row) {
    const bool halves = (mixed(key ^ row) + static_cast<std::uint64_t>(rank)) % ranks_between_halves_ == 0;
    decay[row] = is_reset(rank, static_cast<std::int64_t>(row)) ? 0.0f : halves ? 0.5f : 1.0f;
  }
}

void ExactInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = state_key(seed_, rank);
  const int largest = 1 << state_bits_;
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] = static_cast<float>(static_cast<int>(mixed(key ^ i) >> (63 - state_bits_)) - largest);
}

GaussianInputs::GaussianInputs(std::uint64_t seed) : seed_(seed) {}

void GaussianInputs::fill_decay(int rank, std::span<float> decay) const {
  const std::uint64_t key = decay_key(seed_, rank);
  for (std::size_t row = 0; row < decay.size(); ++row)
    decay[row] = 1 / (1 + std::exp(-2 - normal_value(key ^ row)));
}

void GaussianInputs::fill_matrices(int rank, std::span<float> matrices, std::int64_t d) const {
  const std::uint64_t key = decay_key(seed_, rank);
  const float scale = 1 / std::sqrt(static_cast<float>(d));
  for (std::size_t i = 0; i < matrices.size(); ++i) matrices[i] = scale * normal_value(key ^ i);
}

void GaussianInputs::fill_state(int rank, std::span<float> state) const {
  const std::uint64_t key = state_key(seed_, rank);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = normal_value(key ^ i);
}

}  // namespace baton
