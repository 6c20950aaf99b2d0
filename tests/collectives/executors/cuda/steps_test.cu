// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/steps.cuh"
#include "collectives/executors/host/memory.hpp"

namespace {

using namespace baton;

/// Runs one recorded step on the host and on the device over the same random numbers and compares
/// all buffers.
class CudaSteps : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  }

  static void expect_same(const Schedule& schedule) {
    HostMemory host(schedule);
    DeviceMemory device(schedule);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int i = 0; i < static_cast<int>(schedule.buffers().size()); ++i) {
      const Slice all{i, 0, schedule.buffers()[i].count};
      for (float& value : host.view(all)) value = draw(random);
      device.write(all, host.view(all));
    }
    const Step& step = schedule.steps().front();
    run_on_host(schedule, step, host.operands(step));
    run_on_device(nullptr, schedule, step, device.operands(step));
    cuda(cudaDeviceSynchronize());
    for (int i = 0; i < static_cast<int>(schedule.buffers().size()); ++i)
      expect_same(host, device, {i, 0, schedule.buffers()[i].count});
  }

 private:
  static void expect_same(HostMemory& host, const DeviceMemory& device, const Slice& all) {
    std::vector<float> got(all.count);
    device.read(got, all);
    const auto expected = host.view(all);
    for (std::size_t j = 0; j < got.size(); ++j)
      ASSERT_NEAR(got[j], expected[j], 1e-6f) << "buffer " << all.buffer << ", element " << j;
  }
};

/// Rows and elements of a row: wide, narrow, single, and more than one wave of threads.
const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{{8, 128}, {5, 3}, {1, 1}, {4096, 512}};

TEST_F(CudaSteps, ApplyAMapToAState) {
  for (const auto& [rows, row] : shapes) {
    Schedule s(0, 1);
    const Map own = s.scratch_map("own", {{}, {0, 0, rows * row}, row});
    const Slice earlier = s.scratch("earlier", rows * row), into = s.scratch("into", rows * row);
    s.combine({{}, into, row}, {{}, earlier, row}, own);
    expect_same(s);
  }
}

TEST_F(CudaSteps, ComposeMapsAlsoInPlace) {
  for (const auto& [rows, row] : shapes)
    for (int over : {0, 1, 2}) {  // a map of its own, the earlier one, the later one
      Schedule s(0, 1);
      const Map like{{}, {0, 0, rows * row}, row};
      const Map earlier = s.scratch_map("earlier", like), later = s.scratch_map("later", like);
      const Map into = s.scratch_map("into", like);
      s.combine(over == 0 ? into : over == 1 ? earlier : later, earlier, later);
      expect_same(s);
    }
}

TEST_F(CudaSteps, MapsWithADecayAHead) {
  for (const std::int64_t row : {8, 3})
    for (const std::int64_t cut : {0, 3, 5}) {  // within a head, and past one
      Schedule s(0, 1);
      const MapForm form{.kind = MapKind::scalar, .share = 4};
      const Map like{{}, {0, 0, 12 * row}, row, form};
      const Map own = s.scratch_map("own", like), earlier = s.scratch_map("earlier", like),
                into = s.scratch_map("into", like);
      const auto part = [&](const Map& map) { return map.part(cut, 12 - 2 * cut); };
      if (cut == 0) s.combine(into, earlier, own);
      if (cut > 0) s.combine(part(into.only_state()), part(earlier.only_state()), part(own));
      expect_same(s);
    }
}

TEST_F(CudaSteps, CombineSlicesThatAreNotAligned) {
  Schedule s(0, 1);
  const Map own = s.scratch_map("own", {{}, {0, 0, 7 * 8}, 8});
  const Slice earlier = s.scratch("earlier", 100), into = s.scratch("into", 100);
  s.combine({{}, into.part(3, 56), 8}, {{}, earlier.part(5, 56), 8}, own);
  expect_same(s);
}

TEST_F(CudaSteps, Copy) {
  Schedule s(0, 1);
  const Slice from = s.scratch("from", 1001), into = s.scratch("into", 1001);
  s.copy(into.part(1, 999), from.part(2, 999));
  expect_same(s);
}

TEST_F(CudaSteps, AKernelWithoutDeviceBodyIsAReasonToSkip) {
  Schedule s(0, 1);
  s.compute({"no_such_kernel", {}}, {s.scratch("into", 1)}, {});
  EXPECT_EQ(lacks_device_body(s), "the kernel no_such_kernel has no device body");
}

}  // namespace
