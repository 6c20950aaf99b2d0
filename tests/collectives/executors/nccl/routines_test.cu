// SPDX-License-Identifier: Apache-2.0
// Routines on executor nccl, on one GPU: they work on its buffers and its stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "collectives/executors/executor.hpp"
#include "collectives/executors/routine.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;

__global__ void spin_kernel(long long cycles) {
  for (const long long start = clock64(); clock64() - start < cycles;) continue;
}

constexpr long long few_cycles = 40'000, many_cycles = 400'000'000;
constexpr double fastest_clock = 4e9;  // cycles a second that no GPU has
std::string noted;

/// Copies its input to its output in `run` or, as a result that is handed over, in `finish`.
class Copying : public Routine {
 public:
  Copying(const RoutineCall& call, bool at_the_end) : call_(call), at_the_end_(at_the_end) {}
  void prepare() override { noted += 'p'; }
  void run() override {
    noted += 'r';
    spin_kernel<<<1, 1, 0, stream()>>>(few_cycles);
    if (!at_the_end_) copy();
  }
  void finish() override {
    noted += 'f';
    if (at_the_end_) copy();
  }

 private:
  cudaStream_t stream() const { return static_cast<cudaStream_t>(call_.stream); }
  void copy() const {
    const RoutineOperand &into = call_.writes[0], &from = call_.reads[0];
    const std::size_t bytes = from.shape[0] * bytes_of(from.dtype);
    cuda(cudaMemcpyAsync(into.data, from.data, bytes, cudaMemcpyDeviceToDevice, stream()));
  }

  RoutineCall call_;
  bool at_the_end_;
};

/// Works on a stream of its own, which nobody waits for.
class Straying : public Routine {
 public:
  Straying() { cuda(cudaStreamCreateWithFlags(&own_, cudaStreamNonBlocking)); }
  ~Straying() override { cudaStreamDestroy(own_); }
  Straying(const Straying&) = delete;
  Straying& operator=(const Straying&) = delete;
  void prepare() override {}
  void run() override { spin_kernel<<<1, 1, 0, own_>>>(many_cycles); }
  void finish() override {}

 private:
  cudaStream_t own_ = nullptr;
};

Schedule schedule_of(const std::string& name) {
  Schedule s(0, 1);
  const Slice from = s.input("from", 1000, Dtype::bf16), into = s.output("into", 1000, true, Dtype::bf16);
  s.native(name, 1, {into}, {from});
  return s;
}

class RoutinesOnNccl : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    routines().add("copies", [](const RoutineCall& call) { return std::make_unique<Copying>(call, false); });
    routines().add("hands_over",
                   [](const RoutineCall& call) { return std::make_unique<Copying>(call, true); });
    routines().add("strays", [](const RoutineCall&) { return std::make_unique<Straying>(); });
  }
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
    executor_ = find_executor("nccl").make(1);
    noted.clear();
  }

  std::unique_ptr<Executor> executor_;
};

TEST_F(RoutinesOnNccl, RunInTheirTurnsAndAreTimed) {
  for (const char* name : {"copies", "hands_over"}) {
    const Schedule s = schedule_of(name);
    const std::vector<Schedule> all{s};
    ASSERT_FALSE(executor_->unsupported(all));
    executor_->prepare(all);
    const Slice from = s.buffer("from"), into = s.buffer("into");
    for (const float value : {3.0F, 5.0F}) {
      noted.clear();
      executor_->write(0, from, std::vector<float>(1000, value));
      executor_->scatter(0, into, 1, -1);
      executor_->synchronise();
      const double seconds = executor_->run();
      EXPECT_GT(seconds, few_cycles / fastest_clock) << "its kernel is in the time";
      std::vector<float> got(1000);
      executor_->read(got, 0, into);
      EXPECT_EQ(got, std::vector<float>(1000, value)) << name;
      EXPECT_EQ(executor_->checksum(0, std::vector{into}), executor_->checksum(0, std::vector{from}));
      EXPECT_THAT(noted, testing::EndsWith("prf")) << name;
    }
  }
}

TEST_F(RoutinesOnNccl, WorkThatIsNotOnTheirStreamIsAnError) {
  executor_->prepare({schedule_of("strays")});
  executor_->synchronise();
  try {
    executor_->run();
    FAIL() << "its work was not in the time";
  } catch (const SystemError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("behind the stream of the call: queue it on that stream"));
  }
}

}  // namespace
