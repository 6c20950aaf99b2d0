// SPDX-License-Identifier: Apache-2.0
// The compute steps that registered methods record, those of tomorrow included, each kind of call
// once: for tests that run bodies one by one, in memory of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "sp_methods/kernels/gla_segments.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton::test {

/// One slice of a step.
struct RecordedOperand {
  std::int64_t count = 0;
  Dtype dtype = Dtype::f32;
  int written = -1;  ///< Of a slice that is read: the number of the written one that it is, or -1.

  std::int64_t bytes() const { return count * bytes_of(dtype); }
};

/// A compute step without its schedule.
struct RecordedStep {
  std::string name;  ///< The kernel, and the layer that recorded it.
  Kernel kernel;
  std::vector<RecordedOperand> writes, reads;
};

/// Steps of schedules, each kind of call once.
class RecordedSteps {
 public:
  /// Adds the compute steps of a schedule. `layer` says what recorded them; calls of layers of one
  /// `kind` with the same cost and operands are one.
  void add(const Schedule& schedule, const std::string& layer, const std::string& kind) {
    for (const Step& step : schedule.steps()) {
      if (step.verb != Verb::compute) continue;
      RecordedStep recorded{"", schedule.kernels()[step.body], {}, {}};
      for (const Slice& slice : step.writes) recorded.writes.push_back({slice.count, slice.dtype});
      for (const Slice& slice : step.reads) {
        const auto same = std::find(step.writes.begin(), step.writes.end(), slice);
        const bool is_written = same != step.writes.end() && slice.count > 0;
        recorded.reads.push_back(
            {slice.count, slice.dtype, is_written ? static_cast<int>(same - step.writes.begin()) : -1});
      }
      if (!known_.insert(signature(recorded) + kind).second) continue;
      recorded.name = recorded.kernel.name + " of " + layer;
      all_.push_back(std::move(recorded));
    }
  }

  /// Adds the steps of all ranks of a method, unless the method refuses the layer.
  void add(const SpMethod& method, const Layer& layer, int ranks) {
    if (method.unsupported && method.unsupported(layer, ranks)) return;
    const LayerShape& s = layer.share;
    std::ostringstream name, kind;
    kind << ", chunk " << s.chunk << (s.packed || !layer.starts.empty() ? ", packed" : "")
         << (layer.segmented ? ", segmented" : "") << ", " << to_string(s.gate);
    if (s.conv > 0) kind << ", convolution under " << to_string(layer.rule);
    if (s.qk_heads > 0) kind << ", " << s.qk_heads << " heads of q and k";
    if (layer.states != States::none) kind << ", states " << to_string(layer.states);
    if (layer.mask.kind == MaskKind::full) kind << ", full mask";
    name << method.name << ", " << ranks << " ranks, " << to_string(layer.pass) << ", "
         << attention_name(method.attention, layer.rule, s.gate) << ", " << s.tokens << " tokens, " << s.heads
         << " heads, " << s.key_heads() << " of keys, d_k " << s.d_k << ", d_v " << s.d_v << ", "
         << layer.groups << " groups" << kind.str();
    for (int rank = 0; rank < ranks; ++rank) add(build(method, layer, rank, ranks), name.str(), kind.str());
  }

  const std::vector<RecordedStep>& all() const { return all_; }
  std::set<std::string> kernels() const {
    std::set<std::string> names;
    for (const RecordedStep& step : all_) names.insert(step.kernel.name);
    return names;
  }

 private:
  static std::string signature(const RecordedStep& step) {
    std::ostringstream text;
    text << step.kernel.name << ' ' << step.kernel.flops << ' ' << step.kernel.bytes;
    for (const auto* operands : {&step.writes, &step.reads})
      for (const RecordedOperand& one : *operands)
        text << ' ' << one.count << to_string(one.dtype) << one.written;
    if (const auto* chunks = std::any_cast<Chunks>(&step.kernel.parameters))
      text << ' ' << chunks->work.first_head;
    if (const auto* cut = std::any_cast<Segments>(&step.kernel.parameters))
      text << ' ' << cut->work.first_head;
    return text.str();
  }

  std::set<std::string> known_;
  std::vector<RecordedStep> all_;
};

/// The layers of a method that have the sizes and the type of `like`: every rule and gate that it
/// knows, one head group and two, both passes together and the backward pass alone; and each of
/// these with a convolution, with half as many heads of q and k, with states and with a full mask
/// where the method takes them.
inline std::vector<Layer> variants(const SpMethod& method, const Layer& like) {
  std::vector<Layer> all;
  for (const Rule rule : method.rules)
    for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none})
      for (const int groups : {1, 2})
        for (const Pass pass : {Pass::both, Pass::backward}) {
          if (method.attention == Attention::softmax && gate != GateKind::none) continue;
          Layer& layer = all.emplace_back(like);
          layer.rule = rule;
          layer.share.gate = gate;
          layer.groups = groups;
          layer.pass = pass;
        }
  const std::vector<Layer> plain = all;
  for (const Layer& layer : plain) {
    if (method.convolves) all.emplace_back(layer).share.conv = 4;
    if (method.groups_heads && like.share.heads % 2 == 0)
      all.emplace_back(layer).share.qk_heads = like.share.heads / 2;
    if (method.has_states) all.emplace_back(layer).states = States::both;
    if (method.attention == Attention::softmax) all.emplace_back(layer).mask.kind = MaskKind::full;
  }
  return all;
}

}  // namespace baton::test
