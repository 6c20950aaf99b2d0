// SPDX-License-Identifier: Apache-2.0
// Every device body that a model records writes what it says that it writes, and nothing else; and
// all device bodies that there are, are met by this test or by that of layers.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "collectives/executors/cuda/ranks.cuh"
#include "sp_methods/models/stack.hpp"
#include "tests/sp_methods/kernels/device/guards.cuh"

namespace baton::test {
namespace {

/// Adds a hybrid of Mamba-2 with the other choices of `stack`.
void add_mamba(RecordedSteps& steps, Stack stack) {
  stack.shape.linear = {.form = LinearForm::mamba,
                        .heads = 8,
                        .qk_heads = 2,
                        .d_k = 128,
                        .d_v = 64,
                        .gate = GateKind::scalar,
                        .gate_rank = 0,
                        .conv = 4};
  stack.shape.mlp_form = MlpForm::squared_relu;
  steps.add(build(stack, 1, 2), "a hybrid of mamba2", "a hybrid of mamba2");
}

/// Adds hybrids of the delta rule's layers and of softmax layers with all that these may have.
void add_hybrids(RecordedSteps& steps) {
  for (const OutputGate output : {OutputGate::silu, OutputGate::sigmoid}) {
    Stack stack{.linear = &find_method("zeco"), .softmax = &find_method("ring_attention_softmax")};
    stack.shape.layers = {Attention::linear, Attention::softmax};
    stack.shape.linear = {.rule = Rule::delta,
                          .heads = 8,
                          .d_k = 128,
                          .d_v = 128,
                          .gate = output == OutputGate::silu ? GateKind::scalar : GateKind::vector,
                          .conv = 4,
                          .output_gate = output,
                          .output_gate_rank = 16};
    stack.shape.softmax = {.heads = 4,
                           .kv_heads = 2,
                           .d_k = 128,
                           .d_v = 128,
                           .has_output_gate = true,
                           .has_head_norms = true,
                           .rotated = 32};
    stack.layer.dtype = Dtype::bf16;
    stack.layer.segmented = true;
    stack.tokens = 136;
    const std::string name = output == OutputGate::silu ? "a hybrid of gdn" : "a hybrid of kda";
    steps.add(build(stack, 1, 2), name, name);
    if (output == OutputGate::silu) continue;
    stack.shape.linear = {.form = LinearForm::lightning,
                          .heads = 8,
                          .d_k = 128,
                          .d_v = 128,
                          .gate = GateKind::scalar,
                          .gate_rank = 0,
                          .output_gate = output};
    stack.shape.softmax = {.heads = 4,
                           .kv_heads = 4,
                           .d_k = 128,
                           .d_v = 128,
                           .rotated = 32,
                           .q_rank = 64,
                           .kv_rank = 64,
                           .shared_k = 64};
    steps.add(build(stack, 1, 2), "a hybrid of lightning", "a hybrid of lightning");
    add_mamba(steps, stack);
  }
}

/// Models with all that a model may have, of layers of one attention.
RecordedSteps steps_of_models() {
  RecordedSteps steps;
  for (const GateKind gate : {GateKind::vector, GateKind::none})
    for (const Attention attention : {Attention::linear, Attention::softmax})
      for (const std::int64_t tokens : {40, 136}) {
        Stack stack{.linear = &find_method("zeco"), .softmax = &find_method("ring_attention_softmax")};
        stack.shape.layers = {attention, attention};
        stack.shape.linear = {.heads = 2, .d_k = 64, .d_v = 128, .gate = gate};
        stack.shape.softmax = {.heads = 2, .kv_heads = 2, .d_k = 64, .d_v = 128};
        stack.layer.dtype = Dtype::bf16;
        stack.layer.segmented = true;
        stack.tokens = tokens;
        stack.has_head = stack.has_optimizer = true;
        const std::string name = std::string("a model, ") + to_string(attention) + ", " + to_string(gate);
        steps.add(build(stack, 1, 2), name, name);
      }
  add_hybrids(steps);
  return steps;
}

/// All kernels that methods record, whatever their sizes.
RecordedSteps steps_of_methods() {
  RecordedSteps steps;
  for (const SpMethod* method : sp_methods())
    for (const std::int64_t heads : {4, 6}) {
      const LayerShape shape{.tokens = 128, .heads = heads, .d_k = 128, .d_v = 128};
      for (const Layer& layer : variants(*method, {.share = shape, .dtype = Dtype::bf16, .segmented = true}))
        for (const int ranks : {2, 3, 4}) steps.add(*method, layer, ranks);
    }
  return steps;
}

TEST(ModelGuards, EveryBodyWritesNothingBesideItsOperandsOrRefuses) {
  if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  // Numbers of tokens are operands too, so all numbers are 0.
  const RecordedSteps steps = steps_of_models();
  for (const RecordedStep& step : steps.all())
    if (!unsupported_on_device(step.kernel)) {
      ASSERT_EQ(misdeed_on_device(step, 0), "");
    }
}

TEST(ModelGuards, NoDeviceBodyIsLeftOut) {
  std::set<std::string> met = steps_of_methods().kernels();
  met.merge(steps_of_models().kernels());
  std::set<const CudaKernelEntry*> found;
  std::string names;
  for (const std::string& name : met) {
    found.insert(cuda_kernels().find(name));
    names += ' ' + name;
  }
  for (const CudaKernelEntry* entry : cuda_kernels().all())
    EXPECT_EQ(found.count(entry), 1) << "the device body of a kernel that is none of these:" << names;
}

}  // namespace
}  // namespace baton::test
