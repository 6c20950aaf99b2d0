// SPDX-License-Identifier: Apache-2.0
// What the peer executor promises beyond right results in single rounds, on as many GPUs as there are: thousands of
// rounds without a word between the ranks, every output checked on its GPU; graphs; two collectives in turn; a rank that
// does not come; packets that are never torn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "collectives/collective.hpp"
#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/gpu.cuh"
#include "collectives/executors/peer/case.cuh"
#include "harness/process/world.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

const World* the_world = nullptr;

__host__ __device__ unsigned hash(unsigned a, unsigned b, unsigned c) {
  unsigned x = a * 0x9e3779b9u ^ b * 0x85ebca6bu ^ c * 0xc2b2ae35u;
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
  return x ^ x >> 16;
}

/// Contributions whose folds are exact in f32, others in each round.
__device__ float state_of(unsigned round, unsigned rank, unsigned i) {
  return static_cast<float>(static_cast<int>(hash(round, rank, i) % 17) - 8);
}
__device__ float decay_of(unsigned round, unsigned rank, unsigned row) {
  return hash(round + 7, rank, row) % 2 == 0 ? 0.5f : 1.0f;
}

__global__ void count_round_kernel(unsigned* round) { ++*round; }

/// Up to 20 us, in a quarter of the rounds.
__global__ void dawdle_kernel(const unsigned* round, unsigned rank) {
  const unsigned random = hash(*round, rank, 99);
  const std::uint64_t start = device_nanoseconds();
  while (random % 4 == 0 && device_nanoseconds() - start < random / 4 % 20'000) {
  }
}

__global__ void fill_kernel(float* own, unsigned rows, unsigned row, const unsigned* round, unsigned rank) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < rows + rows * row; i += gridDim.x * blockDim.x)
    own[i] = i < rows ? decay_of(*round, rank, i) : state_of(*round, rank, i - rows);
}

/// Folds the ranks before `place` and counts the elements of `into` that differ; then wipes it.
__global__ void check_kernel(float* into, unsigned rows, unsigned row, const unsigned* round, int place,
                             int ranks, bool reversed, unsigned long long* wrong) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < rows * row; i += gridDim.x * blockDim.x) {
    float prefix = 0;
    for (int at = 0; at < place; ++at) {
      const int rank = reversed ? ranks - 1 - at : at;
      prefix = decay_of(*round, rank, i / row) * prefix + state_of(*round, rank, i);
    }
    if (into[i] != prefix) atomicAdd(wrong, 1ull);
    into[i] = 0;
  }
}

/// One rank's GPU and the numbers that stay there.
class Rig {
 public:
  explicit Rig(int ranks) : ranks_(ranks) {
    take_gpu(ranks_);
    cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    cuda(cudaMalloc(&round_, sizeof(unsigned)));
    cuda(cudaMalloc(&wrong_, sizeof *wrong_));
    cuda(cudaMemset(round_, 0, sizeof(unsigned)));
    cuda(cudaMemset(wrong_, 0, sizeof *wrong_));
    cuda(cudaDeviceSynchronize());
  }
  ~Rig() {
    cudaFree(round_);
    cudaFree(wrong_);
    cudaStreamDestroy(stream_);
  }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const CudaRanks& ranks() const { return ranks_; }
  cudaStream_t stream() const { return stream_; }
  unsigned* round() const { return round_; }
  unsigned long long* wrong_on_device() const { return wrong_; }

  void wait() const { cuda(cudaStreamSynchronize(stream_)); }
  unsigned long long wrong() const {
    wait();
    unsigned long long count = 0;
    cuda(cudaMemcpy(&count, wrong_, sizeof count, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  CudaRanks ranks_;
  cudaStream_t stream_ = nullptr;
  unsigned* round_ = nullptr;
  unsigned long long* wrong_ = nullptr;
};

/// A scan that makes its inputs and checks its outputs on the GPU in every round.
class Scan {
 public:
  Scan(Rig& rig, const char* name, const Shape& shape, Direction direction, double limit_seconds = 5,
       PeerTransport transport = PeerTransport::packets)
      : rig_(rig),
        shape_(shape),
        reversed_(direction == Direction::reverse),
        exchange_(rig.ranks(), limit_seconds) {
    const int ranks = rig.ranks().size();
    schedules_ =
        build_all(find_collective(name), shape, {.ranks = ranks, .blocks = 3, .direction = direction});
    case_ = std::make_unique<PeerCase>(rig.ranks(), exchange_, schedules_, PeerWire::f32, transport);
  }

  void enqueue() {
    const int rank = rig_.ranks().rank(), ranks = rig_.ranks().size();
    const auto rows = static_cast<unsigned>(shape_.rows()), row = static_cast<unsigned>(shape_.d_v);
    const Schedule& mine = schedules_[rank];
    float *own = case_->memory().at(mine.buffer("own")), *into = case_->memory().at(mine.buffer("into"));
    count_round_kernel<<<1, 1, 0, rig_.stream()>>>(rig_.round());
    fill_kernel<<<32, 256, 0, rig_.stream()>>>(own, rows, row, rig_.round(), rank);
    dawdle_kernel<<<1, 1, 0, rig_.stream()>>>(rig_.round(), rank);
    case_->enqueue(rig_.stream());
    check_kernel<<<32, 256, 0, rig_.stream()>>>(into, rows, row, rig_.round(),
                                                reversed_ ? ranks - 1 - rank : rank, ranks, reversed_,
                                                rig_.wrong_on_device());
    cuda_launched();
  }

  std::string fault() const { return case_->fault(); }

 private:
  Rig& rig_;
  Shape shape_;
  bool reversed_;
  std::vector<Schedule> schedules_;
  PeerExchange exchange_;
  std::unique_ptr<PeerCase> case_;
};

const Shape small{2, 64, 64, 1};

/// Calls `body` on as many ranks as there are, and on fewer; the others have no part in it.
template <class Body>
void on_ranks(const Body& body) {
  for (int ranks = 1; ranks <= the_world->size(); ++ranks)
    if (the_world->rank() < ranks) body(ranks);
}

void run_back_to_back(const char* name, const Shape& shape, Direction direction, int rounds,
                      PeerTransport transport = PeerTransport::packets) {
  on_ranks([&](int ranks) {
    SCOPED_TRACE(std::string(name) + " on " + std::to_string(ranks) + " ranks, " + to_string(direction));
    Rig rig(ranks);
    Scan scan(rig, name, shape, direction, 5, transport);
    for (int round = 0; round < rounds; ++round) scan.enqueue();
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(scan.fault(), "");
  });
}

TEST(Peer, TenThousandRoundsWithoutAWordBetweenTheRanks) {
  for (const char* name : {"all_scan", "all_scan_fused"})
    for (Direction direction : {Direction::forward, Direction::reverse})
      run_back_to_back(name, small, direction, 10'000);
}

TEST(Peer, ThousandsOfRoundsOfEveryShapeOfExchange) {
  for (const char* name : {"two_shot", "all_gather_scan", "recursive_doubling", "all_scan_fused_16"})
    run_back_to_back(name, small, Direction::forward, 2'000);
  run_back_to_back("all_scan", {1, 5, 3, 1}, Direction::reverse, 2'000);
  run_back_to_back("all_scan", {32, 128, 128, 1}, Direction::forward, 200);
}

TEST(Peer, FencesAndFlagsGiveTheSame) {
  for (const char* name : {"all_scan", "two_shot"})
    run_back_to_back(name, small, Direction::forward, 1'000, PeerTransport::fenced);
}

TEST(Peer, GraphsCanBeReplayed) {
  on_ranks([](int ranks) {
    Rig rig(ranks);
    Scan scan(rig, "all_scan", small, Direction::forward);
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

TEST(Peer, TwoCollectivesTakeTurns) {
  on_ranks([](int ranks) {
    Rig rig(ranks);
    Scan forward(rig, "all_scan", small, Direction::forward),
        backward(rig, "two_shot", small, Direction::reverse);
    for (int round = 0; round < 2'000; ++round) (round % 2 == 0 ? forward : backward).enqueue();
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(forward.fault() + backward.fault(), "");
  });
}

TEST(Peer, SaysWhoDidNotComeAndGoesOnAfterwards) {
  const int ranks = the_world->size(), missing = ranks - 2;
  if (ranks < 2) GTEST_SKIP() << "needs two GPUs";
  Rig rig(ranks);
  const int rank = rig.ranks().rank();
  {
    Scan scan(rig, "all_scan", small, Direction::forward, 0.2);
    if (rank != missing) scan.enqueue();
    rig.wait();
    const std::string who = "in vain for rank " + std::to_string(missing) + ": step 0 (recv, all_scan.cpp:";
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

__global__ void make_kernel(float* made, const float* own, unsigned count, float add, float times) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    made[i] = (own[i] + add) * times;
}

/// (x + add) * times, the parameters
const RegisteredCudaKernel device_body{
    "peer_test_make", [](const CudaKernelCall& call) {
      const auto into = call.operands.writes[0];
      const auto [add, times] = std::any_cast<std::pair<int, int>>(call.kernel.parameters);
      make_kernel<<<8, 128, 0, call.stream>>>(into.data(), call.operands.reads[0].data(),
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

void run_laps(unsigned beside_work_ctas) {
  const int ranks = the_world->size();
  constexpr std::int64_t count = 100'001;
  Rig rig(ranks);
  PeerExchange exchange(rig.ranks());
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < ranks; ++rank) schedules.push_back(laps(rank, ranks, count));
  ASSERT_EQ(PeerCase::unsupported(schedules, PeerWire::f32, PeerTransport::packets).reason(), "");
  PeerCase prepared(rig.ranks(), exchange, schedules, PeerWire::f32, PeerTransport::packets,
                    beside_work_ctas);
  EXPECT_TRUE(prepared.exchanges_beside_work());
  const Schedule& mine = schedules[rig.ranks().rank()];
  float *own = prepared.memory().at(mine.buffer("own")), *into = prepared.memory().at(mine.buffer("into"));
  const int origin = (rig.ranks().rank() + 2 * ranks - 2) % ranks;
  for (int round = 0; round < 500; ++round) {
    count_round_kernel<<<1, 1, 0, rig.stream()>>>(rig.round());
    fill_kernel<<<32, 256, 0, rig.stream()>>>(own, 1, count - 1, rig.round(), rig.ranks().rank());
    dawdle_kernel<<<1, 1, 0, rig.stream()>>>(rig.round(), rig.ranks().rank());
    prepared.enqueue(rig.stream());
    check_laps_kernel<<<32, 256, 0, rig.stream()>>>(into, count, rig.round(), origin, rig.wrong_on_device());
  }
  EXPECT_EQ(rig.wrong(), 0u);
  EXPECT_EQ(prepared.fault(), "");
}

TEST(Peer, KernelsAndMessagesWaitForOneAnother) {
  if (the_world->size() < 2) GTEST_SKIP() << "needs two GPUs";
  for (unsigned ctas : {4u, all_ctas}) run_laps(ctas);
}

__global__ void write_slots_kernel(std::byte* slots, unsigned values) {
  std::byte* const slot = slots + (blockIdx.x * blockDim.x + threadIdx.x) * packet_bytes;
  for (unsigned value = 1; value <= values; ++value) store_packet(slot, {value, ~value, value, value});
}

/// Reads its slot until the last value has come; counts packets whose words do not belong together, and values seen.
__global__ void read_slots_kernel(const std::byte* slots, unsigned values, unsigned long long* torn,
                                  unsigned long long* seen) {
  const std::byte* const slot = slots + (blockIdx.x * blockDim.x + threadIdx.x) * packet_bytes;
  const std::uint64_t start = device_nanoseconds();
  unsigned last = 0;
  while (last < values && device_nanoseconds() - start < 5'000'000'000) {
    const uint4 packet = load_packet(slot);
    if (packet.w == last) continue;
    if (packet.x != packet.w || packet.y != ~packet.w || packet.z != packet.w) atomicAdd(torn, 1ull);
    atomicAdd(seen, 1ull);
    last = packet.w;
  }
  if (last < values) atomicAdd(torn, 1ull);
}

TEST(Peer, PacketsAreNeverTorn) {
  if (the_world->size() < 2) GTEST_SKIP() << "needs two GPUs";
  constexpr unsigned values = 20'000, blocks = 64, threads = 256;
  Rig rig(the_world->size());
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
  int result = 1;
  const int failed = baton::exit_code_of([&] {
    if (!baton::is_launched()) {
      const int ranks = most_ranks();
      if (ranks == 0) return void(result = skipped);
      baton::relaunch(ranks, 1, argv);
    }
    baton::run_in_world(&argc, &argv, [&](const baton::World& world) {
      the_world = &world;
      testing::InitGoogleTest(&argc, argv);
      result = RUN_ALL_TESTS();
    });
  });
  return failed != 0 ? failed : result;
}
