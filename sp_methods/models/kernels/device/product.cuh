// SPDX-License-Identifier: Apache-2.0
// Products of matrices on a device, by a library that is opened when the program runs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <string>

#include "collectives/schedule/errors.hpp"
#include "sp_methods/models/kernels/block.hpp"

namespace baton {

/// The operands of a product; c is null where nothing is added.
struct ProductOperands {
  const void *a, *b, *c;
  void* out;
};

/// A library that multiplies matrices.
struct ProductLibrary {
  /// Opens the library and chooses how it computes these products, once a shape. Returns the reason
  /// why that is impossible, if it is. Called outside rounds, before the first of them.
  std::function<Refusal(const Product&)> plan = [](const Product&) {
    return Refusal("cuBLASLt: this program was built without cublasLt.h");
  };
  /// Enqueues planned products. Throws SystemError if the library fails.
  std::function<void(cudaStream_t, const ProductOperands&, const Product&)> enqueue;
  /// Name and version of the library, once it was opened.
  std::function<std::string()> version = [] { return std::string(); };
};

/// The library of products that is built in; its entry is set before `main`.
inline ProductLibrary& product_library() {
  static ProductLibrary library;
  return library;
}

/// Bytes that the bodies of a model take of the shared workspace. It is what cuBLASLt's guide
/// recommends for Hopper; sums over rows need less.
inline constexpr std::size_t model_workspace_bytes = std::size_t{32} << 20;

}  // namespace baton
