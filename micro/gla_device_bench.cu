// SPDX-License-Identifier: Apache-2.0
// Gated linear attention on one device: its results against the double-precision oracle, then its times.
//
//   gla_device_bench [check] [time] [seed]      both where neither is named
//   built by preset cuda
//
// Checked: |got - oracle| / |oracle| of o, dq, dk, dv, dg <= 5e-3 in the Frobenius norm, one rank and ranks
// in a row, chunks that are not full, strong gates. Timed: medians of 50 runs after 5, with inputs that turn
// and are larger than the L2.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>

#include "micro/device_inputs.cuh"
#include "micro/gla_device_check.cuh"

namespace baton {
namespace {

void fill(const DeviceArray<Bf16>& x, unsigned seed, float strength) {
  must(fill_normal(x.at(), x.count(), seed, strength));
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

constexpr int sets = 2;  // of inputs, which turn

/// Forward and backward with all heads' summaries before the rest, as they run around an exchange.
void time_groups(const std::vector<std::unique_ptr<LayerMemory>>& layers, const GlaShape& s, int groups,
                 int multiprocessors) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < sets * groups; ++i) {
    const Work work = group_of(s, i % groups, groups);
    ranks.push_back(std::make_unique<Rank>(*layers[size(i / groups)], s, work, 0,
                                           gla_device_segments(s, work, multiprocessors)));
  }
  const auto each = [&](int i, const std::function<void(const Rank&)>& work) {
    for (int g = 0; g < groups; ++g) work(*ranks[size(i % sets * groups + g)]);
  };
  const std::string what = "forward and backward, " + std::to_string(groups) + " groups";
  print_time(what.c_str(), 0, [&](int i) {
    each(i, [](const Rank& rank) { rank.segment_states(), rank.scan(rank.before); });
    each(i, [](const Rank& rank) { rank.output(); });
    each(i, [](const Rank& rank) { rank.segment_gradients(), rank.scan(rank.after); });
    each(i, [](const Rank& rank) { rank.chunk_states(), rank.gradients(); });
  });
}

void time_shape(const GlaShape& s, int multiprocessors, float strength = 1.0F / 16.0F) {
  std::vector<std::unique_ptr<LayerMemory>> layers;
  std::vector<std::unique_ptr<Rank>> ranks;
  const int segments = gla_device_segments(s, {}, multiprocessors);
  for (int i = 0; i < sets; ++i) {
    layers.push_back(std::make_unique<LayerMemory>(s));
    const LayerMemory& x = *layers.back();
    unsigned seed = static_cast<unsigned>(1 + 10 * i);
    for (const auto* normal : {&x.q, &x.k, &x.v, &x.d_o}) fill(*normal, seed++ << 8, 0.0F);
    fill(x.g, seed << 8, strength);
    ranks.push_back(std::make_unique<Rank>(x, s, Work{}, 0, segments));
    ranks.back()->forward();
    ranks.back()->backward();
  }
  must(cudaDeviceSynchronize());
  const auto timed = [&](const char* what, double bytes, void (Rank::*call)() const) {
    print_time(what, bytes, [&](int i) { ((*ranks[size(i % sets)]).*call)(); });
  };
  const double k = 2.0 * s.rows() * static_cast<double>(s.d_k),
               v = 2.0 * s.rows() * static_cast<double>(s.d_v);
  const double g = 2.0 * s.rows() * static_cast<double>(s.gate_width());
  const double chunk_states = 2.0 * static_cast<double>(s.heads * ((s.tokens + 63) / 64) * s.d_k * s.d_v);
  const double edges = 4.0 * static_cast<double>(segments) * s.state_elements();
  std::printf("T=%d H=%d d_k=%d d_v=%d gate width %d, gates log sigmoid x %.4f, %d segments a head\n",
              static_cast<int>(s.tokens), static_cast<int>(s.heads), static_cast<int>(s.d_k),
              static_cast<int>(s.d_v), static_cast<int>(s.gate_width()), strength, segments);
  timed("segment_states", k + v + g + edges, &Rank::segment_states);
  print_time("scan_segments", 2 * edges,
             [&](int i) { ranks[size(i % sets)]->scan(ranks[size(i % sets)]->before); });
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
  for (const int groups : {2, 4}) time_groups(layers, s, groups, multiprocessors);
}

void time_all() {
  cudaDeviceProp device;
  must(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", device.name, device.multiProcessorCount,
              device.l2CacheSize >> 20);
  for (const auto& [tokens, heads] : {std::pair{16384, 16}, std::pair{32768, 16}, std::pair{8192, 32}})
    time_shape({tokens, heads, 128, 128, 64, GateKind::vector}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::scalar}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::none}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::vector}, device.multiProcessorCount,
             8.0F);  // every chunk strong
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
