// SPDX-License-Identifier: Apache-2.0
// Times of the kernels of all contracts that methods and models record, one by one: on a core, or
// on the GPU if the program is the one in bin/gpu. Rates are of the costs that contracts declare.
//
//   kernels_bench [tokens] [heads] [width]      of one rank; 2048 4 128, on a GPU 16384 16 128
//
//   for each method and attention: record the schedule of rank 1 of 4, both passes
//   a kernel's operands are its step's: drawn inputs, and what the steps before made of them
//
// Cost: about a second a row. Results are checked by tests of the kernels.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/drawn_numbers.hpp"
#include "collectives/executors/host/memory.hpp"
#include "harness/micro/step_timer.hpp"
#include "sp_methods/layer_inputs.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {
namespace {

class HostStepTimer : public StepTimer {
 public:
  explicit HostStepTimer(const Schedule& schedule) : schedule_(schedule), memory_(schedule) {}
  void write(const Slice& into, std::span<const float> values) override { memory_.write(into, values); }
  double seconds(const Step& step) override {
    const HostOperands operands = memory_.operands(step);
    const auto start = std::chrono::steady_clock::now();
    run_on_host(schedule_, step, operands);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  const Schedule& schedule_;
  HostMemory memory_;
};

constexpr int rank = 1, ranks = 4;

/// A schedule whose steps are timed.
struct Recording {
  std::string label;  ///< What recorded it; empty for a model, whose kernels have one layer.
  Schedule schedule;
  /// Draws the values of the input called `name`.
  std::function<void(const std::string& name, std::span<float> values)> draw;

  /// The memory in which all steps have run once. It is kept until another recording asks for its
  /// own; null if the device lacks a body.
  StepTimer* timer() const;
};

StepTimer* Recording::timer() const {
  static const Recording* last = nullptr;
  static std::unique_ptr<StepTimer> timer;
  if (std::exchange(last, this) == this) return timer.get();
  timer.reset();
  const auto& on_device = timed_parts().on_device;
  timer = on_device ? on_device(schedule) : std::make_unique<HostStepTimer>(schedule);
  if (timer == nullptr) return nullptr;
  for (const Buffer& buffer : schedule.buffers()) {
    if (buffer.role != Role::input) continue;
    std::vector<float> values(static_cast<std::size_t>(buffer.count));
    draw(buffer.name, values);
    timer->write(schedule.buffer(buffer.name), values);
  }
  for (const Step& step : schedule.steps())
    if (!step.is_message() && step.verb != Verb::native) timer->seconds(step);
  return timer.get();
}

void time_step(benchmark::State& state, const Recording& recording, const Step& step) {
  StepTimer* const timer = recording.timer();
  if (timer == nullptr) return state.SkipWithError("a kernel of this layer has no body here");
  for (auto _ : state) state.SetIterationTime(timer->seconds(step));
  double flops = 0, bytes = 0;
  if (step.verb == Verb::compute) {
    const Kernel& kernel = recording.schedule.kernels()[step.body];
    flops = kernel.flops;
    bytes = kernel.bytes;
  } else {
    flops = step.combine_flops();
    for (const auto* operands : {&step.writes, &step.reads})
      for (const Slice& slice : *operands) bytes += static_cast<double>(slice.bytes());
  }
  state.counters["FLOP/s"] = {flops, benchmark::Counter::kIsIterationInvariantRate};
  state.counters["B/s"] = {bytes, benchmark::Counter::kIsIterationInvariantRate};
}

/// Registers the steps of recordings, each kernel once for each label.
class Steps {
 public:
  void add(std::shared_ptr<const Recording> recording) {
    for (const Step& step : recording->schedule.steps()) {
      if (step.verb != Verb::compute && step.verb != Verb::combine) continue;
      const std::string kernel = step.verb == Verb::compute ? recording->schedule.kernels()[step.body].name
                                 : step.writes.size() == 2  ? "compose"
                                                            : "apply";
      const std::string name = recording->label.empty() ? kernel : kernel + "/" + recording->label;
      if (!known_.insert(name).second) continue;
      known_.insert(kernel);
      benchmark::RegisterBenchmark(
          name.c_str(), [recording, &step](benchmark::State& state) { time_step(state, *recording, step); })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }

 private:
  std::set<std::string> known_;
};

void add_layer(Steps& steps, const SpMethod& method, const Layer& layer) {
  if (method.unsupported && method.unsupported(layer, ranks)) return;
  const LayerShape& share = layer.share;
  const bool is_decay = method.attention == Attention::linear && layer.rule == Rule::decay;
  std::string label = attention_name(method.attention, layer.rule, share.gate);
  if (is_decay) label += std::string("_") + to_string(share.gate);
  if (layer.kernels.softmax == SoftmaxBody::cudnn) label += "_cudnn";
  const LayerInputValues inputs({.attention = method.attention,
                                 .share = share,
                                 .ranks = ranks,
                                 .dtype = layer.dtype,
                                 .rule = layer.rule});
  const Positions positions = positions_of(method, rank, ranks, share.tokens);
  steps.add(std::make_shared<Recording>(
      Recording{label, build(method, layer, rank, ranks),
                [inputs, positions](const std::string& name, std::span<float> values) {
                  inputs.fill(name, positions, 0, values);
                }}));
}

void add_layers(Steps& steps, const SpMethod& method, Layer layer) {
  if (method.attention == Attention::softmax) {
    layer.share.gate = GateKind::none;
    add_layer(steps, method, layer);
    layer.kernels.softmax = SoftmaxBody::cudnn;
    if (timed_parts().on_device && !cudnn_library().lacking()) add_layer(steps, method, layer);
    return;
  }
  for (const Rule rule : method.rules)
    for (const GateKind gate : {GateKind::vector, GateKind::scalar, GateKind::none}) {
      layer.rule = rule;
      layer.share.gate = gate;
      add_layer(steps, method, layer);
    }
}

void add_model(Steps& steps, const StepSizes& sizes) {
  const auto draw = [](const std::string& name, std::span<float> values) {
    const bool are_tokens = name == "ids" || name == "targets";
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = are_tokens ? static_cast<float>(mixed(i) % 32000) : 0.02F * normal_value(i);
  };
  steps.add(std::make_shared<Recording>(Recording{"", timed_parts().model(sizes), draw}));
}

void add_all(const StepSizes& sizes) {
  Steps steps;
  Layer layer{.share = {sizes.tokens, sizes.heads, sizes.width, sizes.width},
              .pass = Pass::both,
              .dtype = sizes.dtype};
  for (const bool segmented : {false, true}) {
    layer.segmented = segmented;
    for (const SpMethod* method : sp_methods())
      if (segmented || sizes.dtype == Dtype::f32) add_layers(steps, *method, layer);
  }
  if (timed_parts().model) add_model(steps, sizes);
}

int run(int count, char** arguments) {
  benchmark::Initialize(&count, arguments);
  const bool is_gpu = static_cast<bool>(timed_parts().on_device);
  const auto argument = [&](int i, std::int64_t otherwise) {
    return i < count ? std::strtoll(arguments[i], nullptr, 10) : otherwise;
  };
  add_all({argument(1, is_gpu ? 16384 : 2048), argument(2, is_gpu ? 16 : 4), argument(3, 128),
           is_gpu ? Dtype::bf16 : Dtype::f32});
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace baton

int main(int count, char** arguments) { return baton::run(count, arguments); }
