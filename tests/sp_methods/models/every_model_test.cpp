// SPDX-License-Identifier: Apache-2.0
// Layers of width 128 against the model in double precision over all tokens: outputs and all
// gradients, or outputs alone, under every registered method that keeps contiguous tokens, those of
// tomorrow included, and under `whole`; and the same rounds part by part.
//
//   every_model_test local|mpi|nccl|peer [GoogleTest's flags]
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/schedule/check.hpp"
#include "harness/cases/case.hpp"
#include "harness/models/part_by_part.hpp"
#include "harness/models/verify.hpp"
#include "sp_methods/models/stack.hpp"
#include "tests/launched_tests.hpp"

namespace {

using namespace baton;

struct Problem {
  std::string label;
  Stack stack;
  int ranks;

  std::string name() const {
    return fmt::format("{}/{}/ranks:{}/{}", stack.first_method().name, label, ranks,
                       to_string(stack.layer.mode));
  }
};

/// The oracle of a model, which methods and modes share: it knows of them only whether ranks are
/// alone.
const ModelOracle& oracle_of(const Problem& problem, std::uint64_t seed) {
  static std::map<std::tuple<std::string, Attention, bool, int, std::uint64_t>, ModelOracle> solved;
  const auto& [label, stack, ranks] = problem;
  return solved
      .try_emplace({label, stack.shape.layers[0], stack.is_alone(), ranks, seed},
                   ModelProblem{stack, ranks, seed})
      .first->second;
}

/// Runs twice, each time with inputs of its own, and compares.
class EveryModel : public testing::Test {
 public:
  EveryModel(ExecutorsUnderTest& executors, Problem problem)
      : executors_(executors), problem_(std::move(problem)) {}

  void TestBody() override {
    const auto& [label, stack, ranks] = problem_;
    if (!executors_.have(ranks)) GTEST_SKIP() << "too few ranks were launched";
    const Team& team = executors_.team(ranks);
    if (!team.is_member()) return;
    if (const Refusal refusal = unsupported(stack, ranks)) GTEST_SKIP() << refusal.reason();
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < ranks; ++rank) schedules.push_back(build(stack, rank, ranks));
    ASSERT_NO_THROW(check(stack.first_method().name, schedules));
    Executor& executor = executors_.on(ranks);
    if (const Refusal refusal = executor.unsupported(schedules)) GTEST_SKIP() << refusal.reason();
    executor.prepare(schedules);
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      const ModelOracle& oracle = oracle_of(problem_, seed);
      write_model(executor, schedules, {stack, ranks, seed});
      executor.synchronise();
      executor.run();
      const Comparison found = compare_model(executor, schedules, oracle);
      EXPECT_EQ(team.sum(found.wrong), 0) << team.first(found.first);
      // The way of models that are too large for the oracle has no objection either.
      const Comparison parts = compare_sampled(executor, schedules, {stack, ranks, seed}, team);
      EXPECT_EQ(team.sum(parts.wrong), 0) << team.first(parts.first);
    }
  }

 private:
  ExecutorsUnderTest& executors_;
  Problem problem_;
};

Stack stack_of(const SpMethod& method, Mode mode) {
  Stack stack;
  stack.shape.chunk = 16;
  stack.tokens = 40;  // two chunks and a short one
  stack.layer.mode = mode;
  stack.layer.blocks = 3;
  if (method.attention == Attention::linear) {
    stack.linear = &method;
  } else {
    stack.softmax = &method;
    stack.shape.layers = {Attention::softmax, Attention::softmax};
    stack.shape.softmax.kv_heads = 4;
  }
  return stack;
}

/// The layers of a hybrid.
struct HybridLayers {
  const char* label;
  LinearLayers linear;
  SoftmaxLayers softmax;
};

/// Layers of hybrid models: Gated DeltaNet and gated softmax as in Qwen3-Next, Kimi's delta
/// attention and latent keys, lightning attention and latent queries and keys, and Mamba-2.
std::vector<HybridLayers> hybrid_layers() {
  const LinearLayers gdn{
      .rule = Rule::delta, .heads = 4, .qk_heads = 2, .gate = GateKind::scalar, .gate_rank = 0, .conv = 4};
  const LinearLayers kda{
      .rule = Rule::delta, .heads = 4, .conv = 4, .output_gate = OutputGate::sigmoid, .output_gate_rank = 8};
  const LinearLayers lightning{.form = LinearForm::lightning,
                               .gate = GateKind::scalar,
                               .gate_rank = 0,
                               .output_gate = OutputGate::sigmoid};
  const LinearLayers mamba{.form = LinearForm::mamba,
                           .heads = 4,
                           .qk_heads = 2,
                           .gate = GateKind::scalar,
                           .gate_rank = 0,
                           .conv = 4};
  LinearLayers bounded = kda;
  bounded.gate_bound = 5;
  const SoftmaxLayers gated{.kv_heads = 2, .has_output_gate = true, .has_head_norms = true, .rotated = 4};
  const SoftmaxLayers latent{.kv_rank = 24, .shared_k = 8};
  const SoftmaxLayers turned{
      .has_output_gate = true, .rotated = 8, .q_rank = 32, .kv_rank = 24, .shared_k = 8};
  const SoftmaxLayers unshared{.q_rank = 32, .kv_rank = 24};
  return {{"gdn", gdn, gated},
          {"kda", kda, latent},
          {"lightning", lightning, turned},
          {"bounded kda", bounded, unshared},
          {"mamba2", mamba, {.kv_heads = 2}}};
}

/// Sets the sizes of a hybrid's layers. That of Mamba-2 has a first layer without an MLP, and MLPs
/// without gates.
void set_layers(ModelShape& shape, const HybridLayers& of) {
  const bool is_mamba = of.linear.form == LinearForm::mamba;
  shape.linear = of.linear;
  shape.softmax = of.softmax;
  shape.layers.front().has_mlp = !is_mamba;
  shape.mlp_form = is_mamba ? MlpForm::squared_relu : MlpForm::swiglu;
}

/// Adds models without a backward pass, of layers enough to use the memory of others of their kind.
void add_forward(std::vector<Problem>& all, const Stack& plain, int ranks) {
  Stack forward = plain;
  forward.has_backward = false;
  forward.shape.layers.assign(3, plain.shape.layers.front());
  all.push_back({"forward", forward, ranks});
  if (ranks == 2 || ranks == 3) {
    Stack other = forward;
    other.shards_weights = other.has_head = true;
    all.push_back({"forward, sharded, head", other, ranks});
  }
  if (plain.linear == nullptr || plain.is_alone()) return;
  forward.softmax = &find_method("all_gather_kv");
  forward.shape.layers = {Attention::linear, Attention::softmax, Attention::linear, Attention::softmax,
                          Attention::linear};
  forward.shape.softmax.kv_heads = 2;
  all.push_back({"forward, hybrid", forward, ranks});
}

std::vector<Problem> problems(const std::string& executor) {
  const bool is_local = executor == "local";
  std::vector<Problem> all;
  for (const int ranks : {1, 2, 3, 4}) {
    Stack whole = stack_of(whole_sequence(), Mode::overlapped);
    add_forward(all, whole, ranks);
    whole.has_backward = false;
    for (const HybridLayers& layers : hybrid_layers()) {
      set_layers(whole.shape, layers);
      all.push_back({std::string("forward, two layers of ") + layers.label, whole, ranks});
    }
  }
  for (const SpMethod* method : sp_methods()) {
    if (!keeps_contiguous_tokens(*method)) continue;
    const bool is_linear = method->attention == Attention::linear;
    for (const int ranks : is_local ? std::vector{1, 2, 3, 4, 8} : std::vector{1, 2, 3, 4})
      for (const Mode mode : {Mode::overlapped, Mode::compute_only}) {
        const Stack plain = stack_of(*method, mode);
        add_forward(all, plain, ranks);
        if (is_linear || ranks == 2) all.push_back({"plain", plain, ranks});
        if (ranks != 2 && ranks != 3) continue;
        Stack other = plain;
        other.shards_weights = other.has_optimizer = true;
        all.push_back({"sharded, optimizer", other, ranks});
        other.has_head = true;
        all.push_back({"sharded, optimizer, head", other, ranks});
        if (!is_linear) continue;
        other = plain;
        other.shape.linear.gate = GateKind::none;
        other.shape.linear.output_gate = OutputGate::none;
        all.push_back({"no gates", other, ranks});
        if (method->sequence != Sequence::cut || mode != Mode::overlapped) continue;
        other = plain;
        other.softmax = &find_method("ring_attention_softmax");
        other.shape.layers = {Attention::linear, Attention::softmax, Attention::linear};
        other.shape.softmax.kv_heads = 2;
        all.push_back({"hybrid", other, ranks});
        for (const HybridLayers& layers : hybrid_layers()) {
          set_layers(other.shape, layers);
          all.push_back({std::string("hybrid of ") + layers.label, other, ranks});
          Stack forward = other;
          forward.has_backward = false;
          all.push_back({std::string("forward, hybrid of ") + layers.label, forward, ranks});
        }
      }
  }
  return all;
}

/// What a device has kernels for: bf16, in segments, heads of 64 channels, a short last chunk.
void run_on_gpus(Stack& stack) {
  stack.layer.dtype = Dtype::bf16;
  stack.layer.segmented = true;
  LinearLayers& linear = stack.shape.linear;
  SoftmaxLayers& softmax = stack.shape.softmax;
  linear.heads = softmax.heads = softmax.kv_heads = 2;
  linear.d_k = linear.d_v = softmax.d_k = softmax.d_v = stack.shape.chunk = 64;
  stack.tokens = 200;
}

}  // namespace

int main(int argc, char** argv) {
  return launched_tests(argc, argv, [](ExecutorsUnderTest& executors) {
    for (Problem problem : problems(executors.name())) {
      if (find_backend(executors.name()).tensors == Dtype::bf16) run_on_gpus(problem.stack);
      testing::RegisterTest(
          problem.stack.first_method().name.c_str(), problem.name().c_str(), nullptr, nullptr, __FILE__,
          __LINE__, [&executors, problem]() -> testing::Test* { return new EveryModel(executors, problem); });
    }
  });
}
