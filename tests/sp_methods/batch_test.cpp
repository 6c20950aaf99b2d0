// SPDX-License-Identifier: Apache-2.0
// A batch of two sequences is two runs of one, bit for bit, under methods that exchange states,
// blocks, keys or heads.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "collectives/executors/executor.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"

namespace {

using namespace baton;

constexpr int ranks = 2, batch = 2;

using Tensors = std::map<std::string, std::vector<float>>;  // by rank and name

std::string key(int rank, const Buffer& buffer) { return std::to_string(rank) + buffer.name; }

/// The part of a tensor's rows that belongs to one sequence.
std::vector<float> of_sequence(const std::vector<float>& rows, std::int64_t tokens, int sequence) {
  const auto row = static_cast<std::int64_t>(rows.size()) / tokens / batch;
  std::vector<float> own;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto from = rows.begin() + (t * batch + sequence) * row;
    own.insert(own.end(), from, from + row);
  }
  return own;
}

/// The outputs of a layer with these inputs, which are drawn if there are none.
Tensors run(const SpMethod& method, const Layer& layer, Tensors& inputs) {
  const auto schedules = build_all(method, layer, ranks);
  const auto executor = find_executor("local").make(ranks);
  executor->prepare(schedules);
  const LayerInputValues values({.attention = method.attention, .share = layer.share, .ranks = ranks});
  Tensors outputs;
  for (int rank = 0; rank < ranks; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::input || buffer.count == 0) continue;
      std::vector<float>& own = inputs[key(rank, buffer)];
      if (own.empty()) {
        own.resize(buffer.count);
        values.fill(buffer.name, positions_of(method, rank, ranks, layer.share.tokens), 0, own);
      }
      executor->write(rank, schedules[rank].buffer(buffer.name), own);
    }
  executor->run();
  for (int rank = 0; rank < ranks; ++rank)
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output || buffer.count == 0) continue;
      std::vector<float>& own = outputs[key(rank, buffer)];
      own.resize(buffer.count);
      executor->read(own, rank, schedules[rank].buffer(buffer.name));
    }
  return outputs;
}

/// A layer of some sequences with four heads each, those of softmax attention on `kv_heads`.
Layer layer_of(const SpMethod& method, std::int64_t sequences, std::int64_t kv_heads) {
  const bool is_linear = method.attention == Attention::linear;
  LayerShape share{.tokens = 12, .heads = 4 * sequences, .d_k = 8, .d_v = 6, .chunk = 4};
  share.gate = is_linear ? GateKind::vector : GateKind::none;
  share.kv_heads = is_linear ? 0 : kv_heads * sequences;
  share.batch = sequences;
  return {.share = share, .pass = Pass::both};
}

TEST(Batch, OfTwoSequencesIsTwoRunsBitForBit) {
  for (const char* name : {"zeco", "lasp2_zigzag_once", "ring_attention", "ulysses", "ulysses_softmax",
                           "ring_attention_zigzag", "all_gather_kv", "usp"})
    for (const std::int64_t kv_heads : {4, 1}) {
      const SpMethod& method = find_method(name);
      const Layer both = layer_of(method, batch, kv_heads), one = layer_of(method, 1, kv_heads);
      Tensors inputs;
      const Tensors together = run(method, both, inputs);
      for (int sequence = 0; sequence < batch; ++sequence) {
        Tensors own;
        for (const auto& [tensor, rows] : inputs) own[tensor] = of_sequence(rows, 12, sequence);
        for (const auto& [tensor, rows] : run(method, one, own))
          EXPECT_EQ(rows, of_sequence(together.at(tensor), 12, sequence))
              << name << ", " << kv_heads << " heads of keys, sequence " << sequence << ", " << tensor;
      }
    }
}

}  // namespace
