// SPDX-License-Identifier: Apache-2.0
// Times of the kernels of gated linear attention on one device, built by preset cuda.
//
// Medians of 50 runs after 5, with inputs that turn and are larger than the L2. Their results are
// checked by tests/sp_methods/kernels/device/gla/layer_test.cu.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/micro/device_times.cuh"
#include "tests/sp_methods/kernels/device/gla/layer_rank.cuh"

namespace baton {
namespace {

void fill(const DeviceArray<Bf16>& x, unsigned seed, float strength) {
  cuda(fill_normal(x.at(), x.count(), seed, strength));
}

constexpr int sets = 2;  // of inputs, which turn

/// The number of segments of a call that fill the multiprocessors once.
int segments_of(const LayerShape& s, const Work& work, int multiprocessors) {
  return static_cast<int>(segment_count(s, work.heads(s), multiprocessors));
}

/// Times the forward and backward pass with all heads' local states before the outputs, as they run
/// around an exchange.
void time_groups(const std::vector<std::unique_ptr<LayerMemory>>& layers, const LayerShape& s, int groups,
                 int multiprocessors) {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int i = 0; i < sets * groups; ++i) {
    const Work work = group_of(s, i % groups, groups);
    ranks.push_back(
        std::make_unique<Rank>(*layers[size(i / groups)], s, work, 0, segments_of(s, work, multiprocessors)));
  }
  const auto each = [&](int i, const std::function<void(const Rank&)>& work) {
    for (int g = 0; g < groups; ++g) work(*ranks[size(i % sets * groups + g)]);
  };
  const std::string what = "forward and backward, " + std::to_string(groups) + " groups";
  print_time(what.c_str(), 0, [&](int i) {
    each(i, [](const Rank& rank) { rank.segment_states(), rank.scan_segments(rank.before); });
    each(i, [](const Rank& rank) { rank.segment_output(); });
    each(i, [](const Rank& rank) { rank.segment_state_gradients(), rank.scan_segments(rank.after); });
    each(i, [](const Rank& rank) { rank.chunk_starts(), rank.segment_starts(); });
    each(i, [](const Rank& rank) { rank.segment_gradients(); });
  });
}

/// Layers with drawn inputs, and a rank for each that has run once.
struct Layers {
  std::vector<std::unique_ptr<LayerMemory>> layers;
  std::vector<std::unique_ptr<Rank>> ranks;

  Layers(const LayerShape& s, int segments, float strength) {
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
    cuda(cudaDeviceSynchronize());
  }
  const Rank& turn(int i) const { return *ranks[size(i % sets)]; }
};

/// Times backward passes that differ in how they get the states before chunks, in turns.
void compare_backwards(const Layers& all) {
  const std::vector<double> seconds = median_seconds({
      [&](int i) {
        const Rank& rank = all.turn(i);
        rank.segment_state_gradients(), rank.scan_segments(rank.after);
        rank.segment_states(), rank.scan_segments(rank.before);
        rank.true_chunk_starts(), rank.segment_gradients(true);
      },
      [&](int i) { all.turn(i).backward(); },
      [&](int i) { all.turn(i).backward_with_kept_states(); },
  });
  const char* names[] = {"two sweeps", "one sweep, starts in segments", "edge states kept"};
  for (int i = 0; i < 3; ++i) std::printf("  backward, %-32s %8.4f ms\n", names[i], seconds[size(i)] * 1e3);
}

void time_kernels(const Layers& all, const Segments& cut) {
  const auto timed = [&](const char* what, double bytes, const std::function<void(const Rank&)>& call) {
    print_time(what, bytes, [&](int i) { call(all.turn(i)); });
  };
  timed("segment_states", SegmentStates::bytes(cut), &Rank::segment_states);
  timed("scan_segments", ScanSegments::bytes(cut), [](const Rank& x) { x.scan_segments(x.before); });
  timed("segment_output", SegmentOutput::bytes(cut), &Rank::segment_output);
  timed("segment_state_gradients", SegmentStateGradients::bytes(cut), &Rank::segment_state_gradients);
  timed("chunk_starts, true", ChunkStarts::bytes(cut), &Rank::true_chunk_starts);
  timed("segment_gradients, true", SegmentGradients::bytes(cut),
        [](const Rank& x) { x.segment_gradients(true); });
  timed("chunk_starts", ChunkStarts::bytes(cut), &Rank::chunk_starts);
  timed("segment_starts", SegmentStarts::bytes(cut), &Rank::segment_starts);
  timed("segment_gradients", SegmentGradients::bytes(cut), [](const Rank& x) { x.segment_gradients(); });
  timed("forward", 0, &Rank::forward);
  timed("forward and backward", 0, [](const Rank& x) { x.forward(), x.backward(); });
  compare_backwards(all);
}

void time_shape(const LayerShape& s, int multiprocessors, float strength = 1.0F / 16.0F) {
  const int segments = segments_of(s, {}, multiprocessors);
  const Layers all(s, segments, strength);
  std::printf("T=%d H=%d d_k=%d d_v=%d gate width %d, gates log sigmoid x %.4f, %d segments a head\n",
              static_cast<int>(s.tokens), static_cast<int>(s.heads), static_cast<int>(s.d_k),
              static_cast<int>(s.d_v), static_cast<int>(s.gate_width()), strength, segments);
  time_kernels(all, {s, {}, segments, Dtype::bf16});
  for (const int groups : {2, 4}) time_groups(all.layers, s, groups, multiprocessors);
}

void time_all() {
  cudaDeviceProp device;
  cuda(cudaGetDeviceProperties(&device, 0));
  std::printf("%s, %d multiprocessors, L2 %d MiB\n", device.name, device.multiProcessorCount,
              device.l2CacheSize >> 20);
  for (const auto& [tokens, heads] : {std::pair{16384, 16}, std::pair{32768, 16}, std::pair{8192, 32}})
    time_shape({tokens, heads, 128, 128, 64, GateKind::vector}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::scalar}, device.multiProcessorCount);
  time_shape({16384, 16, 128, 128, 64, GateKind::none}, device.multiProcessorCount);
  for (const float strength : {1.25e-4F, 8.0F})  // no channel forgets; every chunk is strong
    time_shape({16384, 16, 128, 128, 64, GateKind::vector}, device.multiProcessorCount, strength);
}

}  // namespace
}  // namespace baton

int main() { return baton::run_device_bench("gla_device_bench", baton::time_all); }
