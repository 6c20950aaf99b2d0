// SPDX-License-Identifier: Apache-2.0
// Gated linear attention on one device: its results against the double-precision oracle, then its times.
//
//   gla_device_bench [check] [time] [seed]      both where neither is named
//   nvcc -std=c++20 -O3 -I. -gencode=arch=compute_90a,code=sm_90a micro/gla_device_bench.cu
//        sp_methods/kernels/gla_{segment_states,scan_segments,output,gradients}.cu sp_methods/kernels/gla_reference.cpp
//        -I/usr/include/eigen3
//
// Checked: |got - oracle| / |oracle| of o, dq, dk, dv, dg <= 5e-3 in the Frobenius norm, one rank and ranks in a row, chunks
// that are not full, strong gates. Timed: medians of 50 runs after 5, with inputs that turn and are larger than the L2.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "sp_methods/kernels/gla_device.cuh"
#include "sp_methods/kernels/gla_reference.hpp"

namespace baton {
namespace {

using Bf16 = __nv_bfloat16;

constexpr double tolerance = 5e-3;

void must(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

/// Device memory of `count` elements, every byte 0xff at first: NaN in bf16 and fp32.
template <class Element>
class DeviceArray {
 public:
  explicit DeviceArray(std::int64_t count) : count_(count) {
    must(cudaMalloc(reinterpret_cast<void**>(&data_), size(count) * sizeof(Element) + 16));
    must(cudaMemset(data_, 0xff, size(count) * sizeof(Element)));
  }
  explicit DeviceArray(const std::vector<Element>& host) : DeviceArray(static_cast<std::int64_t>(host.size())) {
    must(cudaMemcpy(data_, host.data(), host.size() * sizeof(Element), cudaMemcpyHostToDevice));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  Element* at(std::int64_t element = 0) const { return data_ + element; }
  std::int64_t count() const { return count_; }
  std::vector<Element> host() const {
    std::vector<Element> out(size(count_));
    must(cudaMemcpy(out.data(), data_, out.size() * sizeof(Element), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  Element* data_ = nullptr;
  std::int64_t count_;
};

/// Where one pass leaves the states of a rank's segments and the rank's map.
struct PassMemory {
  DeviceArray<float> states, gates, totals, map_decay, map_state;

  PassMemory(const GlaShape& s, int segments)
      : states(s.heads * (segments + 1) * s.d_k * s.d_v),
        gates(s.heads * (segments + 1) * s.d_k),
        totals(s.heads * segments * s.d_k),
        map_decay(s.heads * s.d_k),
        map_state(s.heads * s.d_k * s.d_v) {}
  GlaDeviceSegments segments() const { return {states.at(), gates.at(), totals.at()}; }
};

/// The inputs and results of a whole layer.
struct LayerMemory {
  DeviceArray<Bf16> q, k, v, g, d_o, o, dq, dk, dv, dg;

  explicit LayerMemory(const GlaShape& s)
      : q(rows(s) * s.d_k),
        k(rows(s) * s.d_k),
        v(rows(s) * s.d_v),
        g(rows(s) * s.gate_width()),
        d_o(rows(s) * s.d_v),
        o(rows(s) * s.d_v),
        dq(rows(s) * s.d_k),
        dk(rows(s) * s.d_k),
        dv(rows(s) * s.d_v),
        dg(rows(s) * s.gate_width()) {}
  static std::int64_t rows(const GlaShape& s) { return s.tokens * s.heads; }
  GlaDeviceInputs inputs(const GlaShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {q.at(row * s.d_k), k.at(row * s.d_k), v.at(row * s.d_v), g.at(row * s.gate_width())};
  }
  GlaDeviceGradients gradients(const GlaShape& s, std::int64_t token) const {
    const auto row = token * s.heads;
    return {dq.at(row * s.d_k), dk.at(row * s.d_k), dv.at(row * s.d_v), dg.at(row * s.gate_width())};
  }
};

/// One rank's share of a layer: its tokens and its memory.
struct Rank {
  GlaDeviceCall call;
  const LayerMemory& layer;
  std::int64_t token;
  PassMemory before, after;
  DeviceArray<Bf16> states;
  std::unique_ptr<DeviceArray<float>> prefix, suffix;

  Rank(const LayerMemory& memory, const GlaShape& share, std::int64_t first, int segments)
      : call{share, {}, segments, nullptr},
        layer(memory),
        token(first),
        before(share, segments),
        after(share, segments),
        states(share.heads * ((share.tokens + 63) / 64) * share.d_k * share.d_v) {}

  GlaDeviceInputs in() const { return layer.inputs(call.shape, token); }
  Bf16* o() const { return layer.o.at(token * call.shape.heads * call.shape.d_v); }
  Bf16* d_o() const { return layer.d_o.at(token * call.shape.heads * call.shape.d_v); }
  GlaDeviceEdges edges_before() const { return {before.segments(), prefix ? prefix->at() : nullptr}; }
  GlaDeviceEdges edges_after() const { return {after.segments(), suffix ? suffix->at() : nullptr}; }

  void segment_states() const { must(gla_segment_states(call, before.segments(), in())); }
  void segment_gradients() const { must(gla_segment_gradients(call, after.segments(), in(), d_o())); }
  void scan(const PassMemory& x) const {
    must(gla_scan_segments(call, x.segments(), x.map_decay.at(), x.map_state.at()));
  }
  void output() const { must(gla_output(call, o(), in(), edges_before())); }
  void chunk_states() const { must(gla_chunk_states(call, states.at(), in(), edges_before())); }
  void gradients() const {
    must(gla_gradients(call, layer.gradients(call.shape, token), in(), d_o(), states.at(), edges_after()));
  }

  void forward() const {
    segment_states();
    scan(before);
    output();
  }
  void backward() const {
    segment_gradients();
    scan(after);
    chunk_states();
    gradients();
  }
};

// ---- The check ----

enum class Gates { layer, unit_normal, constant, near_zero, near_one, mixed };

struct Problem {
  GlaShape shape;
  Gates gates;
  float constant;
  int ranks, segments;
  unsigned seed;
};

std::string name(const Problem& p) {
  const char* gates[] = {"layer", "unit_normal", "constant", "near_zero", "near_one", "mixed"};
  const char* kinds[] = {"vector", "scalar", "none"};
  char text[160];
  std::snprintf(text, sizeof text, "%-6s %-11s %5.2f T=%-5d H=%-2d d_k=%-3d d_v=%-3d P=%d G=%d seed=%u",
                kinds[static_cast<int>(p.shape.gate)], gates[static_cast<int>(p.gates)], p.constant,
                static_cast<int>(p.shape.tokens), static_cast<int>(p.shape.heads), static_cast<int>(p.shape.d_k),
                static_cast<int>(p.shape.d_v), p.ranks, p.segments, p.seed);
  return text;
}

float draw_gate(const Problem& p, std::mt19937& random, std::int64_t i) {
  std::normal_distribution<float> normal;
  const auto log_sigmoid = [&] { return -std::log1p(std::exp(-normal(random))); };
  switch (p.gates) {
    case Gates::layer: return log_sigmoid() / 16.0F;
    case Gates::unit_normal: return std::max(log_sigmoid(), -5.0F);
    case Gates::constant: return p.constant;
    case Gates::near_zero: return -1e-6F * std::abs(normal(random));
    case Gates::near_one: return -20.0F - 10.0F * std::abs(normal(random));
    case Gates::mixed: return i % 3 == 0 ? -12.0F : log_sigmoid() / 16.0F;
  }
  return 0.0F;
}

/// A layer's inputs, rounded to bf16.
struct HostInputs {
  std::vector<Bf16> q, k, v, g, d_o;

  explicit HostInputs(const Problem& p) {
    std::mt19937 random(p.seed);
    std::normal_distribution<float> normal;
    const auto rows = p.shape.tokens * p.shape.heads;
    const auto fill = [&](std::vector<Bf16>& x, std::int64_t width) {
      for (std::int64_t i = 0; i < rows * width; ++i) x.push_back(__float2bfloat16(normal(random)));
    };
    fill(q, p.shape.d_k);
    fill(k, p.shape.d_k);
    fill(v, p.shape.d_v);
    fill(d_o, p.shape.d_v);
    for (std::int64_t i = 0; i < rows * p.shape.gate_width(); ++i)
      g.push_back(__float2bfloat16(draw_gate(p, random, i)));
  }
};

std::vector<double> head_of(const std::vector<Bf16>& x, std::int64_t head, std::int64_t heads, std::int64_t width) {
  std::vector<double> out;
  if (width == 0) return out;
  for (std::size_t row = size(head * width); row < x.size(); row += size(heads * width))
    for (std::int64_t c = 0; c < width; ++c) out.push_back(__bfloat162float(x[row + size(c)]));
  return out;
}

struct HeadResults {
  std::vector<double> o, dq, dk, dv, dg;
};

HeadResults oracle_of_head(const HostInputs& x, const GlaShape& s, std::int64_t head) {
  const auto q = head_of(x.q, head, s.heads, s.d_k), k = head_of(x.k, head, s.heads, s.d_k);
  const auto v = head_of(x.v, head, s.heads, s.d_v), d_o = head_of(x.d_o, head, s.heads, s.d_v);
  const auto g = head_of(x.g, head, s.heads, s.gate_width());
  const ReferenceInputs in{q, k, v, g, {}};
  const auto gradients = gla_reference_backward(in, d_o, {}, s);
  return {gla_reference_forward(in, s).o, gradients.dq, gradients.dk, gradients.dv, gradients.dg};
}

/// Sums of squares of an error and of what it is relative to.
struct ErrorSum {
  double difference = 0, norm = 0;
  bool finite = true;

  void add(const std::vector<double>& got, const std::vector<double>& oracle) {
    for (std::size_t i = 0; i < oracle.size(); ++i) {
      difference += (got[i] - oracle[i]) * (got[i] - oracle[i]);
      norm += oracle[i] * oracle[i];
      finite = finite && std::isfinite(got[i]);
    }
  }
  double relative() const {
    if (!finite) return INFINITY;
    return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
  }
};

/// What comes in at each rank: the fold of the maps of those before it in the given order.
void hand_on(std::vector<std::unique_ptr<Rank>>& ranks, bool forward) {
  std::vector<float> carry;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Rank& rank = *ranks[forward ? i : ranks.size() - 1 - i];
    const PassMemory& pass = forward ? rank.before : rank.after;
    const auto decay = pass.map_decay.host(), state = pass.map_state.host();
    if (!carry.empty()) (forward ? rank.prefix : rank.suffix) = std::make_unique<DeviceArray<float>>(carry);
    carry.resize(state.size(), 0.0F);
    for (std::size_t e = 0; e < state.size(); ++e)
      carry[e] = decay[e / size(rank.call.shape.d_v)] * carry[e] + state[e];
  }
}

/// Runs a problem on ranks in a row, all on this device.
void run_ranks(const LayerMemory& memory, const Problem& p) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int r = 0; r < p.ranks; ++r) {
    const auto first = p.shape.tokens * r / p.ranks;
    GlaShape share = p.shape;
    share.tokens = p.shape.tokens * (r + 1) / p.ranks - first;
    const int segments = static_cast<int>(std::min<std::int64_t>(p.segments, (share.tokens + 63) / 64));
    ranks.push_back(std::make_unique<Rank>(memory, share, first, segments));
  }
  for (auto& rank : ranks) {
    rank->segment_states();
    rank->scan(rank->before);
    rank->segment_gradients();
    rank->scan(rank->after);
  }
  hand_on(ranks, true);
  hand_on(ranks, false);
  for (auto& rank : ranks) {
    rank->output();
    rank->chunk_states();
    rank->gradients();
  }
  must(cudaDeviceSynchronize());
}

/// Prints one line; true if every error is within the tolerance.
bool check(const Problem& p, const HostInputs& x, std::vector<std::future<HeadResults>>& oracle) {
  LayerMemory memory(p.shape);
  const auto put = [](const DeviceArray<Bf16>& into, const std::vector<Bf16>& from) {
    must(cudaMemcpy(into.at(), from.data(), from.size() * sizeof(Bf16), cudaMemcpyHostToDevice));
  };
  put(memory.q, x.q), put(memory.k, x.k), put(memory.v, x.v), put(memory.g, x.g), put(memory.d_o, x.d_o);
  run_ranks(memory, p);
  const GlaShape& s = p.shape;
  const std::vector<Bf16> got[] = {memory.o.host(), memory.dq.host(), memory.dk.host(), memory.dv.host(),
                                   memory.dg.host()};
  const std::int64_t widths[] = {s.d_v, s.d_k, s.d_k, s.d_v, s.gate_width()};
  ErrorSum errors[5];
  for (std::int64_t h = 0; h < s.heads; ++h) {
    const HeadResults head = oracle[size(h)].get();
    const std::vector<double>* want[] = {&head.o, &head.dq, &head.dk, &head.dv, &head.dg};
    for (int i = 0; i < 5; ++i) errors[i].add(head_of(got[i], h, s.heads, widths[i]), *want[i]);
  }
  bool good = true;
  std::printf("%s ", name(p).c_str());
  for (const auto& error : errors) {
    std::printf(" %.1e", error.relative());
    good = good && error.relative() <= tolerance;
  }
  std::printf("%s\n", good ? "" : "  WRONG");
  return good;
}

Problem random_problem(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Problem p;
  p.shape = {pick(1, 1500), pick(1, 3), 64 * pick(1, 2), 64 * pick(1, 2), 64, static_cast<GateKind>(pick(0, 2))};
  p.gates = static_cast<Gates>(pick(0, 5));
  p.constant = -0.1F * static_cast<float>(pick(0, 90));
  p.ranks = p.shape.tokens < 200 ? 1 : pick(1, 4);
  p.segments = pick(1, 6);
  p.seed = static_cast<unsigned>(random());
  return p;
}

std::vector<Problem> problems(unsigned seed) {
  std::vector<Problem> out;
  std::mt19937 random(seed);
  const auto vector = GateKind::vector;
  out.push_back({{64, 1, 128, 128, 64, vector}, Gates::layer, 0, 1, 1, seed});
  out.push_back({{256, 1, 128, 128, 64, vector}, Gates::layer, 0, 1, 1, seed});
  out.push_back({{1000, 2, 128, 128, 64, vector}, Gates::layer, 0, 1, 4, seed});
  for (const GateKind kind : {GateKind::vector, GateKind::scalar, GateKind::none}) {
    for (const std::int64_t d_k : {64, 128})
      for (const std::int64_t d_v : {64, 128})
        out.push_back({{777, 2, d_k, d_v, 64, kind}, Gates::layer, 0, 2, 3, seed + 1});
  }
  for (const GateKind kind : {GateKind::vector, GateKind::scalar}) {
    for (const Gates gates : {Gates::unit_normal, Gates::near_zero, Gates::near_one, Gates::mixed})
      out.push_back({{600, 2, 128, 128, 64, kind}, gates, 0, 2, 3, seed + 2});
    for (const float constant : {-1.0F, -1.8F, -2.5F, -5.0F, -8.0F})
      out.push_back({{600, 2, 128, 128, 64, kind}, Gates::constant, constant, 2, 3, seed + 3});
  }
  for (int i = 0; i < 12; ++i) out.push_back(random_problem(random));
  out.push_back({{4096, 16, 128, 128, 64, vector}, Gates::layer, 0, 1, 8, seed + 4});
  return out;
}

/// Checks every problem; the oracle's heads run on all cores meanwhile.
bool check_all(unsigned seed) {
  std::printf("check, seed %u; relative errors of o dq dk dv dg\n", seed);
  const auto all = problems(seed);
  std::vector<std::unique_ptr<HostInputs>> inputs;
  std::vector<std::vector<std::future<HeadResults>>> oracles(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    inputs.push_back(std::make_unique<HostInputs>(all[i]));
    for (std::int64_t h = 0; h < all[i].shape.heads; ++h)
      oracles[i].push_back(std::async(std::launch::async, oracle_of_head, std::cref(*inputs[i]), all[i].shape, h));
  }
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) wrong += check(all[i], *inputs[i], oracles[i]) ? 0 : 1;
  std::printf("%zu problems, %d wrong\n", all.size(), wrong);
  return wrong == 0;
}

// ---- The times ----

__device__ unsigned mixed(unsigned x) {
  x = (x ^ (x >> 16)) * 0x7feb352dU;
  x = (x ^ (x >> 15)) * 0x846ca68bU;
  return x ^ (x >> 16);
}

/// Normal numbers, or GLA's gates: log sigmoid of normal numbers over 16.
__global__ void fill_kernel(Bf16* x, std::int64_t count, unsigned seed, bool gates) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count; i += stride) {
    const unsigned a = mixed(static_cast<unsigned>(i) ^ seed), b = mixed(a + 0x9e3779b9U);
    const float u = (static_cast<float>(a >> 8) + 0.5F) / 16777216.0F, w = static_cast<float>(b >> 8) / 16777216.0F;
    const float normal = sqrtf(-2.0F * logf(u)) * cospif(2.0F * w);
    x[i] = __float2bfloat16(gates ? -log1pf(expf(-normal)) / 16.0F : normal);
  }
}

void fill(const DeviceArray<Bf16>& x, unsigned seed, bool gates) {
  fill_kernel<<<1024, 256>>>(x.at(), x.count(), seed, gates);
  must(cudaGetLastError());
}

/// Median seconds of work(0), work(1), .. between two events.
double median_seconds(const std::function<void(int)>& work) {
  constexpr int warm_up = 5, rounds = 50;
  cudaEvent_t start, stop;
  must(cudaEventCreate(&start));
  must(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int i = 0; i < warm_up + rounds; ++i) {
    must(cudaEventRecord(start));
    work(i);
    must(cudaEventRecord(stop));
    must(cudaEventSynchronize(stop));
    float milliseconds = 0;
    must(cudaEventElapsedTime(&milliseconds, start, stop));
    if (i >= warm_up) times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  must(cudaEventDestroy(start));
  must(cudaEventDestroy(stop));
  return times[rounds / 2] * 1e-3;
}

void print_time(const char* what, double bytes, const std::function<void(int)>& work) {
  const double seconds = median_seconds(work);
  std::printf("  %-34s %8.4f ms", what, seconds * 1e3);
  if (bytes > 0) std::printf("  %7.1f MB  %5.2f TB/s", bytes * 1e-6, bytes / seconds * 1e-12);
  std::printf("\n");
}

void time_shape(const GlaShape& s, int multiprocessors) {
  constexpr int sets = 2;
  std::vector<std::unique_ptr<LayerMemory>> layers;
  std::vector<std::unique_ptr<Rank>> ranks;
  const int segments = gla_device_segments(s, {}, multiprocessors);
  for (int i = 0; i < sets; ++i) {
    layers.push_back(std::make_unique<LayerMemory>(s));
    const LayerMemory& x = *layers.back();
    unsigned seed = static_cast<unsigned>(1 + 10 * i);
    for (const auto* normal : {&x.q, &x.k, &x.v, &x.d_o}) fill(*normal, seed++ << 8, false);
    fill(x.g, seed << 8, true);
    ranks.push_back(std::make_unique<Rank>(x, s, 0, segments));
    ranks.back()->forward();
    ranks.back()->backward();
  }
  must(cudaDeviceSynchronize());
  const auto timed = [&](const char* what, double bytes, void (Rank::*call)() const) {
    print_time(what, bytes, [&](int i) { ((*ranks[size(i % sets)]).*call)(); });
  };
  const double k = 2.0 * s.rows() * static_cast<double>(s.d_k), v = 2.0 * s.rows() * static_cast<double>(s.d_v);
  const double g = 2.0 * s.rows() * static_cast<double>(s.gate_width());
  const double chunk_states = 2.0 * static_cast<double>(s.heads * ((s.tokens + 63) / 64) * s.d_k * s.d_v);
  const double edges = 4.0 * static_cast<double>(segments) * s.state_elements();
  std::printf("T=%d H=%d d_k=%d d_v=%d gate width %d, %d segments a head\n", static_cast<int>(s.tokens),
              static_cast<int>(s.heads), static_cast<int>(s.d_k), static_cast<int>(s.d_v),
              static_cast<int>(s.gate_width()), segments);
  timed("segment_states", k + v + g + edges, &Rank::segment_states);
  print_time("scan_segments", 2 * edges, [&](int i) { ranks[size(i % sets)]->scan(ranks[size(i % sets)]->before); });
  timed("output", 2 * k + 2 * v + g + edges, &Rank::output);
  timed("segment_gradients", k + v + g + edges, &Rank::segment_gradients);
  timed("chunk_states", k + v + g + edges + chunk_states, &Rank::chunk_states);
  timed("gradients", 4 * k + 3 * v + 2 * g + 2 * edges + chunk_states, &Rank::gradients);
  timed("forward", 0, &Rank::forward);
  timed("backward (edge states kept)", 0, &Rank::backward);
  print_time("backward (nothing kept)", 0, [&](int i) {
    const Rank& rank = *ranks[size(i % sets)];
    rank.segment_states();
    rank.scan(rank.before);
    rank.backward();
  });
  print_time("forward and backward", 0, [&](int i) {
    ranks[size(i % sets)]->forward();
    ranks[size(i % sets)]->backward();
  });
}

void time_all() {
  cudaDeviceProp device;
  must(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", device.name, device.multiProcessorCount, device.l2CacheSize >> 20);
  for (const auto& [tokens, heads] : {std::pair{16384, 16}, std::pair{32768, 16}, std::pair{8192, 32}})
    time_shape({tokens, heads, 128, 128, 64, GateKind::vector}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::scalar}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::none}, device.multiProcessorCount);
}

}  // namespace
}  // namespace baton

int main(int count, char** arguments) {
  bool check = false, time = false;
  unsigned seed = std::random_device{}();
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument == "check") {
      check = true;
    } else if (argument == "time") {
      time = true;
    } else {
      seed = static_cast<unsigned>(std::strtoul(arguments[i], nullptr, 10));
    }
  }
  try {
    const bool good = check || !time ? baton::check_all(seed) : true;
    if (time || !check) baton::time_all();
    return good ? 0 : 4;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gla_device_bench: %s\n", error.what());
    return 1;
  }
}
