// SPDX-License-Identifier: Apache-2.0
// The machine that the interpreter of peer programs runs on in tests: the threads of all ranks'
// kernels as fibers of one process, which a seed interleaves. A fiber gives way wherever a GPU's
// thread could be overtaken: before accesses to packets and flags, and at barriers.
#pragma once

#include <gtest/gtest.h>
#include <ucontext.h>
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "collectives/executors/cuda/matrices.hpp"
#include "collectives/executors/peer/device/round.cuh"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// What the threads of one block share.
struct HostBlock {
  unsigned threads = 0;
  unsigned arrived = 0;  // at the barrier
  unsigned barriers = 0;
  bool any = false;
  bool result = false;
  unsigned word = 0;
  std::vector<std::array<float, most_tile_elements>> tiles;  // made by the first product
};

/// One thread of a kernel.
struct Fiber {
  unsigned thread = 0;
  unsigned block = 0;
  unsigned blocks = 1;
  HostBlock* shared = nullptr;
  std::function<void()> body;
  bool ended = false;
  ucontext_t context{};
  static constexpr std::size_t stack_bytes = std::size_t{1} << 16;
  std::unique_ptr<std::byte[]> stack{
      new std::byte[stack_bytes]};  // left uninitialised: most of it is never touched
  void* announced = nullptr;        // to ThreadSanitizer
};

/// Runs fibers, one at a time.
class Fibers {
 public:
  static Fiber& current() { return *running(); }

  /// Starts the threads of a kernel, each of which runs `body`.
  static std::vector<std::unique_ptr<Fiber>> launch(unsigned blocks, unsigned threads,
                                                    std::vector<HostBlock>& shared,
                                                    const std::function<void()>& body) {
    shared.assign(blocks, {.threads = threads});
    std::vector<std::unique_ptr<Fiber>> fibers;
    for (unsigned i = 0; i < blocks * threads; ++i) {
      Fiber& fiber = *fibers.emplace_back(std::make_unique<Fiber>());
      fiber.thread = i % threads, fiber.block = i / threads, fiber.blocks = blocks;
      fiber.shared = &shared[fiber.block];
      fiber.body = body;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = Fiber::stack_bytes;
      makecontext(&fiber.context, run, 0);
#ifdef __SANITIZE_THREAD__
      fiber.announced = __tsan_create_fiber(0);
#endif
    }
    return fibers;
  }

  /// Runs `fiber` until it gives way or ends.
  static void resume(Fiber& fiber) {
    running() = &fiber;
#ifdef __SANITIZE_THREAD__
    home_announced() = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber.announced, 0);
#endif
    swapcontext(&home(), &fiber.context);
#ifdef __SANITIZE_THREAD__
    if (fiber.ended) __tsan_destroy_fiber(fiber.announced);
#endif
  }

  static void give_way() {
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(home_announced(), 0);
#endif
    swapcontext(&current().context, &home());
  }

  static std::mt19937_64& random() {
    static std::mt19937_64 engine;
    return engine;
  }

  /// Counts stores and barriers: while it stands still, all threads wait.
  static std::uint64_t& progress() {
    static std::uint64_t count = 0;
    return count;
  }

 private:
  static Fiber*& running() {
    static Fiber* fiber = nullptr;
    return fiber;
  }
  static ucontext_t& home() {
    static ucontext_t context;
    return context;
  }
  static void*& home_announced() {
    static void* fiber = nullptr;
    return fiber;
  }
  static void run() {
    current().body();
    current().ended = true;
    ++progress();
    give_way();
  }
};

/// The operations that gpu.cuh has for GPUs.
struct Host {
  static unsigned thread() { return Fibers::current().thread; }
  static unsigned threads() { return Fibers::current().shared->threads; }
  static unsigned block() { return Fibers::current().block; }
  static unsigned blocks() { return Fibers::current().blocks; }
  static int threads_of_warp() { return 4; }

  static void sync() { sync_or(false); }
  static bool sync_or(bool mine) {
    HostBlock& block = *Fibers::current().shared;
    block.any = block.any || mine;
    ++Fibers::progress();
    const unsigned barrier = block.barriers;
    if (++block.arrived == block.threads) {
      block.result = block.any;
      block.any = false;
      block.arrived = 0;
      ++block.barriers;
    }
    while (block.barriers == barrier) Fibers::give_way();
    return block.result;
  }
  static unsigned& shared_word() { return Fibers::current().shared->word; }

  static float* tile(int which) {
    auto& tiles = Fibers::current().shared->tiles;
    if (tiles.empty()) tiles.resize(4);
    auto* const address = tiles[static_cast<std::size_t>(which)].data();
    return reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(address) + 15) / 16 * 16);
  }
  /// Products as the plain ones of GPUs, whatever the width.
  template <unsigned width>
  class Products {
   public:
    static constexpr unsigned stride = width + 16;

    explicit Products(const Matrices& by) : by_(by) {}

    void prepare(unsigned /*at*/) const {}
    void multiply(float* y, const float* x, float* /*room*/, unsigned at, unsigned rows) const {
      const unsigned d = by_.row, line = width == 0 ? d : stride;
      for (unsigned i = thread(); i < rows * d; i += threads()) {
        const unsigned row = i / d, column = i % d;
        const float* const matrix = by_.first + std::size_t{(by_.before + at + row) / by_.share} * d * d;
        for (unsigned b = 0; b < d; ++b)
          y[row * line + column] +=
              x[row * line + b] * matrix[by_.transposed ? b * d + column : column * d + b];
      }
    }

   private:
    const Matrices& by_;
  };

  static void raise_flag(unsigned* flag, unsigned value) { poke(flag, value); }
  static unsigned load_flag(const unsigned* flag) { return peek(flag); }
  template <class Word>
  static Word peek(const Word* word) {
    Fibers::give_way();
    return *word;
  }
  static void poke(unsigned* word, unsigned value) {
    maybe_give_way();
    ++Fibers::progress();
    *word = value;
  }
  static unsigned exchange(unsigned* word, unsigned value) {
    ++Fibers::progress();
    return std::exchange(*word, value);
  }
  static unsigned long long add(unsigned long long* word, unsigned value) {
    ++Fibers::progress();
    return std::exchange(*word, *word + value);
  }
  static void fence() {}
  static void fence_system() {}
  static std::uint64_t nanoseconds() { return 0; }  // no thread ever gives up

  static unsigned min(unsigned a, unsigned b) { return std::min(a, b); }
  static float fma(float a, float b, float c) { return std::fma(a, b, c); }
  static unsigned bits(float value) { return std::bit_cast<unsigned>(value); }
  static float value(unsigned bits) { return std::bit_cast<float>(bits); }
  static unsigned bf16_pair(float low, float high) {
    return to_bf16(low) | static_cast<unsigned>(to_bf16(high)) << 16;
  }

  static void store_packet(std::byte* into, const Packet& packet) {
    maybe_give_way();
    ++Fibers::progress();
    const bool overwrites = !is_empty(packet) && !is_empty(read(into));
    EXPECT_FALSE(overwrites) << "a packet is stored over another one";
    std::memcpy(into, &packet, sizeof packet);
  }
  static Packet load_packet(const std::byte* from) {
    if (is_empty(read(from)))
      Fibers::give_way();
    else
      maybe_give_way();
    return read(from);
  }
  static float load(const float* from) { return *from; }
  template <int count>
  static Elements<count> load_elements(const float* from, unsigned n, bool whole) {
    EXPECT_TRUE(!whole || reinterpret_cast<std::uintptr_t>(from) % 16 == 0);
    Elements<count> x{};
    std::copy_n(from, std::min<unsigned>(n, count), x.v);
    return x;
  }
  template <int count>
  static Elements<count> load_shared(const float* from, unsigned n, bool whole) {
    return load_elements<count>(from, n, whole);
  }
  template <int count>
  static void store_elements(float* into, const Elements<count>& x, unsigned n, bool whole) {
    EXPECT_TRUE(!whole || reinterpret_cast<std::uintptr_t>(into) % 16 == 0);
    maybe_give_way();
    ++Fibers::progress();
    std::copy_n(x.v, std::min<unsigned>(n, count), into);
  }

 private:
  static void maybe_give_way() {
    if (Fibers::random()() % 4 == 0) Fibers::give_way();
  }
  static Packet read(const std::byte* from) {
    Packet packet;
    std::memcpy(&packet, from, sizeof packet);
    return packet;
  }
};

}  // namespace baton
