// SPDX-License-Identifier: Apache-2.0
// What the peer executor promises beyond right results in single rounds, on as many GPUs as there
// are: thousands of rounds back to back, every output checked on its GPU; graphs; two collectives
// in turn; a rank that stays away; packets that are never torn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "collectives/executors/cuda/flag.cuh"
#include "collectives/executors/peer/device/gpu.cuh"
#include "harness/process/exit_codes.hpp"
#include "tests/collectives/executors/peer/rig.cuh"
#include "tests/relaunch.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

const Shape small{2, 64, 64, 1};

/// Calls `body` on as many ranks as there are, and on fewer; the others have no part in it.
template <class Body>
void on_ranks(const Body& body) {
  for (int ranks = 1; ranks <= the_world()->size(); ++ranks)
    if (the_world()->rank() < ranks) body(ranks);
}

TEST(StartBarrier, CountsTheRoundsThatBeginBeforeTheirHost) {
  on_ranks([&](int ranks) {
    const Rig rig(ranks);
    StartBarrier start(rig.ranks());
    constexpr unsigned rounds = 50;
    for (unsigned round = 0; round < rounds; ++round) {
      start.enqueue(rig.stream());
      start.release();
      rig.wait();
    }
    const unsigned by_chance = start.late_starts();
    EXPECT_LT(by_chance, rounds);  // a busy machine may delay a host
    start.enqueue(rig.stream());
    rig.wait();
    EXPECT_EQ(start.late_starts(), by_chance + 1);
    start.release();
  });
}

void run_back_to_back(const char* name, const Shape& shape, Direction direction, int rounds) {
  on_ranks([&](int ranks) {
    SCOPED_TRACE(std::string(name) + " on " + std::to_string(ranks) + " ranks, " + to_string(direction));
    Rig rig(ranks);
    Scan scan(rig, name, shape, direction);
    for (int round = 0; round < rounds; ++round) scan.enqueue();
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(scan.fault(), "");
  });
}

TEST(Peer, TenThousandRoundsWithoutAWordBetweenTheRanks) {
  for (const char* name : {"all_scan", "all_scan_fused", "two_shot_fused"})
    for (Direction direction : {Direction::forward, Direction::reverse})
      run_back_to_back(name, small, direction, 10'000);
}

TEST(Peer, ThousandsOfRoundsOfEveryShapeOfExchange) {
  for (const char* name : {"two_shot", "all_gather_scan", "recursive_doubling", "all_scan_fused_16"})
    run_back_to_back(name, small, Direction::forward, 2'000);
  for (const char* name : {"all_scan", "two_shot", "two_shot_fused"}) {
    run_back_to_back(name, {1, 5, 3, 1}, Direction::reverse, 2'000);
    run_back_to_back(name, {1, 1, 8, 1}, Direction::forward, 200);  // one row
    run_back_to_back(name, {32, 128, 128, 1}, Direction::forward, 200);
  }
}

void replay(const char* name) {
  on_ranks([name](int ranks) {
    Rig rig(ranks);
    Scan scan(rig, name, small, Direction::forward);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t recording = nullptr;
    cuda(cudaStreamBeginCapture(rig.stream(), cudaStreamCaptureModeThreadLocal));
    for (int round = 0; round < 7; ++round) scan.enqueue();
    cuda(cudaStreamEndCapture(rig.stream(), &graph));
    cuda(cudaGraphInstantiate(&recording, graph, 0));
    for (int replay = 0; replay < 100; ++replay) cuda(cudaGraphLaunch(recording, rig.stream()));
    scan.enqueue();  // and a round without the graph
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(scan.fault(), "");
    cuda(cudaGraphExecDestroy(recording));
    cuda(cudaGraphDestroy(graph));
  });
}

TEST(Peer, GraphsCanBeReplayed) {
  for (const char* name : {"all_scan", "two_shot_fused"}) replay(name);
}

TEST(Peer, CollectivesTakeTurns) {
  on_ranks([](int ranks) {
    Rig rig(ranks);
    Scan forward(rig, "all_scan", small, Direction::forward),
        backward(rig, "two_shot", small, Direction::reverse),
        fused(rig, "two_shot_fused", small, Direction::forward);
    for (int round = 0; round < 3'000; ++round)
      (round % 3 == 0 ? forward : round % 3 == 1 ? backward : fused).enqueue();
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(forward.fault() + backward.fault() + fused.fault(), "");
  });
}

TEST(Peer, SaysWhoDidNotComeAndGoesOnAfterwards) {
  const int ranks = the_world()->size(), missing = ranks - 2;
  if (ranks < 2) GTEST_SKIP() << "needs two GPUs";
  Rig rig(ranks);
  const int rank = rig.ranks().rank();
  {
    Scan scan(rig, "all_scan", small, Direction::forward, 0.2);
    if (rank != missing) scan.enqueue();
    rig.wait();
    const std::string who =
        "ms waiting for rank " + std::to_string(missing) + ": step 0 (recv, all_scan.cpp:";
    EXPECT_THAT(scan.fault(), HasSubstr(rank == missing + 1 ? who : ""));
    EXPECT_EQ(scan.fault().empty(), rank != missing + 1);
    EXPECT_EQ(rig.wrong() > 0, rank == missing + 1) << "nothing that did not come may be taken for data";
    rig.ranks().barrier();
  }
  Scan again(rig, "all_scan", small, Direction::forward);
  const auto before = rig.wrong();
  for (int round = 0; round < 10; ++round) {
    // The one that stayed away has counted fewer rounds.
    if (round == 0 && rank == missing) count_round_kernel<<<1, 1, 0, rig.stream()>>>(rig.round());
    again.enqueue();
  }
  EXPECT_EQ(rig.wrong(), before);
  EXPECT_EQ(again.fault(), "");
}

__global__ void write_slots_kernel(std::byte* slots, unsigned values) {
  std::byte* const slot = slots + (blockIdx.x * blockDim.x + threadIdx.x) * packet_bytes;
  for (unsigned value = 1; value <= values; ++value) Gpu::store_packet(slot, {value, ~value, value, value});
}

/// Reads its slot until the last value has come; counts packets whose words do not belong together,
/// and values seen.
__global__ void read_slots_kernel(const std::byte* slots, unsigned values, unsigned long long* torn,
                                  unsigned long long* seen) {
  const std::byte* const slot = slots + (blockIdx.x * blockDim.x + threadIdx.x) * packet_bytes;
  const std::uint64_t start = device_nanoseconds();
  unsigned last = 0;
  while (last < values && device_nanoseconds() - start < 5'000'000'000) {
    const Packet packet = Gpu::load_packet(slot);
    if (packet.w == last) continue;
    if (packet.x != packet.w || packet.y != ~packet.w || packet.z != packet.w) atomicAdd(torn, 1ull);
    atomicAdd(seen, 1ull);
    last = packet.w;
  }
  if (last < values) atomicAdd(torn, 1ull);
}

TEST(Peer, PacketsAreNeverTorn) {
  if (the_world()->size() < 2) GTEST_SKIP() << "needs two GPUs";
  constexpr unsigned values = 20'000, blocks = 64, threads = 256;
  Rig rig(the_world()->size());
  PeerHeap heap(rig.ranks());
  heap.reserve(blocks * threads * packet_bytes);
  const int rank = rig.ranks().rank(), reader = (rank + 1) % rig.ranks().size();
  unsigned long long* counts = nullptr;  // torn, seen
  cuda(cudaMalloc(&counts, 2 * sizeof *counts));
  cuda(cudaMemset(counts, 0, 2 * sizeof *counts));
  cuda(cudaMemset(heap.own(), 0, blocks * threads * packet_bytes));
  cuda(cudaDeviceSynchronize());
  rig.ranks().barrier();
  read_slots_kernel<<<blocks, threads, 0, rig.stream()>>>(heap.own(), values, counts, counts + 1);
  cudaStream_t other = nullptr;
  cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  write_slots_kernel<<<blocks, threads, 0, other>>>(heap.all()[reader], values);
  cuda(cudaStreamSynchronize(other));
  rig.wait();
  unsigned long long found[2];
  cuda(cudaMemcpy(found, counts, sizeof found, cudaMemcpyDeviceToHost));
  EXPECT_EQ(found[0], 0u);
  EXPECT_GT(found[1], 2u * blocks * threads) << "too few were caught under way to prove anything";
  cuda(cudaStreamDestroy(other));
  cuda(cudaFree(counts));
  rig.ranks().barrier();
}

/// The most ranks, up to four, that this machine has a GPU each for.
int most_ranks() {
  for (int ranks = 4; ranks > 0; --ranks)
    if (!lacks_gpus(ranks)) return ranks;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  return baton::exit_code_of([&] {
    int result = 1;
    if (!baton::is_launched()) {
      const int ranks = most_ranks();
      if (ranks == 0) return skipped;
      baton::relaunch(ranks, argv);
    }
    baton::run_in_world(&argc, &argv, [&](const baton::World& world) {
      baton::the_world() = &world;
      testing::InitGoogleTest(&argc, argv);
      result = RUN_ALL_TESTS();
    });
    return result;
  });
}
