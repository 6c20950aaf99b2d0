// SPDX-License-Identifier: Apache-2.0
// The instruction that multiplies tiles by a group of four warps, and what stands around it.
//
//   C [64, n] += L [64, x] R [x, n],   C in registers, R in shared memory, L in either
//
// Products run beside the threads: their sums may be read after a wait alone.
// Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions", "Matrix Descriptor Format"
// and "Strides".
#pragma once

#include <type_traits>

#include "sp_methods/kernels/device/tile/warp_group.cuh"

namespace baton {

/// Direction of an operand's panels in shared memory. `outer` means panels along the outer index
/// and rows along the summed one.
enum class PanelsAlong { summed, outer };

/// The descriptor, for the matrix units, of an operand in a tile of `rows` rows.
template <PanelsAlong along, int rows = device_chunk>
class PanelOperand {
 public:
  /// Makes the descriptor for an operand at `memory`, the first row of its outer index or its first
  /// panel.
  __device__ explicit PanelOperand(const char* memory)
      : bits_((static_cast<std::uint64_t>(1) << 62) | (static_cast<std::uint64_t>(1024 >> 4) << 32) |
              (static_cast<std::uint64_t>(panel >> 4) << 16) | (shared_address(memory) >> 4)) {}

  /// The descriptor for step `step`, of 16 elements along the summed index.
  __device__ std::uint64_t at(int step) const {
    const int bytes = along == PanelsAlong::outer ? step * 2048 : step / 4 * panel + step % 4 * 32;
    return bits_ + static_cast<std::uint64_t>(bytes >> 4);
  }
  static constexpr int turned = along == PanelsAlong::outer ? 1 : 0;

 private:
  static constexpr int panel = PanelTile<64, rows>::panel_bytes;
  std::uint64_t bits_;
};

/// Starts one step of sums (+)= left right; without `add` the sums are replaced. The left operand
/// is in shared memory, or its pieces are in registers.
template <class Left, class Right>
__device__ inline void multiply_step(GroupSums<16>& sums, const Left& left, const Right& right, int step,
                                     bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7"
      "}, %8, %9, p, 1, 1, %11, %12;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7])
      : "l"(left.at(step)), "l"(right.at(step)), "r"(static_cast<int>(add)), "n"(Left::turned),
        "n"(Right::turned));
}
template <class Left, class Right>
__device__ inline void multiply_step(GroupSums<32>& sums, const Left& left, const Right& right, int step,
                                     bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %18, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
      "}, %16, %17, p, 1, 1, %19, %20;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15])
      : "l"(left.at(step)), "l"(right.at(step)), "r"(static_cast<int>(add)), "n"(Left::turned),
        "n"(Right::turned));
}
template <class Right>
__device__ inline void multiply_step(GroupSums<32>& sums, const std::uint32_t (&a)[4], const Right& right,
                                     int step, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %21, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
      "}, {%16,%17,%18,%19}, %20, p, 1, 1, %22;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right.at(step)), "r"(static_cast<int>(add)),
        "n"(Right::turned));
}
template <class Left, class Right>
__device__ inline void multiply_step(GroupSums<64>& sums, const Left& left, const Right& right, int step,
                                     bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
      "%26,%27,%28,%29,%30,%31"
      "}, %32, %33, p, 1, 1, %35, %36;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15]),
        "+f"(sums.c[16]), "+f"(sums.c[17]), "+f"(sums.c[18]), "+f"(sums.c[19]), "+f"(sums.c[20]),
        "+f"(sums.c[21]), "+f"(sums.c[22]), "+f"(sums.c[23]), "+f"(sums.c[24]), "+f"(sums.c[25]),
        "+f"(sums.c[26]), "+f"(sums.c[27]), "+f"(sums.c[28]), "+f"(sums.c[29]), "+f"(sums.c[30]),
        "+f"(sums.c[31])
      : "l"(left.at(step)), "l"(right.at(step)), "r"(static_cast<int>(add)), "n"(Left::turned),
        "n"(Right::turned));
}
template <class Right>
__device__ inline void multiply_step(GroupSums<64>& sums, const std::uint32_t (&a)[4], const Right& right,
                                     int step, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
      "%26,%27,%28,%29,%30,%31"
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, %38;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15]),
        "+f"(sums.c[16]), "+f"(sums.c[17]), "+f"(sums.c[18]), "+f"(sums.c[19]), "+f"(sums.c[20]),
        "+f"(sums.c[21]), "+f"(sums.c[22]), "+f"(sums.c[23]), "+f"(sums.c[24]), "+f"(sums.c[25]),
        "+f"(sums.c[26]), "+f"(sums.c[27]), "+f"(sums.c[28]), "+f"(sums.c[29]), "+f"(sums.c[30]),
        "+f"(sums.c[31])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right.at(step)), "r"(static_cast<int>(add)),
        "n"(Right::turned));
}
template <class Left, class Right>
__device__ inline void multiply_step(GroupSums<128>& sums, const Left& left, const Right& right, int step,
                                     bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
      "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
      "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
      "}, %64, %65, p, 1, 1, %67, %68;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15]),
        "+f"(sums.c[16]), "+f"(sums.c[17]), "+f"(sums.c[18]), "+f"(sums.c[19]), "+f"(sums.c[20]),
        "+f"(sums.c[21]), "+f"(sums.c[22]), "+f"(sums.c[23]), "+f"(sums.c[24]), "+f"(sums.c[25]),
        "+f"(sums.c[26]), "+f"(sums.c[27]), "+f"(sums.c[28]), "+f"(sums.c[29]), "+f"(sums.c[30]),
        "+f"(sums.c[31]), "+f"(sums.c[32]), "+f"(sums.c[33]), "+f"(sums.c[34]), "+f"(sums.c[35]),
        "+f"(sums.c[36]), "+f"(sums.c[37]), "+f"(sums.c[38]), "+f"(sums.c[39]), "+f"(sums.c[40]),
        "+f"(sums.c[41]), "+f"(sums.c[42]), "+f"(sums.c[43]), "+f"(sums.c[44]), "+f"(sums.c[45]),
        "+f"(sums.c[46]), "+f"(sums.c[47]), "+f"(sums.c[48]), "+f"(sums.c[49]), "+f"(sums.c[50]),
        "+f"(sums.c[51]), "+f"(sums.c[52]), "+f"(sums.c[53]), "+f"(sums.c[54]), "+f"(sums.c[55]),
        "+f"(sums.c[56]), "+f"(sums.c[57]), "+f"(sums.c[58]), "+f"(sums.c[59]), "+f"(sums.c[60]),
        "+f"(sums.c[61]), "+f"(sums.c[62]), "+f"(sums.c[63])
      : "l"(left.at(step)), "l"(right.at(step)), "r"(static_cast<int>(add)), "n"(Left::turned),
        "n"(Right::turned));
}
template <class Right>
__device__ inline void multiply_step(GroupSums<128>& sums, const std::uint32_t (&a)[4], const Right& right,
                                     int step, bool add) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
      "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
      "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
      "}, {%64,%65,%66,%67}, %68, p, 1, 1, %70;}"
      : "+f"(sums.c[0]), "+f"(sums.c[1]), "+f"(sums.c[2]), "+f"(sums.c[3]), "+f"(sums.c[4]), "+f"(sums.c[5]),
        "+f"(sums.c[6]), "+f"(sums.c[7]), "+f"(sums.c[8]), "+f"(sums.c[9]), "+f"(sums.c[10]),
        "+f"(sums.c[11]), "+f"(sums.c[12]), "+f"(sums.c[13]), "+f"(sums.c[14]), "+f"(sums.c[15]),
        "+f"(sums.c[16]), "+f"(sums.c[17]), "+f"(sums.c[18]), "+f"(sums.c[19]), "+f"(sums.c[20]),
        "+f"(sums.c[21]), "+f"(sums.c[22]), "+f"(sums.c[23]), "+f"(sums.c[24]), "+f"(sums.c[25]),
        "+f"(sums.c[26]), "+f"(sums.c[27]), "+f"(sums.c[28]), "+f"(sums.c[29]), "+f"(sums.c[30]),
        "+f"(sums.c[31]), "+f"(sums.c[32]), "+f"(sums.c[33]), "+f"(sums.c[34]), "+f"(sums.c[35]),
        "+f"(sums.c[36]), "+f"(sums.c[37]), "+f"(sums.c[38]), "+f"(sums.c[39]), "+f"(sums.c[40]),
        "+f"(sums.c[41]), "+f"(sums.c[42]), "+f"(sums.c[43]), "+f"(sums.c[44]), "+f"(sums.c[45]),
        "+f"(sums.c[46]), "+f"(sums.c[47]), "+f"(sums.c[48]), "+f"(sums.c[49]), "+f"(sums.c[50]),
        "+f"(sums.c[51]), "+f"(sums.c[52]), "+f"(sums.c[53]), "+f"(sums.c[54]), "+f"(sums.c[55]),
        "+f"(sums.c[56]), "+f"(sums.c[57]), "+f"(sums.c[58]), "+f"(sums.c[59]), "+f"(sums.c[60]),
        "+f"(sums.c[61]), "+f"(sums.c[62]), "+f"(sums.c[63])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(right.at(step)), "r"(static_cast<int>(add)),
        "n"(Right::turned));
}

/// Starts all steps of sums (+)= left right; without `add` the sums are replaced. The left operand
/// is in shared memory, or an array of `steps` pieces in registers.
template <int steps, int columns, class Left, class Right>
__device__ inline void start_product(GroupSums<columns>& sums, const Left& left, const Right& right,
                                     bool add) {
  if (!add) sums.clear();
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    if constexpr (std::is_array_v<Left>) {
      multiply_step(sums, left[step], right, step, add || step > 0);
    } else {
      multiply_step(sums, left, right, step, add || step > 0);
    }
  }
}

/// Orders writes to the registers of operands before the products that follow.
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// Closes a group of products that wait_for_products counts.
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits until at most `pending` of this group's committed groups of products are incomplete.
template <int pending>
__device__ inline void wait_for_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
/// Makes this thread's stores to shared memory visible to the matrix units; called before a
/// barrier.
__device__ inline void show_to_products() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace baton
