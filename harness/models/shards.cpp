// SPDX-License-Identifier: Apache-2.0
// Sharded weights of a model that has run, at any size: what ranks gathered, and the gradients that
// they added up.
//
//   for the layers whose memory no other layer has taken since, the first two, or the last two of a
//   forward pass alone:
//     runs of every rank's shard:  gathered weights are those that were drawn
//                                  a rank's gradients are the sums over the ranks
#include "harness/models/shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/drawn_numbers.hpp"
#include "harness/models/sampled.hpp"

namespace baton {
namespace {

constexpr std::int64_t run_length = 256;
/// The tolerance of gradients that ranks add up in f32 in another order.
constexpr double tolerance_of_sums = 1e-5;

/// The first element of each compared run within a shard: at both ends and at a drawn place.
std::vector<std::int64_t> runs_of(std::int64_t shard, std::uint64_t seed) {
  const std::int64_t last = std::max<std::int64_t>(0, shard - run_length);
  return {0, static_cast<std::int64_t>(mixed(seed) % static_cast<std::uint64_t>(last + 1)), last};
}

/// The buffer of this name that a step wrote last; empty if none did.
Slice last_written(const Schedule& schedule, const std::string& name) {
  const auto& steps = schedule.steps();
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    for (const Slice& slice : step->writes) {
      const Buffer& buffer = schedule.buffers()[slice.buffer];
      if (buffer.name == name) return {slice.buffer, 0, buffer.count, buffer.dtype};
    }
  return {};
}

/// The sharded weights of one layer.
struct Shards {
  const SampledRun& run;
  int layer;
  std::int64_t whole = run.stack().weight_count(run.stack().shape.layers[layer], run.problem.ranks);
  std::int64_t shard = whole / run.problem.ranks;
  std::int64_t length = std::min(run_length, shard);
  std::vector<std::int64_t> firsts = runs_of(shard, run.problem.seed + layer);

  /// Calls visit(rank that owns the shard, first of the whole layer's elements) for every run.
  template <class Visit>
  void for_runs(const Visit& visit) const {
    for (int owner = 0; owner < run.problem.ranks; ++owner)
      for (const std::int64_t first : firsts) visit(owner, owner * shard + first);
  }
  void compare_weights(Comparison& into) const;
  void compare_gradients(Comparison& into) const;
};

void Shards::compare_weights(Comparison& into) const {
  for (const RankTensors& tensors : run.ranks) {
    const Slice gathered = last_written(tensors.schedule(), layer_buffer("gathered", layer % 2));
    std::vector<float> got;
    std::vector<double> expected;
    for_runs([&](int, std::int64_t first) {
      const std::vector<float> read = tensors.part(gathered.part(first, length));
      got.insert(got.end(), read.begin(), read.end());
      std::vector<float> drawn(length);
      fill_weights(run.problem, layer, first, drawn);
      expected.insert(expected.end(), drawn.begin(), drawn.end());
    });
    note(into, relative_error(got, expected), std::max(1e-12, run.wire_roundoff),
         fmt::format("rank {}, gathered weights of layer {}", tensors.rank(), layer));
  }
}

void Shards::compare_gradients(Comparison& into) const {
  std::vector<double> sums(run.problem.ranks * firsts.size() * length, 0.0);
  for (const RankTensors& tensors : run.ranks) {
    const Slice own = tensors.find(layer_buffer("whole_gradients", layer % 2), whole);
    auto at = sums.begin();
    for_runs([&](int, std::int64_t first) {
      for (const float x : tensors.part(own.part(first, length))) *at++ += x;
    });
  }
  run.team.sum(sums);
  for (const RankTensors& tensors : run.ranks) {
    const Slice own = tensors.schedule().buffer(layer_buffer("d_weights", layer));
    std::vector<float> got;
    std::vector<double> expected;
    auto at = sums.begin();
    for_runs([&](int owner, std::int64_t first) {
      const auto right = at;
      at += length;
      if (owner != tensors.rank()) return;
      const std::vector<float> read = tensors.part(own.part(first - owner * shard, length));
      got.insert(got.end(), read.begin(), read.end());
      expected.insert(expected.end(), right, at);
    });
    note(into, relative_error(got, expected), tolerance_of_sums + run.problem.ranks * run.wire_roundoff,
         fmt::format("rank {}, gradients of the weights of layer {}, summed up over the ranks",
                     tensors.rank(), layer));
  }
}

}  // namespace

Comparison compare_shards(const SampledRun& run) {
  Comparison found;
  if (!run.stack().shards_weights) return found;
  const int count = run.stack().shape.count(), compared = std::min(2, count);
  const int first = run.stack().has_backward ? 0 : count - compared;
  for (int layer = first; layer < first + compared; ++layer) {
    const Shards shards{run, layer};
    shards.compare_weights(found);
    if (run.stack().has_backward) shards.compare_gradients(found);
  }
  return found;
}

}  // namespace baton
