// SPDX-License-Identifier: Apache-2.0
// The mechanism of kernel contracts. A contract is one struct with a compute kernel's name,
// parameters, operands and cost.
//
//   struct Scale {
//     static constexpr const char* name = "scale";        // of the step and of the device body
//     struct Parameters { std::int64_t rows; };
//     template <class A>
//     struct Operands {
//       In<A, Tensor> x{};
//       InOut<A, State> sums{};
//       auto reads() { return std::tie(x, sums); }        // the order of the step's slices
//       auto writes() { return std::tie(sums); }
//     };
//     static double flops(const Parameters& p);
//     static double bytes(const Parameters& p);
//     static void on_host(const Operands<OnHost>& x, const Parameters& p);
//   };
//
// A method records the kernel with `record<Scale>(schedule, parameters, {.x = .., .sums = ..})`
// (sp_method.hpp), its host body gets the same members as pointers to float, and its device body,
// registered by `device_body<Scale>(scale)` (device/tile/tile.cuh) and from then on called
// `on_device<Scale>`, gets them as pointers to bf16 or float. A pointer is null where its slice is
// empty.
#pragma once

#include <any>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// The body that computes softmax blocks on a device: kernels under device/, or cuDNN.
enum class SoftmaxBody { own, cudnn };

inline const char* to_string(SoftmaxBody body) { return body == SoftmaxBody::own ? "own" : "cudnn"; }

/// A library that device bodies call, opened when the program runs.
struct KernelLibrary {
  /// The reason why the library's bodies cannot run on this machine; empty if they can.
  std::function<Refusal()> lacking = [] {
    return Refusal("cuDNN: this program was built without the headers of nvidia-cudnn-frontend");
  };
  /// Version of the library, such as "9.19.0", and how it was told to run. It may be called only if
  /// `lacking` returns an empty reason.
  std::function<std::string()> version = [] { return std::string(); };
  /// True if the library was told to give the same bits in every call.
  std::function<bool()> is_deterministic = [] { return false; };
};

/// The entry of cuDNN, which is set before `main` if cuDNN is built in.
inline KernelLibrary& cudnn_library() {
  static KernelLibrary library;
  return library;
}

/// Facts of the device's kernels that the recording of a layer needs. The defaults describe the
/// kernels under device/.
struct KernelTraits {
  /// Thread blocks that one call in segments should fill. Fewer blocks leave multiprocessors idle
  /// (H100 and H200 have 132), and each further segment costs one more state to write and read.
  std::int64_t blocks = 128;
  /// Tokens of a tile, for kernels with scratch memory for every tile.
  std::int64_t tile = 64;
  /// Values of d_k and d_v that the kernels of bf16 take.
  std::array<std::int64_t, 2> widths{64, 128};
  SoftmaxBody softmax = SoftmaxBody::own;

  /// True if the kernels of bf16 take heads of this width. cuDNN is asked for the very call later.
  constexpr bool takes(std::int64_t width) const {
    if (softmax == SoftmaxBody::cudnn) return width % 8 == 0 && width <= 256;
    return width == widths[0] || width == widths[1];
  }

  /// The reason why no kernel takes tensors of this type and these widths; empty if one does.
  Refusal unsupported(Dtype dtype, std::initializer_list<std::int64_t> of_heads) const {
    for (const std::int64_t width : of_heads)
      if (dtype == Dtype::bf16 && !takes(width) && softmax == SoftmaxBody::cudnn)
        return "cuDNN takes heads of up to 256 channels, a multiple of 8, not " + std::to_string(width);
      else if (dtype == Dtype::bf16 && !takes(width))
        return "kernels of bf16 are for d_k and d_v of " + std::to_string(widths[0]) + " and " +
               std::to_string(widths[1]) + ", not " + std::to_string(width);
    return {};
  }
};

/// An operand with the element type of the layer: f32 on the host, bf16 on a device.
struct Tensor {
  template <class Narrow>
  using Element = Narrow;
};

/// An operand that is f32 everywhere: states, decays, sums.
struct State {
  template <class Narrow>
  using Element = float;
};

/// Access of operands while a step is recorded: every member is a slice.
struct Recorded {
  template <class Kind>
  using In = Slice;
  template <class Kind>
  using Out = Slice;
};

/// Access of a body's operands: pointers, where `Narrow` is the type of a layer's elements.
template <class Narrow>
struct Pointers {
  template <class Kind>
  using In = const typename Kind::template Element<Narrow>*;
  template <class Kind>
  using Out = typename Kind::template Element<Narrow>*;
};
using OnHost = Pointers<float>;

/// A member of Operands that a kernel reads.
template <class Access, class Kind>
using In = typename Access::template In<Kind>;
/// A member of Operands that a kernel writes.
template <class Access, class Kind>
using Out = typename Access::template Out<Kind>;
/// A member of Operands that a kernel reads and writes.
template <class Access, class Kind>
using InOut = typename Access::template Out<Kind>;

/// Slices of a tie of members, in the order of the tie.
template <class... Slices>
std::vector<Slice> slices_of(const std::tuple<Slices&...>& members) {
  return std::apply([](const auto&... slice) { return std::vector<Slice>{slice...}; }, members);
}

/// Sets the pointers of `Operands` to a step's memory, HostOperands or DeviceOperands.
template <class Operands, class Memory>
Operands bind_operands(const Memory& memory) {
  Operands x;
  const auto set = [](auto& member, const auto& span) {
    using Pointer = std::remove_reference_t<decltype(member)>;
    member = span.empty() ? nullptr : reinterpret_cast<Pointer>(span.data());
  };
  std::apply(
      [&](auto&... member) {
        std::size_t i = 0;
        (set(member, memory.writes.at(i++)), ...);
      },
      x.writes());
  const auto set_read = [&](auto& member, const auto& span) {
    // A pointer to what is not const is an InOut member, which the writes have set.
    if constexpr (std::is_const_v<std::remove_pointer_t<std::remove_reference_t<decltype(member)>>>)
      set(member, span);
  };
  std::apply(
      [&](auto&... member) {
        std::size_t i = 0;
        (set_read(member, memory.reads.at(i++)), ...);
      },
      x.reads());
  return x;
}

/// The kernel of a contract, with its host body and its cost.
template <class Contract>
Kernel kernel_of(const typename Contract::Parameters& parameters) {
  return {.name = Contract::name,
          .body =
              [parameters](const HostOperands& memory) {
                Contract::on_host(bind_operands<typename Contract::template Operands<OnHost>>(memory),
                                  parameters);
              },
          .flops = Contract::flops(parameters),
          .bytes = Contract::bytes(parameters),
          .parameters = parameters};
}

/// The parameters that a kernel was recorded with. Throws std::logic_error if it is another
/// contract's.
template <class Contract>
const typename Contract::Parameters& parameters_of(const Kernel& kernel) {
  const auto* parameters = std::any_cast<typename Contract::Parameters>(&kernel.parameters);
  if (parameters == nullptr || kernel.name != Contract::name)
    throw std::logic_error("the kernel " + kernel.name + " was not recorded as " + Contract::name);
  return *parameters;
}

}  // namespace baton
