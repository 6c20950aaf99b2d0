// SPDX-License-Identifier: Apache-2.0
// Compute steps between and beside the messages of a round.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <any>
#include <utility>

#include "tests/collectives/executors/peer/rig.cuh"

namespace {

using namespace baton;

__global__ void make_kernel(float* made, const float* own, unsigned count, float add, float times) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    made[i] = (own[i] + add) * times;
}

/// (x + add) * times, the parameters
const RegisteredCudaKernel device_body{
    "peer_test_make", [](const CudaKernelCall& call) {
      const auto into = call.operands.writes[0].f32();
      const auto [add, times] = std::any_cast<std::pair<int, int>>(call.kernel.parameters);
      make_kernel<<<8, 128, 0, call.stream>>>(into.data(), call.operands.reads[0].f32().data(),
                                              static_cast<unsigned>(into.size()), static_cast<float>(add),
                                              static_cast<float>(times));
    }};

Kernel make(int add, int times) {
  return {.name = "peer_test_make", .body = [](const HostOperands&) {}, .parameters = std::pair(add, times)};
}

/// Two laps around the ring, with local work before, between and after, and some beside.
Schedule laps(int rank, int ranks, std::int64_t count) {
  Schedule s(rank, ranks);
  const Slice own = s.input("own", count), into = s.output("into", count), made = s.scratch("made", count),
              came = s.scratch("came", count), again = s.scratch("again", count),
              aside = s.scratch("aside", count);
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  s.compute(make(1, 1), {made}, {own});
  s.send(next, made);
  s.recv(came, before);
  s.compute(make(5, 5), {aside}, {own});
  s.compute(make(0, 2), {again}, {came});
  s.send(next, again);
  s.recv(came, before);
  s.compute(make(3, 1), {into}, {came});
  return s;
}

__global__ void check_laps_kernel(const float* into, unsigned count, const unsigned* round, int origin,
                                  unsigned long long* wrong) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const float own = i == 0 ? decay_of(*round, origin, 0) : state_of(*round, origin, i - 1);
    if (into[i] != (own + 1) * 2 + 3) atomicAdd(wrong, 1ull);
  }
}

void run_laps(unsigned overlap_ctas) {
  const int ranks = the_world()->size();
  constexpr std::int64_t count = 100'001;
  Rig rig(ranks);
  PeerExchange exchange(rig.ranks());
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(laps(rank, ranks, count));
  ASSERT_EQ(unsupported_by_peer(schedules).reason(), "");
  PreparedRound prepared(rig.ranks(), exchange, schedules, overlap_ctas);
  EXPECT_TRUE(prepared.overlaps_compute);
  const Schedule& mine = schedules[rig.ranks().rank()];
  float *own = prepared.memory.at(mine.buffer("own")), *into = prepared.memory.at(mine.buffer("into"));
  const int origin = (rig.ranks().rank() + 2 * ranks - 2) % ranks;
  for (int round = 0; round < 500; ++round) {
    count_round_kernel<<<1, 1, 0, rig.stream()>>>(rig.round());
    fill_kernel<<<32, 256, 0, rig.stream()>>>(own, 1, count - 1, rig.round(), rig.ranks().rank());
    dawdle_kernel<<<1, 1, 0, rig.stream()>>>(rig.round(), rig.ranks().rank());
    prepared.round->enqueue(rig.stream());
    check_laps_kernel<<<32, 256, 0, rig.stream()>>>(into, count, rig.round(), origin, rig.wrong_on_device());
  }
  EXPECT_EQ(rig.wrong(), 0u);
  EXPECT_EQ(prepared.round->fault(), "");
}

TEST(Peer, KernelsAndMessagesWaitForOneAnother) {
  if (the_world()->size() < 2) GTEST_SKIP() << "needs two GPUs";
  for (unsigned ctas : {4u, ~0u}) run_laps(ctas);
}

}  // namespace
