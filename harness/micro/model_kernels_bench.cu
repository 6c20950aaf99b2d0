// SPDX-License-Identifier: Apache-2.0
// Times of the kernels of a model's block on one device, built by preset cuda.
//
// Medians of 50 runs after 5 at the sizes of gla-1b-h16 with 32768 tokens. Their results are
// checked by tests/models/kernels/device/bodies_test.cu.
#include <cstdio>
#include <string>

#include "harness/micro/device_times.cuh"
#include "sp_methods/models/kernels/device/product.cuh"
#include "tests/sp_methods/models/kernels/device/steps.cuh"

namespace baton {
namespace {

constexpr std::int64_t tokens = 32768, width = 2048, heads = 16, d_v = 128, mlp = 5632, vocabulary = 32000;

void print(const std::string& what, const DeviceStep& step) {
  if (const Refusal refusal = step.unsupported()) {
    std::printf("  %-34s %s\n", what.c_str(), refusal.reason().c_str());
    return;
  }
  const double seconds = median_seconds({[&](int) { step.enqueue(nullptr); }}).front(),
               flops = step.kernel().flops, bytes = step.kernel().bytes;
  std::printf("  %-34s %8.4f ms %7.1f MB %5.2f TB/s %7.1f Tflop/s\n", what.c_str(), seconds * 1e3,
              bytes * 1e-6, bytes / seconds * 1e-12, flops / seconds * 1e-12);
  std::fflush(stdout);
}

/// Times the products of a weight [rows, columns]: its outputs, the gradients of its inputs, and
/// its own gradient.
void print_products(const std::string& what, std::int64_t rows, std::int64_t columns) {
  constexpr Dtype bf16 = Dtype::bf16;
  print(what, product_step({.rows = tokens, .columns = columns, .depth = rows, .out = bf16}));
  print(what + ", back", product_step({.rows = tokens,
                                       .columns = rows,
                                       .depth = columns,
                                       .transposes_b = true,
                                       .adds = true,
                                       .out = bf16},
                                      true));
  print(what + ", gradient",
        product_step({.rows = rows, .columns = columns, .depth = tokens, .transposes_a = true}));
}

template <class Contract>
void print_rows(std::int64_t count, std::int64_t of) {
  print(std::string(Contract::name) + " of " + std::to_string(of), row_step<Contract>(count, of));
}

void run() {
  cudaDeviceProp properties{};
  cuda(cudaGetDeviceProperties(&properties, 0));
  std::printf("%s, %lld tokens, width %lld, %lld heads of %lld, mlp %lld\n", properties.name,
              static_cast<long long>(tokens), static_cast<long long>(width), static_cast<long long>(heads),
              static_cast<long long>(d_v), static_cast<long long>(mlp));
  print_rows<RmsNorm>(tokens, width);
  print_rows<RmsNormGradients>(tokens, width);
  print_rows<GatedNorm>(tokens * heads, d_v);
  print_rows<GatedNormGradients>(tokens * heads, d_v);
  print_rows<LogGates>(tokens, width);
  print_rows<LogGateGradients>(tokens, width);
  print_rows<SwiGlu>(tokens, mlp);
  print_rows<SwiGluGradients>(tokens, mlp);
  print_products("2048 x 2048", width, width);
  print_products("2048 x 5632", width, mlp);
  print_products("5632 x 2048", mlp, width);
  print_products("2048 x 16", width, 16);
  print_products("16 x 2048", 16, width);
  std::printf("%s\n", product_library().version().c_str());
  const TokenRows ends{tokens, vocabulary, width, Dtype::bf16};
  print("embed", embed_step(ends));
  print("embed_gradients", embed_gradients_step(ends));
  print("cross_entropy of 4096 tokens", loss_step(4096, vocabulary));
  print("adamw of 50 million", adamw_step(50'000'000));
}

}  // namespace
}  // namespace baton

int main() { return baton::run_device_bench("model_kernels_bench", baton::run); }
