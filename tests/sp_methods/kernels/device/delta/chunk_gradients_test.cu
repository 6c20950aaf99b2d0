// SPDX-License-Identifier: Apache-2.0
// The gradients of chunks under a delta rule (delta/gradients.cuh) against the token recurrence in
// double precision: each chunk by itself, from a drawn state S before it and a drawn gradient D
// behind it, which chunks of a layer would not have in common.
//
//   R_t = v_t - S'^T k_t of the recurrence          Z = dv / beta of the oracle
//   |got - oracle| / |oracle| in the Frobenius norm; memory starts as NaN
//
// Cost: the oracle's, on as many threads as there are problems.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/schedule/slice.hpp"
#include "sp_methods/kernels/device/delta/groups/gradients.cuh"
#include "tests/sp_methods/kernels/device/delta/comparison.cuh"

namespace {

using namespace baton;
using namespace baton::test;
using Doubles = std::vector<double>;

void round_all(std::vector<float>& x) {
  for (float& value : x) value = from_bf16(to_bf16(value));
}

/// The inputs of the kernel but R and Z, tensors of numbers that bf16 holds.
struct ChunkedLayer {
  LayerShape shape;
  std::int64_t chunks;
  DeltaTensors x;
  std::vector<float> states, gradients;  ///< [heads, chunks, d_v, d_k]

  explicit ChunkedLayer(const DeltaProblem& problem)
      : shape(problem.shape), chunks((shape.tokens + device_chunk - 1) / device_chunk), x(draw(problem)) {
    std::mt19937 random(problem.seed + 2000);
    std::normal_distribution<float> normal;
    for (auto* tensor : {&states, &gradients}) {
      tensor->resize(size(shape.heads * chunks * shape.d_v * shape.d_k));
      for (float& value : *tensor) value = normal(random);
    }
    for (auto* tensor : {&x.of.q, &x.of.k, &x.of.v, &x.of.g, &x.of.d_o, &x.beta, &states, &gradients})
      round_all(*tensor);
  }
};

/// R of one head's chunk [tokens, d_v].
Doubles missing_of(const DeltaReferenceInputs& in, const LayerShape& s) {
  Doubles state(in.of.initial_state.begin(), in.of.initial_state.end()), missing;
  const auto d_k = size(s.d_k), d_v = size(s.d_v), gates = size(s.gate_width());
  for (std::size_t t = 0; t < in.beta.size(); ++t)
    for (std::size_t n = 0; n < d_v; ++n) {
      double lack = in.of.v[t * d_v + n];
      double* const row = state.data() + n * d_k;
      for (std::size_t c = 0; c < d_k; ++c) {
        if (gates > 0) row[c] *= std::exp(in.of.g[t * gates + c % gates]);
        lack -= row[c] * in.of.k[t * d_k + c];
      }
      for (std::size_t c = 0; c < d_k; ++c) row[c] += in.beta[t] * lack * in.of.k[t * d_k + c];
      missing.push_back(lack);
    }
  return missing;
}

/// R, Z and all gradients of a layer's chunks.
struct ChunksOracle {
  Results<double> of;
  Doubles dbeta, missing, z;

  explicit ChunksOracle(const ChunkedLayer& layer) {
    for (std::int64_t head = 0; head < layer.shape.heads; ++head) add_head(layer, head);
  }

 private:
  static void append(Doubles& into, const Doubles& from) {
    into.insert(into.end(), from.begin(), from.end());
  }

  void add_head(const ChunkedLayer& layer, std::int64_t head) {
    const LayerShape& s = layer.shape;
    const auto rows = [&](const std::vector<float>& x, std::int64_t width) {
      return head_of(x, head, s.heads, width);
    };
    const DeltaTensors& x = layer.x;
    const Doubles q = rows(x.of.q, s.d_k), k = rows(x.of.k, s.d_k), v = rows(x.of.v, s.d_v);
    const Doubles g = rows(x.of.g, s.gate_width()), beta = rows(x.beta, 1), d_o = rows(x.of.d_o, s.d_v);
    Doubles dq, dk, dv, dg, d_strengths, lacking, before;
    for (std::int64_t chunk = 0; chunk < layer.chunks; ++chunk) {
      LayerShape one = s;
      one.tokens = std::min<std::int64_t>(device_chunk, s.tokens - chunk * device_chunk);
      const auto part = [&](const Doubles& all, std::int64_t width) {
        return std::span(all).subspan(size(chunk * device_chunk * width), size(one.tokens * width));
      };
      const auto state_of = [&](const std::vector<float>& all) {
        const auto first = all.begin() + (head * layer.chunks + chunk) * s.d_v * s.d_k;
        return Doubles(first, first + s.d_v * s.d_k);
      };
      const Doubles state = state_of(layer.states), gradient = state_of(layer.gradients);
      const DeltaReferenceInputs in{
          {part(q, s.d_k), part(k, s.d_k), part(v, s.d_v), part(g, s.gate_width()), state}, part(beta, 1)};
      const auto found = delta_reference_backward(in, part(d_o, s.d_v), gradient, one);
      append(dq, found.of.dq), append(dk, found.of.dk), append(dv, found.of.dv), append(dg, found.of.dg);
      append(d_strengths, found.dbeta), append(lacking, missing_of(in, one));
    }
    for (std::size_t i = 0; i < dv.size(); ++i) before.push_back(dv[i] / beta[i / size(s.d_v)]);
    put_head(of.dq, dq, head, s.heads, s.d_k), put_head(of.dk, dk, head, s.heads, s.d_k);
    put_head(of.dv, dv, head, s.heads, s.d_v), put_head(of.dg, dg, head, s.heads, s.gate_width());
    put_head(dbeta, d_strengths, head, s.heads, 1);
    put_head(missing, lacking, head, s.heads, s.d_v), put_head(z, before, head, s.heads, s.d_v);
  }
};

/// A layer's inputs in device memory.
class LayerOnDevice {
 public:
  LayerOnDevice(const ChunkedLayer& layer, const ChunksOracle& oracle)
      : memory(layer.shape),
        layer_(layer),
        states_(std::ssize(layer.states)),
        gradients_(states_.count()),
        missing_(std::ssize(oracle.missing)),
        z_(missing_.count()) {
    const DeltaTensors& x = layer.x;
    write(memory.of.q, x.of.q), write(memory.of.k, x.of.k), write(memory.of.v, x.of.v);
    write(memory.of.g, x.of.g), write(memory.of.d_o, x.of.d_o), write(memory.beta, x.beta);
    write(states_, layer.states), write(gradients_, layer.gradients);
    write(missing_, {oracle.missing.begin(), oracle.missing.end()});
    write(z_, {oracle.z.begin(), oracle.z.end()});
  }

  /// Runs the kernel on one group of heads after the other.
  void run(int groups) const {
    const LayerShape& s = layer_.shape;
    for (int g = 0; g < groups; ++g) {
      const Work work = group_of(s, g, groups);
      const auto first = work.first_head * layer_.chunks * s.d_v * s.d_k;
      cuda(delta_gradients_of_chunks(
          {}, {.in = memory.inputs(s, 0), .d_o = memory.of.d_o.at(), .out = memory.gradients(s, 0)},
          {states_.at(first), gradients_.at(first), missing_.at(), z_.at()}, {s, work, Dtype::bf16}));
    }
    cuda(cudaDeviceSynchronize());
  }
  void forget_results() const {
    for (const auto* result : {&memory.of.dq, &memory.of.dk, &memory.of.dv, &memory.of.dg, &memory.dbeta})
      forget(*result);
  }

  DeltaLayerMemory memory;

 private:
  const ChunkedLayer& layer_;
  DeviceArray<Bf16> states_, gradients_, missing_, z_;
};

void expect_gradients(const DeviceProblem& problem, const ChunksOracle& oracle) {
  const ChunkedLayer layer(problem.layer);
  const LayerOnDevice device(layer, oracle);
  device.forget_results();
  device.run(problem.groups);
  const Comparison comparison(problem);
  comparison.expect("dq", read(device.memory.of.dq), oracle.of.dq);
  comparison.expect("dk", read(device.memory.of.dk), oracle.of.dk);
  comparison.expect("dv", read(device.memory.of.dv), oracle.of.dv);
  comparison.expect("dg", read(device.memory.of.dg), oracle.of.dg);
  comparison.expect("dbeta", read(device.memory.dbeta), oracle.dbeta);
}

/// All kinds of gates, from weak to strong, and widths; short last chunks, groups of heads; and
/// layers with more chunks than a GPU has multiprocessors.
std::vector<DeviceProblem> chunk_problems() {
  std::vector<DeviceProblem> out;
  for (const GateKind kind : {GateKind::scalar, GateKind::none, GateKind::vector})
    for (const float gate : {0.02F, 0.3F, 8.0F}) {
      if (kind == GateKind::none && gate > 0.02F) continue;
      out.push_back({{{192, 2, 128, 128, 64, kind}, gate, 51}, 1});
      out.push_back({{{201, 3, 128, 64, 64, kind}, gate, 52}, 1, 3});
      out.push_back({{{150, 3, 64, 128, 64, kind}, gate, 53}, 1, 2});
      out.push_back({{{43, 2, 64, 64, 64, kind}, gate, 54}, 1});
    }
  out.push_back({{{100, 2, 128, 128, 64, GateKind::scalar}, 20.0F, 55, true}, 1});
  out.push_back({{{1090, 16, 128, 128, 64, GateKind::scalar}, 0.3F, 56}, 1});
  out.push_back({{{1090, 16, 64, 64, 64, GateKind::scalar}, 0.3F, 57}, 1});
  return out;
}

TEST(DeltaChunkGradients, ChunksAgreeWithTheRecurrence) {
  if (const Refusal lack = lacks_gpus(1)) GTEST_SKIP() << lack.reason();
  if (const Refusal lack = lacks_delta_room({{64, 1, 64, 64, 64, GateKind::none}, {}, Dtype::bf16}))
    GTEST_SKIP() << lack.reason();
  const auto all = chunk_problems();
  std::vector<std::future<ChunksOracle>> oracles;
  for (const DeviceProblem& problem : all)
    oracles.push_back(
        std::async(std::launch::async, [&problem] { return ChunksOracle(ChunkedLayer(problem.layer)); }));
  for (std::size_t i = 0; i < all.size(); ++i) expect_gradients(all[i], oracles[i].get());
}

}  // namespace
