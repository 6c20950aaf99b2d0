// SPDX-License-Identifier: Apache-2.0
// Models as workloads. What is timed is compared with the model in double precision.
#include "harness/models/workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/verify.hpp"
#include "harness/models/part_by_part.hpp"
#include "harness/models/verify.hpp"

namespace baton {
namespace {

/// A text that two shapes share only if they are equal. The binding has all members of a shape, so
/// that none can be forgotten.
std::string key_of(const ModelShape& shape) {
  const auto& [name, width, mlp, vocabulary, chunk, linear, softmax, mlp_form, layers] = shape;
  const auto& [rule, form, heads, qk_heads, d_k, d_v, gate, gate_rank, bound, conv, output_gate,
               output_gate_rank] = linear;
  const auto& [queries, kv_heads, key_width, value_width, is_gated, is_normed, rotated, base, q_rank, kv_rank,
               shared_k] = softmax;
  std::string kinds;
  for (const auto& [attention, has_mlp] : layers) {
    kinds += attention == Attention::linear ? 'l' : 's';
    if (!has_mlp) kinds += '-';
  }
  return fmt::format(
      "{} {} {} {} {} {} {} | {} {} {} {} {} {} {} {} {} {} {} {} | {} {} {} {} {} {} {} {} {} {} {}", name,
      width, mlp, vocabulary, chunk, static_cast<int>(mlp_form), kinds, to_string(rule),
      static_cast<int>(form), heads, qk_heads, d_k, d_v, to_string(gate), gate_rank, bound, conv,
      static_cast<int>(output_gate), output_gate_rank, queries, kv_heads, key_width, value_width, is_gated,
      is_normed, rotated, base, q_rank, kv_rank, shared_k);
}

class ModelWorkload : public Workload {
 public:
  ModelWorkload(Stack stack, double peak_flops, std::int64_t sequence)
      : stack_(std::move(stack)), peak_flops_(peak_flops), sequence_(sequence) {}

  std::string name() const override { return stack_.first_method().name; }
  std::int64_t state_bytes() const override { return state_rows() * stack_.shape.linear.d_v * element_bytes; }
  std::int64_t state_rows() const override { return stack_.shape.linear.heads * stack_.shape.linear.d_k; }
  bool cuts_blocks() const override {
    return !scan().empty() && find_collective(scan()).cuts_blocks && !stack_.is_alone();
  }

  Refusal unsupported(int ranks) const override;
  Schedule build_rank(int rank, const Split& split) const override {
    Stack stack = stack_;
    stack.layer.blocks = split.blocks;
    return baton::build(stack, rank, split.ranks, split.ranks_per_node);
  }
  /// Claims bytes and no hops. The chains of one layer's exchange begin where those of the layer
  /// before end on each rank, so the hops of a model are no sum of its layers'.
  std::optional<Cost> claim(const Split& split) const override {
    const auto bytes = claimed_bytes(stack_, split);
    return bytes ? std::optional(Cost{.sent_bytes = *bytes, .hops = -1}) : std::nullopt;
  }

  void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
            Oracles& oracles) const override {
    write_model(executor, schedules, {stack_, static_cast<int>(schedules.size()), seed},
                shared_work(oracles.team()));
  }
  Comparison compare(const Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                     Oracles& oracles) const override;
  std::shared_ptr<const Workload> sized(int ranks) const override;
  std::shared_ptr<const Workload> reduced(int ranks) const override;

  double payload_bytes(int) const override { return 0; }
  double port_bytes(int) const override { return 0; }
  AxisValues axes() const override;
  WorkloadKind kind() const override { return WorkloadKind::model; }
  Variant variant() const override {
    return scope() == Scope::data_parallel ? Variant::whole
           : scope() == Scope::no_exchange ? Variant::without_exchange
                                           : Variant::published;
  }

 private:
  Scope scope() const {
    if (stack_.first_method().sequence == Sequence::own) return Scope::data_parallel;
    return stack_.layer.mode == Mode::compute_only ? Scope::no_exchange : Scope::full;
  }
  /// The scan that carries states, which may be in place of the method's own; empty without one.
  const std::string& scan() const {
    const std::string& own = stack_.first_method().scan;
    return own.empty() || stack_.layer.scan.empty() ? own : stack_.layer.scan;
  }
  bool is_hybrid() const { return stack_.linear != nullptr && stack_.softmax != nullptr; }
  std::string beside() const;

  Stack stack_;
  double peak_flops_;
  std::int64_t sequence_;  // the tokens of all ranks; 0 if those of a rank are given
};

/// Words for the parts of a model beside its blocks: sharded weights, head, optimizer.
std::string ModelWorkload::beside() const {
  std::string words;
  const auto add = [&](bool is, const char* word) {
    if (is) words += (words.empty() ? "" : ", ") + std::string(word);
  };
  add(stack_.shards_weights, "sharded weights");
  add(stack_.has_head, "head");
  add(stack_.has_optimizer, "optimizer");
  return words;
}

Refusal ModelWorkload::unsupported(int ranks) const {
  if (sequence_ % ranks != 0)
    return fmt::format("{} tokens have no {} equal shares, and models pad none", sequence_, ranks);
  return baton::unsupported(stack_, ranks);
}

std::shared_ptr<const Workload> ModelWorkload::sized(int ranks) const {
  if (sequence_ == 0) return nullptr;
  Stack share = stack_;
  share.tokens = std::max<std::int64_t>(1, sequence_ / ranks);
  return model_workload(share, peak_flops_, sequence_);
}

Comparison ModelWorkload::compare(const Executor& executor, const std::vector<Schedule>& schedules,
                                  std::uint64_t seed, Oracles& oracles) const {
  const ModelProblem problem{stack_, static_cast<int>(schedules.size()), seed};
  if (model_oracle_flop(problem) > most_oracle_flop)
    return compare_sampled(executor, schedules, problem, oracles.team());
  // Methods share what this names: results do not depend on who carries the states.
  const std::string key =
      fmt::format("model {}, {} tokens, {}, {}, {}, {} ranks{}, seed {}", key_of(stack_.shape), stack_.tokens,
                  beside(), to_string(stack_.pass()), to_string(stack_.layer.dtype), problem.ranks,
                  stack_.is_alone() ? " alone" : "", seed);
  const double bytes = 8.0 * problem.ranks * static_cast<double>(stack_.shape.parameters(stack_.has_head));
  const auto oracle = oracles.get<ModelOracle>(key, bytes, [&] { return ModelOracle(problem); });
  return compare_model(executor, schedules, *oracle);
}

/// A model of two layers, or of the first four of a hybrid, as narrow as the method takes.
std::shared_ptr<const Workload> ModelWorkload::reduced(int ranks) const {
  Stack small = stack_;
  small.layer.dtype = Dtype::f32;  // the same text, on a host
  small.layer.segmented = false;
  small.layer.kernels = {};
  ModelShape& s = small.shape;
  s.layers.resize(std::min<std::size_t>(s.layers.size(), is_hybrid() ? 4 : 2), s.layers.front());
  s.width = 32;
  s.mlp = 48;
  s.vocabulary = 64;
  s.chunk = std::min<std::int64_t>(s.chunk, 8);
  LinearLayers& l = s.linear;
  SoftmaxLayers& f = s.softmax;
  l.d_k = std::min<std::int64_t>(l.d_k, 8), f.d_k = std::min<std::int64_t>(f.d_k, 8);
  l.d_v = std::min<std::int64_t>(l.d_v, 12), f.d_v = std::min<std::int64_t>(f.d_v, 12);
  l.gate_rank = std::min<std::int64_t>(l.gate_rank, 4);
  l.output_gate_rank = std::min<std::int64_t>(l.output_gate_rank, 4);
  f.rotated = std::min<std::int64_t>(f.rotated, 4), f.shared_k = std::min<std::int64_t>(f.shared_k, 4);
  f.q_rank = std::min<std::int64_t>(f.q_rank, 8), f.kv_rank = std::min<std::int64_t>(f.kv_rank, 8);
  small.tokens = 2 * (s.chunk + s.chunk / 4);
  const std::int64_t of_linear = l.qk_heads == 0 ? 1 : l.heads / l.qk_heads,
                     of_softmax = f.heads / f.kv_heads;
  const std::int64_t most = std::max(l.heads, f.heads);
  const auto set_heads = [&](std::int64_t shared) {
    l.qk_heads = l.qk_heads == 0 ? 0 : shared;
    l.heads = shared * of_linear;
    f.kv_heads = shared;
    f.heads = shared * of_softmax;
  };
  std::int64_t shared = std::max<std::int64_t>(2, small.layer.groups);
  for (set_heads(shared); baton::unsupported(small, ranks) && shared < most; set_heads(shared)) ++shared;
  return model_workload(small, 0);
}

AxisValues ModelWorkload::axes() const {
  const ModelShape& s = stack_.shape;
  const bool has_linear = stack_.linear != nullptr;
  const LayerShape of = s.share(has_linear ? Attention::linear : Attention::softmax, stack_.tokens);
  const int softmax = s.softmax_layers();
  const bool is_scan_asked_for = !stack_.is_alone() && !stack_.layer.scan.empty() && !scan().empty();
  const std::string layers =
      fmt::format("layers:{}{}", s.count() - softmax, softmax > 0 ? fmt::format("+{}", softmax) : "");
  return {
      {"bench", "model", in_record_alone},
      {"name", name(), in_name},
      {"line", to_string(scope()), in_name},
      {"pass", to_string(stack_.pass()), stack_.has_backward ? in_record_alone : in_all},
      {"mode", stack_.is_alone() ? "compute_only" : "overlapped", in_record_alone},
      {"direction", to_string(stack_.pass()), in_record_alone},
      {"layout", "contiguous", in_record_alone},
      {"scan", stack_.is_alone() ? "" : scan(), is_scan_asked_for ? in_name : in_record_alone,
       is_scan_asked_for ? "scan:" + scan() : ""},
      {"attention", has_linear ? attention_name(Attention::linear, s.linear.rule, s.linear.gate) : "softmax",
       in_contest},
      {"gate", to_string(of.gate), in_record_alone},
      {"gates", "layer", in_record_alone},
      {"dtype", to_string(stack_.layer.dtype), in_record_alone},
      {"flops_per_token", stack_.flops_per_token(0), in_record_alone},
      {"flops_per_pair", stack_.flops_per_token(1) - stack_.flops_per_token(0), in_record_alone},
      {"peak_flops", peak_flops_ > 0 ? AxisValue::Value(peak_flops_) : std::monostate(), in_record_alone},
      {"model", s.name},
      {"layers", s.count(), in_all, layers},
      {"width", s.width},
      {"mlp", s.mlp},
      {"tokens", stack_.tokens, sequence_ > 0 ? in_record_alone : in_all},
      {"sequence", sequence_},
      {"heads", of.heads},
      {"kv_heads", of.key_heads() == of.heads ? 0 : of.key_heads(), in_record_alone},
      {"d_k", of.d_k},
      {"d_v", of.d_v},
      {"chunk", s.chunk},
      {"groups", stack_.layer.groups},
      {"vocabulary", stack_.has_head ? s.vocabulary : 0},
      {"softmax", is_hybrid() ? stack_.softmax->name : std::string()},
      {"beside", beside()}};
}

}  // namespace

const char* to_string(Scope scope) {
  return scope == Scope::data_parallel ? "dp" : scope == Scope::no_exchange ? "split" : "full";
}

std::shared_ptr<const Workload> model_workload(const Stack& stack, double peak_flops, std::int64_t sequence) {
  return std::make_shared<ModelWorkload>(stack, peak_flops, sequence);
}

}  // namespace baton
