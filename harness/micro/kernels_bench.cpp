// SPDX-License-Identifier: Apache-2.0
// One core's rates: Eigen's own product at 64 x 128 x 128, and the kernel paths at d = 128, chunk
// 64.
//
//   eigen_product:  C = A B over 64 independent products
//   forward:        chunk_states, intra_output, inter_output with a prefix
//   backward:       chunk_state_gradients, intra_gradients, inter_gradients with prefix and suffix
//   delta:          delta_map, delta_output, delta_correction, delta_state_gradients and
//                   delta_gradients
//   rate = sum of the kernels' flops / time
//
// Cost: under a second a row. What must hold: forward at least half of eigen_product.
#include <benchmark/benchmark.h>

#include <cmath>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "sp_methods/kernels/delta.hpp"
#include "sp_methods/kernels/gla_chunks.hpp"
#include "sp_methods/kernels/host/tiles.hpp"
#include "sp_methods/kernels/softmax.hpp"

namespace baton {
namespace {

std::vector<float> normal(std::int64_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> draw;
  std::vector<float> out(static_cast<std::size_t>(count));
  for (float& x : out) x = draw(random);
  return out;
}

std::vector<float> gates(std::int64_t count, float strength) {
  auto out = normal(count);
  for (float& x : out) x = strength * log_sigmoid(x);
  return out;
}

void report(benchmark::State& state, double flops) {
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void eigen_product(benchmark::State& state) {
  const Index count = 64, m = 64, n = 128, k = 128;
  const auto a = normal(count * m * k), b = normal(count * k * n);
  auto c = normal(count * m * n);
  for (auto _ : state) {
    for (Index i = 0; i < count; ++i) {
      matrix_at(c.data(), i, m, n).noalias() = matrix_at(a.data(), i, m, k) * matrix_at(b.data(), i, k, n);
    }
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * static_cast<double>(count * m * n * k));
}

/// The tensors of one rank with the paper's head size.
struct Layer {
  Layer(GateKind kind, float strength)
      : shape{2048, 4, 128, 128, 64, kind},
        q(normal(shape.tokens * shape.heads * shape.d_k)),
        k(normal(shape.tokens * shape.heads * shape.d_k)),
        v(normal(shape.tokens * shape.heads * shape.d_v)),
        d_o(normal(shape.tokens * shape.heads * shape.d_v)),
        g(gates(shape.tokens * shape.heads * shape.gate_width(), strength)),
        incoming(normal(shape.heads * shape.d_k * shape.d_v)) {}

  GlaInputs inputs() const { return {q.data(), k.data(), v.data(), g.empty() ? nullptr : g.data()}; }

  LayerShape shape;
  std::vector<float> q, k, v, d_o, g, incoming;
};

struct StateRoom {
  explicit StateRoom(const LayerShape& s)
      : states(normal(s.heads * s.chunks() * s.d_k * s.d_v)),
        decays(normal(s.heads * s.chunks() * s.d_k)),
        map_decay(normal(s.heads * s.d_k)),
        map_state(normal(s.heads * s.d_k * s.d_v)) {}
  ChunkStates::Operands<OnHost> states_of(const Layer& layer) {
    return {layer.inputs(), states.data(), decays.data(), map_decay.data(), map_state.data()};
  }
  ChunkStateGradients::Operands<OnHost> gradients_of(const Layer& layer) {
    return {layer.inputs(), layer.d_o.data(), states.data(),
            decays.data(),  map_decay.data(), map_state.data()};
  }
  ChunkEdges<OnHost> edges(const Layer& layer) const {
    return {states.data(), decays.data(), layer.incoming.data()};
  }
  std::vector<float> states, decays, map_decay, map_state;
};

/// Times part number `part` of `parts`, from 1, or all of them in order if it is 0.
template <class... Parts>
void time_parts(benchmark::State& state, int part, const Parts&... parts) {
  for (auto _ : state) {
    int number = 0;
    const auto run = [&](const auto& body) {
      if (++number == part || part == 0) body();
    };
    (run(parts), ...);
    benchmark::ClobberMemory();
  }
}

/// Times the forward kernels. Arguments: the gate strength in thousandths, then the part: 0 all, 1
/// states, 2 intra, 3 inter.
void forward(benchmark::State& state, GateKind kind) {
  const Layer layer(kind, static_cast<float>(state.range(0)) * 1e-3F);
  const int part = static_cast<int>(state.range(1));
  const Chunks p{layer.shape};
  StateRoom room(layer.shape);
  auto o = normal(layer.shape.tokens * layer.shape.heads * layer.shape.d_v);
  ChunkStates::on_host(room.states_of(layer), p);
  time_parts(
      state, part, [&] { ChunkStates::on_host(room.states_of(layer), p); },
      [&] {
        IntraOutput::on_host({layer.inputs(), o.data()}, p);
      },
      [&] {
        InterOutput::on_host({layer.inputs(), room.edges(layer), o.data()}, p);
      });
  const double flops[] = {ChunkStates::flops(p), IntraOutput::flops(p), InterOutput::flops(p)};
  report(state, part == 0 ? flops[0] + flops[1] + flops[2] : flops[part - 1]);
}

/// Times the backward kernels. Arguments: the gate strength in thousandths, then the part: 0 all, 1
/// state gradients, 2 intra, 3 inter.
void backward(benchmark::State& state, GateKind kind) {
  const Layer layer(kind, static_cast<float>(state.range(0)) * 1e-3F);
  const int part = static_cast<int>(state.range(1));
  const Chunks p{layer.shape};
  StateRoom before(layer.shape), after(layer.shape);
  auto dq = layer.q, dk = layer.k, dv = layer.v, dg = layer.g;
  const GlaGradients out{dq.data(), dk.data(), dv.data(), dg.data()};
  const float* d_o = layer.d_o.data();
  ChunkStates::on_host(before.states_of(layer), p);
  ChunkStateGradients::on_host(after.gradients_of(layer), p);
  time_parts(
      state, part, [&] { ChunkStateGradients::on_host(after.gradients_of(layer), p); },
      [&] {
        IntraGradients::on_host({layer.inputs(), d_o, out}, p);
      },
      [&] {
        InterGradients::on_host({layer.inputs(), d_o, before.edges(layer), after.edges(layer), out}, p);
      });
  const double flops[] = {ChunkStateGradients::flops(p), IntraGradients::flops(p), InterGradients::flops(p)};
  report(state, part == 0 ? flops[0] + flops[1] + flops[2] : flops[part - 1]);
}

/// Times the kernels of a delta rule. Arguments: the gate strength in thousandths, then the part: 0
/// all, 1 map, 2 output, 3 correction, 4 state gradients, 5 gradients.
void delta(benchmark::State& state, GateKind kind) {
  const Layer layer(kind, static_cast<float>(state.range(0)) * 1e-3F);
  const int part = static_cast<int>(state.range(1));
  const Chunks p{layer.shape};
  auto k = layer.k;  // of length about one
  for (float& x : k) x /= std::sqrt(static_cast<float>(layer.shape.d_k));
  const std::vector<float> beta(static_cast<std::size_t>(layer.shape.tokens * layer.shape.heads), 0.5F);
  GlaInputs of = layer.inputs();
  of.k = k.data();
  const DeltaInputs<OnHost> in{of, beta.data()};
  const float *d_o = layer.d_o.data(), *incoming = layer.incoming.data();
  auto o = layer.v, dq = layer.q, dk = layer.k, dv = layer.v, dg = layer.g, dbeta = beta;
  auto matrix = layer.incoming, map_state = layer.incoming;
  const DeltaGradientsOut<OnHost> out{{dq.data(), dk.data(), dv.data(), dg.data()}, dbeta.data()};
  time_parts(
      state, part,
      [&] {
        DeltaMap::on_host({in, matrix.data(), map_state.data()}, p);
      },
      [&] {
        DeltaOutput::on_host({in, incoming, o.data()}, p);
      },
      [&] {
        DeltaCorrection::on_host({in, dq.data()}, p);
      },
      [&] {
        DeltaStateGradients::on_host({in, d_o, map_state.data()}, p);
      },
      [&] {
        DeltaGradients::on_host({in, d_o, incoming, incoming, out}, p);
      });
  const double flops[] = {DeltaMap::flops(p), DeltaOutput::flops(p), DeltaCorrection::flops(p),
                          DeltaStateGradients::flops(p), DeltaGradients::flops(p)};
  report(state, part == 0 ? std::accumulate(std::begin(flops), std::end(flops), 0.0) : flops[part - 1]);
}

void softmax(benchmark::State& state) {
  const SoftmaxShape s{
      1024, 1024, 2, 128, 128, contiguous_positions(state.range(0), 1024), contiguous_positions(0, 1024)};
  const auto q = normal(1024 * 2 * 128), k = normal(1024 * 2 * 128), v = normal(1024 * 2 * 128);
  auto out = normal(1024 * 2 * 128), lse = normal(1024 * 2);
  for (auto _ : state)
    SoftmaxBlock::on_host({.in = {q.data(), k.data(), v.data()}, .out = out.data(), .lse = lse.data()}, s);
  report(state, SoftmaxBlock::flops(s));
}

const std::vector<std::vector<std::int64_t>> gentle_parts{{62}, {0, 1, 2, 3}};

BENCHMARK(eigen_product);
BENCHMARK_CAPTURE(forward, vector, GateKind::vector)->ArgsProduct(gentle_parts)->Args({8000, 0});
BENCHMARK_CAPTURE(forward, scalar, GateKind::scalar)->ArgsProduct({{62}, {0}});
BENCHMARK_CAPTURE(forward, none, GateKind::none)->ArgsProduct({{62}, {0}});
BENCHMARK_CAPTURE(backward, vector, GateKind::vector)->ArgsProduct(gentle_parts)->Args({8000, 0});
BENCHMARK_CAPTURE(backward, scalar, GateKind::scalar)->ArgsProduct({{62}, {0}});
BENCHMARK_CAPTURE(backward, none, GateKind::none)->ArgsProduct({{62}, {0}});
BENCHMARK_CAPTURE(delta, vector, GateKind::vector)->ArgsProduct({{62}, {0, 1, 2, 3, 4, 5}})->Args({8000, 0});
BENCHMARK_CAPTURE(delta, scalar, GateKind::scalar)->ArgsProduct({{62}, {0}});
BENCHMARK_CAPTURE(delta, none, GateKind::none)->ArgsProduct({{62}, {0}});
BENCHMARK(softmax)->Arg(0)->Arg(1);

}  // namespace
}  // namespace baton
