// SPDX-License-Identifier: Apache-2.0
// Faults in the steps of a schedule: what a wrong algorithm, kernel or wire would compute.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "sp_methods/kernels/gla_chunks.hpp"
#include "tests/harness/faults/rewrite.hpp"

namespace baton {
namespace {

/// The later operand alone: what came before is forgotten.
void keep_later(const HostOperands& x) {
  std::ranges::copy(x.reads.back(), x.writes.back().begin());
  if (x.writes.size() == 2) std::ranges::copy(x.reads[x.reads.size() - 2], x.writes[0].begin());
}

/// True if a collective of this file name recorded the step.
bool is_of(const Step& step, const std::string& name) { return where(step).starts_with(name + ".cpp"); }

Edit forgets(const std::function<bool(const Schedule&, const Step&)>& applies) {
  return other_combines(applies, [](const Step&) { return keep_later; });
}

Edit loses_at_random() {
  return other_combines([](auto&, auto&) { return true; },
                        [](const Step& step) -> Body {
                          return [right = combine_of(step), random = std::mt19937(7),
                                  rounds = 0](const HostOperands& x) mutable {
                            ++rounds > 1 && random() % 3 == 0 ? keep_later(x) : right(x);
                          };
                        });
}

bool has_matrices(const Step& step) {
  return step.verb == Verb::combine && step.combine.form.kind == MapKind::affine;
}

/// An edit of combines with matrices that executors on GPUs can run too.
template <class Record>
Edit other_products(const Record& record) {
  return [=](Schedule& into, const Schedule&, const Step& step) {
    if (has_matrices(step)) record(into, CombinedMaps(step));
    return has_matrices(step);
  };
}

/// Matrices are left out: identities stand in their place.
void drop_matrix(Schedule& into, const CombinedMaps& maps) {
  into.add(maps.into.state, maps.earlier.state, maps.later.state);
  if (!maps.into.is_state()) into.copy(maps.into.decay, maps.earlier.decay);
}

/// Matrices count as zero, which they nearly are where gates are strong.
void zero_matrix(Schedule& into, const CombinedMaps& maps) {
  into.copy(maps.into.state, maps.later.state);
  if (!maps.into.is_state()) into.copy(maps.into.decay, into.scratch("zeros", maps.into.decay.count));
}

void transpose_matrix(Schedule& into, CombinedMaps maps) {
  maps.later.form.transposed = !maps.later.form.transposed;
  into.combine(maps.into, maps.earlier, maps.later);
}

/// LASP-2's fold takes its matrices from the map of the rank behind.
bool matrix_of_another_rank(Schedule& into, const Schedule& from, const Step& step) {
  if (step.verb != Verb::combine || from.buffers()[step.reads[1].buffer].name != "maps") return false;
  CombinedMaps wrong(step);
  const Slice maps = from.buffer("maps");
  Slice& decay = wrong.later.decay;
  decay.offset = (decay.offset + maps.count / from.ranks()) % maps.count;
  into.combine(wrong.into, wrong.earlier, wrong.later, step.source);
  return true;
}

/// Composed matrices are multiplied the wrong way round: as rows of a state, on each of which the
/// other matrix acts.
void swap_composition(Schedule& into, const CombinedMaps& maps) {
  into.combine(maps.into.only_state(), maps.earlier.only_state(), maps.later);
  if (maps.into.is_state()) return;
  const bool is_transposed = maps.later.form.transposed;
  const Slice left = is_transposed ? maps.later.decay : maps.earlier.decay,
              right = is_transposed ? maps.earlier.decay : maps.later.decay;
  const std::int64_t row = maps.later.row;
  const MapForm form{.kind = MapKind::affine, .share = row, .transposed = true};
  const Slice zeros = into.scratch("zeros", left.count), product = into.scratch("product", left.count);
  into.combine({{}, product, row, form}, {{}, left, row, form}, {right, zeros, row, form});
  into.copy(maps.into.decay, product);
}

/// The step's own rows from 2048 on are combined with a decay of one.
Edit ignores_decays_of_late_rows() {
  return other_combines([](auto&, auto&) { return true; },
                        [](const Step& step) -> Body {
                          const std::int64_t first = step.reads[step.reads.size() - 2].offset;
                          return [first](const HostOperands& x) {
                            HostOperands wrong = x;
                            auto& decay = wrong.reads[x.reads.size() - 2];
                            std::vector<float> ones(decay.begin(), decay.end());
                            for (std::size_t i = 0; i < ones.size(); ++i)
                              if (first + static_cast<std::int64_t>(i) >= 2048) ones[i] = 1;
                            decay = ones;
                            combine_on_host(wrong);
                          };
                        });
}

/// Makes chunk_states see gates that are one and a half times as strong where `applies`.
Edit wrong_gates(
    const std::function<bool(const LayerShape&, std::int64_t token, std::int64_t head)>& applies) {
  return other_kernel("chunk_states", [=](const Kernel& kernel) -> Body {
    const LayerShape shape = parameters_of<ChunkStates>(kernel).shape;
    return [=, body = kernel.body](const HostOperands& x) {
      HostOperands wrong = x;
      std::vector<float> gates(x.reads[3].begin(), x.reads[3].end());
      for (std::size_t i = 0; i < gates.size(); ++i) {
        const auto row = static_cast<std::int64_t>(i) / shape.gate_width();
        if (applies(shape, row / shape.heads, row % shape.heads)) gates[i] *= 1.5F;
      }
      wrong.reads[3] = gates;
      body(wrong);
    };
  });
}

/// Takes its own key from the queries that `applies` selects.
Edit wrong_mask(const std::function<bool(std::int64_t token)>& applies) {
  return other_kernel("intra_output", [=](const Kernel& kernel) -> Body {
    const LayerShape shape = parameters_of<IntraOutput>(kernel).shape;
    return [=, body = kernel.body](const HostOperands& x) {
      body(x);
      for (std::int64_t row = 0; row < shape.tokens * shape.heads; ++row) {
        if (!applies(row / shape.heads)) continue;
        float score = 0;
        for (std::int64_t c = 0; c < shape.d_k; ++c)
          score += x.reads[0][row * shape.d_k + c] * x.reads[1][row * shape.d_k + c];
        for (std::int64_t c = row * shape.d_v; c < (row + 1) * shape.d_v; ++c)
          x.writes[0][c] -= shape.scale() * score * x.reads[2][c];
      }
    };
  });
}

Edit gate_gradients_twice() {
  return other_kernel("inter_gradients", [](const Kernel& kernel) -> Body {
    return [body = kernel.body](const HostOperands& x) {
      body(x);
      for (float& value : x.writes[3]) value *= 2;
    };
  });
}

/// Receives into scratch, from which `deliver` makes the destination; `old` lasts from round to
/// round.
using Deliver = std::function<void(std::span<float> into, std::span<float> old, std::span<const float> now)>;
Edit received(const std::function<Deliver()>& make) {
  return [=](Schedule& into, const Schedule&, const Step& step) {
    if (step.verb != Verb::recv) return false;
    const Slice now = into.scratch("now", step.writes[0].count);
    const Slice old = into.scratch("old", step.writes[0].count);
    into.recv(now, step.peer, step.source);
    into.compute({.name = "deliver",
                  .body = [d = make()](const HostOperands& x) { d(x.writes[0], x.writes[1], x.reads[0]); }},
                 {step.writes[0], old}, {now}, step.source);
    return true;
  };
}

Edit one_round_late() {
  return received([]() -> Deliver {
    return [first = true](std::span<float> into, std::span<float> old, std::span<const float> now) mutable {
      std::ranges::copy(first ? now : std::span<const float>(old), into.begin());
      std::ranges::copy(now, old.begin());
      first = false;
    };
  });
}

Edit never_refreshed() {
  return received([]() -> Deliver {
    return [first = true](std::span<float> into, std::span<float> old, std::span<const float> now) mutable {
      if (first) std::ranges::copy(now, old.begin());
      std::ranges::copy(old, into.begin());
      first = false;
    };
  });
}

Edit rounds_to_bf16() {
  return received([]() -> Deliver {
    return [](std::span<float> into, std::span<float>, std::span<const float> now) {
      std::ranges::transform(now, into.begin(), [](float value) { return from_bf16(to_bf16(value)); });
    };
  });
}

/// Both ends of a message of more than 256 KiB leave out its last element.
bool lose_last(Schedule& into, const Schedule&, const Step& step) {
  if (!step.is_message()) return false;
  const Slice whole = step.verb == Verb::send ? step.reads[0] : step.writes[0];
  if (whole.bytes() <= 256 << 10) return false;
  const Slice rest = whole.part(0, whole.count - 1);
  step.verb == Verb::send ? into.send(step.peer, rest, step.source) : into.recv(rest, step.peer, step.source);
  return true;
}

/// Of more than eight messages from one rank the first two change places.
bool swap_blocks(Schedule& into, const Schedule& from, const Step& step) {
  if (step.verb != Verb::recv || step.sequence > 1) return false;
  std::vector<Slice> blocks;
  for (const Step& other : from.steps())
    if (other.verb == Verb::recv && other.peer == step.peer) blocks.push_back(other.writes[0]);
  if (blocks.size() <= 8 || blocks[0].count != blocks[1].count) return false;
  into.recv(blocks[1 - step.sequence], step.peer, step.source);
  return true;
}

/// LASP-2's fold starts with the map of rank 1.
bool is_first_of_fold(const Schedule& from, const Step& step) {
  const Slice earlier = step.reads[0];
  return is_of(step, "all_gather_scan") && from.home_rank() >= 3 &&
         from.buffers()[earlier.buffer].name == "maps";
}

}  // namespace

const std::map<std::string, Edit>& step_faults() {
  static const std::map<std::string, Edit> all{
      {"chunk_at_192", wrong_gates([](auto&, auto token, auto) { return token / 64 == 3; })},
      {"blocks_swapped", swap_blocks},
      {"combine_left_out", forgets([](auto& from, auto&) { return from.home_rank() >= 2; })},
      {"combines_lost", loses_at_random()},
      {"mask_every_64th", wrong_mask([](auto token) { return token % 64 == 63; })},
      {"mask_at_191", wrong_mask([](auto token) { return token == 191; })},
      {"dg_twice", gate_gradients_twice()},
      {"one_round_late", one_round_late()},
      {"never_refreshed", never_refreshed()},
      {"above_4096_tokens", wrong_gates([](auto&, auto token, auto) { return token >= 4096; })},
      {"heads_from_16", wrong_gates([](auto&, auto, auto head) { return head >= 16; })},
      {"heads_from_2", wrong_gates([](auto&, auto, auto head) { return head >= 2; })},
      {"rows_from_2048", ignores_decays_of_late_rows()},
      {"last_element_lost", lose_last},
      {"wire_of_bf16", rounds_to_bf16()},
      {"rank_0_dropped", forgets(is_first_of_fold)},
      {"nearest_rank_alone", forgets([](auto&, auto& step) { return is_of(step, "all_scan"); })},
      {"matrix_dropped", other_products(drop_matrix)},
      {"matrix_zeroed", other_products(zero_matrix)},
      {"matrix_transposed", other_products(transpose_matrix)},
      {"matrix_of_another_rank", matrix_of_another_rank},
      {"composition_swapped", other_products(swap_composition)},
      {"prefix_ignored", forgets([](auto&, auto&) { return true; })},
  };
  return all;
}

}  // namespace baton
