// SPDX-License-Identifier: Apache-2.0
// Layers as workloads, timed at full size. If the oracle would take too long at that size, fewer
// tokens and heads of the same layer are verified.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/case.hpp"
#include "harness/cases/verify.hpp"
#include "sp_methods/layer_oracle.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {
namespace {

/// The share that is verified: at most about a second of double-precision recurrence per process.
GlaShape verified_share(const Layer& layer, int ranks) {
  const GlaShape& share = layer.share;
  const double work = share.token_rows() * ranks * static_cast<double>(share.d_k * share.d_v);
  if (work <= 2e7) return share;
  GlaShape smaller = share;
  // Two chunks and a short one, an even number.
  smaller.tokens = std::min(share.tokens, 2 * (share.chunk + share.chunk / 4));
  smaller.heads = std::min<std::int64_t>(share.heads, std::max(2, layer.groups));
  return smaller;
}

/// Inputs of the timed rounds, whose results are only checked for finite values: normal values,
/// gates as a layer makes them, and log-sum-exps of scores that are large enough for no weight to
/// overflow.
std::vector<float> timed_input(const std::string& name, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> drawn(65521);  // a prime: rows of tensors do not repeat in step
  for (float& value : drawn) {
    value = normal(random);
    if (name == "g") value = log_sigmoid(value) / 16;
    if (name == "lse") value = 10;
  }
  std::vector<float> values(count);
  for (std::int64_t i = 0; i < count; ++i) values[i] = drawn[i % drawn.size()];
  return values;
}

class OperatorWorkload : public Workload {
 public:
  OperatorWorkload(const SpMethod& method, const Layer& layer, GateDraw gates)
      : method_(method), layer_(layer), gates_(gates), scan_(layer.scan.empty() ? method.scan : layer.scan) {}

  std::string name() const override { return method_.name; }
  std::string variant() const override { return method_.name == "local" ? "" : to_string(layer_.mode); }
  std::string shape_name() const override {
    const GlaShape& s = layer_.share;
    return fmt::format("{}/{}/gates:{}/tokens:{}/heads:{}/d_k:{}/d_v:{}/chunk:{}/groups:{}/{}",
                       to_string(layer_.pass), to_string(s.gate), to_string(gates_), s.tokens, s.heads, s.d_k,
                       s.d_v, s.chunk, layer_.groups, to_string(layer_.dtype));
  }
  std::int64_t state_bytes() const override { return state_rows() * layer_.share.d_v * element_bytes; }
  std::int64_t state_rows() const override { return layer_.share.heads * layer_.share.d_k; }
  bool cuts_blocks() const override {
    return !scan_.empty() && find_collective(scan_).cuts_blocks && !is_alone();
  }

  Refusal unsupported(int ranks) const override {
    return method_.unsupported ? method_.unsupported(layer_, ranks) : Refusal{};
  }
  Schedule build_rank(int rank, const Split& split) const override {
    Layer layer = layer_;
    layer.blocks = split.blocks;
    return baton::build(method_, layer, rank, split.ranks, split.ranks_a_node);
  }
  std::optional<Cost> claim(const Split& split) const override {
    Layer layer = layer_;
    layer.blocks = split.blocks;
    return method_.claim(layer, split);
  }

  std::shared_ptr<const Workload> affordable(int ranks) const override;
  Comparison verify(Executor& executor, const std::vector<Schedule>& schedules,
                    std::uint64_t seed) const override;
  void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed) const override;
  Comparison verify_timed(const Executor& executor, const std::vector<Schedule>& schedules,
                          std::uint64_t seed) const override;

  std::shared_ptr<const Workload> reduced() const override {
    Layer small = layer_;
    small.dtype = Dtype::f32;  // the same text, on a host
    small.share.heads = std::max<std::int64_t>(2, layer_.groups);
    small.share.d_k = std::min<std::int64_t>(small.share.d_k, 16);
    small.share.d_v = std::min<std::int64_t>(small.share.d_v, 16);
    small.share.chunk = std::min<std::int64_t>(small.share.chunk, 8);
    // Two chunks and a short one, an even number.
    small.share.tokens = 2 * (small.share.chunk + small.share.chunk / 4);
    return operator_workload(method_, small, gates_);
  }

  double payload_bytes(int) const override { return 0; }
  double port_bytes(int) const override { return 0; }
  Description describe() const override;

 private:
  bool is_alone() const { return layer_.mode == Mode::compute_only || method_.name == "local"; }

  const SpMethod& method_;
  Layer layer_;
  GateDraw gates_;
  std::string scan_;
};

std::shared_ptr<const Workload> OperatorWorkload::affordable(int ranks) const {
  Layer smaller = layer_;
  smaller.share = verified_share(layer_, ranks);
  if (smaller.share.tokens == layer_.share.tokens && smaller.share.heads == layer_.share.heads)
    return nullptr;
  return operator_workload(method_, smaller, gates_);
}

Comparison OperatorWorkload::verify(Executor& executor, const std::vector<Schedule>& schedules,
                                    std::uint64_t seed) const {
  const GlaShape& share = layer_.share;
  const int ranks = static_cast<int>(schedules.size());
  const LayerOracle oracle(method_.attention, share, ranks, is_alone(), gates_, seed, layer_.dtype);
  write_layer(executor, schedules, method_, oracle, share.tokens);
  executor.synchronise();
  executor.run();
  return compare_layer(executor, schedules, method_, oracle, share.tokens);
}

void OperatorWorkload::load(Executor& executor, const std::vector<Schedule>& schedules,
                            std::uint64_t seed) const {
  for (int rank : executor.local_ranks())
    for (const Buffer& buffer : schedules[rank].buffers()) {
      const Slice slice = schedules[rank].buffer(buffer.name);
      if (buffer.role == Role::input)
        executor.write(rank, slice, timed_input(buffer.name, buffer.count, seed + rank));
      if (buffer.role == Role::output) executor.write(rank, slice, std::vector<float>(buffer.count, NAN));
    }
}

Comparison OperatorWorkload::verify_timed(const Executor& executor, const std::vector<Schedule>& schedules,
                                          std::uint64_t) const {
  Comparison result;
  for (int rank : executor.local_ranks())
    for (const Buffer& buffer : schedules[rank].buffers()) {
      if (buffer.role != Role::output) continue;
      std::vector<float> got(buffer.count);
      executor.read(got, rank, schedules[rank].buffer(buffer.name));
      if (std::all_of(got.begin(), got.end(), [](float value) { return std::isfinite(value); })) continue;
      if (result.wrong++ == 0) result.first = fmt::format("rank {}, {}: not finite", rank, buffer.name);
    }
  return result;
}

Description OperatorWorkload::describe() const {
  const GlaShape& share = layer_.share;
  const auto direction = layer_.pass == Pass::forward    ? "forward"
                         : layer_.pass == Pass::backward ? "reverse"
                                                         : "both";
  const Mode mode = is_alone() ? Mode::compute_only : layer_.mode;
  return {.bench = "operator",
          .name = method_.name,
          .kind = {},
          .direction = direction,
          .heads = share.heads,
          .d_k = share.d_k,
          .d_v = share.d_v,
          .tokens = share.tokens,
          .layer = Description::LayerPart{.pass = to_string(layer_.pass),
                                          .mode = to_string(mode),
                                          .gate = to_string(share.gate),
                                          .gates = to_string(gates_),
                                          .dtype = to_string(layer_.dtype),
                                          .scan = is_alone() ? "" : scan_,
                                          .chunk = share.chunk,
                                          .groups = layer_.groups}};
}

}  // namespace

std::shared_ptr<const Workload> operator_workload(const SpMethod& method, const Layer& layer,
                                                  GateDraw gates) {
  return std::make_shared<OperatorWorkload>(method, layer, gates);
}

}  // namespace baton
