// SPDX-License-Identifier: Apache-2.0
// Softmax blocks by cuDNN against our own kernels, on the same operands.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "collectives/executors/cuda/memory.cuh"
#include "collectives/executors/cuda/ranks.cuh"
#include "sp_methods/kernels/device/tile/tile.cuh"
#include "sp_methods/kernels/softmax.hpp"

namespace {

using namespace baton;

constexpr double tolerance = 5e-3;

std::vector<float> drawn(std::int64_t count, unsigned seed, float scale = 1.0F) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& x : all) x = normal(random);
  return all;
}

/// Numbers on the device, f32 or bf16.
class Numbers {
 public:
  Numbers(const std::vector<float>& values, Dtype dtype)
      : dtype_(dtype), count_(values.size()), memory_(values.size() * bytes_of(dtype)) {
    std::vector<Bf16> narrow;
    for (const float x : values) narrow.push_back(__float2bfloat16(x));
    dtype == Dtype::f32 ? upload(values) : upload(narrow);
  }

  float* get() const { return reinterpret_cast<float*>(memory_.get()); }
  DeviceSlice<float> slice() const { return {get(), count_}; }

  std::vector<float> values() const {
    if (dtype_ == Dtype::f32) return download<float>();
    std::vector<float> all;
    for (const Bf16 x : download<Bf16>()) all.push_back(__bfloat162float(x));
    return all;
  }

 private:
  template <class Element>
  void upload(const std::vector<Element>& from) const {
    cuda(cudaMemcpy(get(), from.data(), from.size() * sizeof(Element), cudaMemcpyHostToDevice));
  }
  template <class Element>
  std::vector<Element> download() const {
    std::vector<Element> into(count_);
    cuda(cudaMemcpy(into.data(), get(), count_ * sizeof(Element), cudaMemcpyDeviceToHost));
    return into;
  }

  Dtype dtype_;
  std::size_t count_;
  DeviceBytes memory_;
};

/// Runs the registered body of a contract.
template <class Contract>
void run(const typename Contract::Parameters& parameters, const std::vector<const Numbers*>& reads,
         const std::vector<const Numbers*>& writes) {
  const Kernel kernel = kernel_of<Contract>(parameters);
  ASSERT_EQ(unsupported_on_device(kernel).reason(), "");
  DeviceOperands operands;
  for (const Numbers* x : reads) operands.reads.emplace_back(x->get(), x->slice().size());
  for (const Numbers* x : writes) operands.writes.push_back(x->slice());
  find_cuda_kernel(kernel)({nullptr, operands, kernel});
  cuda(cudaDeviceSynchronize());
}

/// |x - y| / |y|, of all elements together.
double relative_error(const std::vector<float>& x, const std::vector<float>& y) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference += std::pow(static_cast<double>(x[i]) - y[i], 2);
    size += std::pow(y[i], 2);
  }
  return std::sqrt(difference / std::max(size, 1e-30));
}

struct Block {
  std::string name;
  SoftmaxShape shape;

  std::string text() const {
    return name + ", " + std::to_string(shape.q_tokens) + " queries, d_k " + std::to_string(shape.d_k) +
           ", d_v " + std::to_string(shape.d_v);
  }
};

/// Blocks of every kind that methods record, for queries of `tokens`, an even number.
std::vector<Block> blocks(std::int64_t tokens, std::int64_t d_k, std::int64_t d_v) {
  const auto block = [&](const char* name, Positions q, Positions k, std::int64_t keys, Mask mask = {}) {
    return Block{
        name, {tokens, keys, 3, d_k, d_v, q, k, Dtype::bf16, 0, false, SoftmaxBody::own, Dtype::f32, mask}};
  };
  const auto zigzag = [&](int rank) { return Cut{Layout::zigzag, 3, tokens}.positions(rank); };
  const auto striped = [&](int rank) { return Cut{Layout::striped, 3, tokens}.positions(rank); };
  const Positions first = Positions::run(0, tokens), second = Positions::run(tokens, tokens);
  return {
      block("own block", second, second, tokens),
      block("block of a rank before", second, first, tokens),
      block("zigzag, own block", zigzag(1), zigzag(1), tokens),
      block("zigzag, half of the keys", zigzag(1), zigzag(0), tokens),
      block("zigzag, half of the queries", zigzag(1), zigzag(2), tokens),
      block("zigzag, gathered keys", zigzag(1), Positions::run(0, 5 * tokens / 2), 5 * tokens / 2),
      block("striped, rank before", striped(1), striped(0), tokens),
      block("striped, rank behind", striped(1), striped(2), tokens),
      block("full mask", first, second, tokens, {MaskKind::full}),
      block("full mask, half of the keys", zigzag(0), zigzag(1), tokens, {MaskKind::full, 3 * tokens / 2})};
}

std::vector<Block> all_blocks() {
  std::vector<Block> all;
  for (const std::int64_t tokens : {128, 200, 330})
    for (const auto& [d_k, d_v] : {std::pair{64, 64}, {128, 128}, {64, 128}})
      for (Block& one : blocks(tokens, d_k, d_v)) all.push_back(std::move(one));
  return all;
}

/// The operands of a block.
struct Operands {
  explicit Operands(const SoftmaxShape& s)
      : rows(s.q_tokens * s.heads),
        key_rows(s.k_tokens * s.key_heads()),
        q(drawn(rows * s.d_k, 1), Dtype::bf16),
        k(drawn(key_rows * s.d_k, 2), Dtype::bf16),
        v(drawn(key_rows * s.d_v, 3), Dtype::bf16),
        d_o(drawn(rows * s.d_v, 4), Dtype::bf16),
        delta(drawn(rows, 5, 0.3F), Dtype::f32) {}

  std::int64_t rows, key_rows;
  Numbers q, k, v, d_o, delta;
};

struct Attended {
  std::vector<float> out, lse;
};

Attended attended(SoftmaxShape s, const Operands& x, SoftmaxBody body, Dtype out_dtype = Dtype::f32) {
  s.body = body;
  s.out_dtype = out_dtype;
  const Numbers out(std::vector<float>(static_cast<std::size_t>(x.rows * s.d_v), NAN), out_dtype),
      lse(std::vector<float>(static_cast<std::size_t>(x.rows), NAN), Dtype::f32);
  run<SoftmaxBlock>(s, {&x.q, &x.k, &x.v}, {&out, &lse});
  return {out.values(), lse.values()};
}

struct Gradients {
  std::vector<float> dq, dk, dv;
};

/// Gradients of the block, without the `before` that the memory holds. Where they are set it holds
/// no numbers.
Gradients gradients(const SoftmaxShape& shape, const Operands& x, const std::vector<float>& lse,
                    SoftmaxBody body, GradientsInto into = {}) {
  const float before = into.sets ? NAN : 0.5F;
  SoftmaxGradientsShape s{shape, into, into};
  s.body = body;
  const auto memory = [&](std::int64_t count) {
    return Numbers(std::vector<float>(static_cast<std::size_t>(count), before), into.dtype);
  };
  const Numbers dq = memory(x.rows * s.d_k), dk = memory(x.key_rows * s.d_k), dv = memory(x.key_rows * s.d_v),
                all_lse(lse, Dtype::f32);
  run<SoftmaxBlockGradients>(s, {&x.q, &x.k, &x.v, &x.d_o, &all_lse, &x.delta, &dq, &dk, &dv},
                             {&dq, &dk, &dv});
  Gradients found{dq.values(), dk.values(), dv.values()};
  for (auto* all : {&found.dq, &found.dk, &found.dv})
    for (float& number : *all) number -= into.sets ? 0.0F : before;
  return found;
}

class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
    if (const Refusal lacking = cudnn_library().lacking()) GTEST_SKIP() << lacking.reason();
  }

  static void expect_alike(const std::string& what, const std::vector<float>& found,
                           const std::vector<float>& expected) {
    const double error = relative_error(found, expected);
    std::printf("%.2e  %s\n", error, what.c_str());
    EXPECT_LT(error, tolerance) << what;
  }

  static void expect_alike(const std::string& what, const Gradients& found, const Gradients& expected) {
    expect_alike("dq of " + what, found.dq, expected.dq);
    expect_alike("dk of " + what, found.dk, expected.dk);
    expect_alike("dv of " + what, found.dv, expected.dv);
  }
};

TEST_F(Cudnn, SaysItsVersion) { EXPECT_EQ(cudnn_library().version().substr(0, 2), "9."); }

TEST_F(Cudnn, AttendsAsOurKernelsDo) {
  for (const Block& block : all_blocks()) {
    const Operands x(block.shape);
    const Attended own = attended(block.shape, x, SoftmaxBody::own),
                   by_cudnn = attended(block.shape, x, SoftmaxBody::cudnn);
    expect_alike("out of " + block.text(), by_cudnn.out, own.out);
    for (std::size_t i = 0; i < own.lse.size(); ++i)
      if (std::isinf(own.lse[i]) ? by_cudnn.lse[i] != own.lse[i]
                                 : !(std::abs(by_cudnn.lse[i] - own.lse[i]) < 2e-3)) {
        ADD_FAILURE() << "lse of row " << i << " is " << by_cudnn.lse[i] << ", not " << own.lse[i] << ": "
                      << block.text();
        break;
      }
    const Attended narrow = attended(block.shape, x, SoftmaxBody::cudnn, Dtype::bf16);
    EXPECT_EQ(narrow.out, by_cudnn.out) << block.text();
    EXPECT_EQ(narrow.lse, by_cudnn.lse) << block.text();
  }
}

TEST_F(Cudnn, GivesTheGradientsOfOurKernels) {
  for (const Block& block : all_blocks()) {
    const Operands x(block.shape);
    // As if other blocks had been merged in.
    std::vector<float> lse = attended(block.shape, x, SoftmaxBody::own).lse;
    for (float& number : lse) number = (std::isinf(number) ? 0.0F : number) + 0.3F;
    const Gradients own = gradients(block.shape, x, lse, SoftmaxBody::own);
    expect_alike(block.text() + ", added", gradients(block.shape, x, lse, SoftmaxBody::cudnn), own);
    const GradientsInto sets{Dtype::f32, true}, sets_narrow{Dtype::bf16, true};
    expect_alike(block.text() + ", set", gradients(block.shape, x, lse, SoftmaxBody::cudnn, sets), own);
    if (block.name == "zigzag, gathered keys") continue;  // two runs, which only f32 sums
    expect_alike(block.text() + ", set in bf16",
                 gradients(block.shape, x, lse, SoftmaxBody::cudnn, sets_narrow), own);
  }
}

/// Every one of six query heads has its own copy of the keys for our kernels, which take no fewer.
TEST_F(Cudnn, SharesHeadsOfKeys) {
  constexpr std::int64_t tokens = 200, heads = 6, key_heads = 2, d = 64, shared = heads / key_heads;
  SoftmaxShape grouped{tokens, tokens, heads, d, d, {0, 0, tokens}, {0, 0, tokens}, Dtype::bf16, key_heads};
  SoftmaxShape whole = grouped;
  whole.kv_heads = 0;
  const Operands few(grouped);
  Operands many(whole);
  const auto repeated = [&](const Numbers& x) {
    const std::vector<float> from = x.values();
    std::vector<float> all;
    for (std::int64_t token = 0; token < tokens; ++token)
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto at = from.begin() + (token * key_heads + head / shared) * d;
        all.insert(all.end(), at, at + d);
      }
    return Numbers(all, Dtype::bf16);
  };
  const auto summed = [&](const std::vector<float>& from) {
    std::vector<float> all(static_cast<std::size_t>(tokens * key_heads * d));
    for (std::int64_t i = 0; i < tokens * heads * d; ++i)
      all[static_cast<std::size_t>((i / (heads * d) * key_heads + i / d % heads / shared) * d + i % d)] +=
          from[static_cast<std::size_t>(i)];
    return all;
  };
  many.k = repeated(few.k);
  many.v = repeated(few.v);
  const Attended own = attended(whole, many, SoftmaxBody::own);
  expect_alike("out of grouped heads", attended(grouped, few, SoftmaxBody::cudnn).out, own.out);
  Gradients expected = gradients(whole, many, own.lse, SoftmaxBody::own);
  expected.dk = summed(expected.dk);
  expected.dv = summed(expected.dv);
  expect_alike("grouped heads", gradients(grouped, few, own.lse, SoftmaxBody::cudnn), expected);
}

/// What lies around the blocks takes bf16 as well as f32, with one result for the same numbers.
TEST(SoftmaxParts, HaveOneResultInBothTypes) {
  if (const Refusal refusal = lacks_gpus(1)) GTEST_SKIP() << refusal.reason();
  SoftmaxShape s{77, 77, 3, 64, 128, {0, 0, 77}, {0, 0, 77}, Dtype::bf16};
  const std::int64_t rows = s.q_tokens * s.heads;
  const Numbers narrow(drawn(rows * s.d_v, 6), Dtype::bf16), wide(narrow.values(), Dtype::f32);
  const Numbers d_o(drawn(rows * s.d_v, 7), Dtype::bf16), lse(drawn(rows, 8), Dtype::f32);
  std::vector<std::vector<float>> merged, deltas, sums;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const Numbers& part = dtype == Dtype::f32 ? wide : narrow;
    s.out_dtype = dtype;
    const Numbers out(drawn(rows * s.d_v, 9), Dtype::f32), out_lse(drawn(rows, 10), Dtype::f32),
        delta(std::vector<float>(static_cast<std::size_t>(rows), NAN), Dtype::f32);
    run<MergeSoftmax>(s, {&part, &lse, &out, &out_lse}, {&out, &out_lse});
    run<SoftmaxDelta>(s, {&d_o, &part}, {&delta});
    merged.push_back(out.values());
    deltas.push_back(delta.values());
    run<Add>({rows * s.d_v, Dtype::f32, dtype}, {&part, &out}, {&out});
    sums.push_back(out.values());
  }
  EXPECT_EQ(merged[0], merged[1]);
  EXPECT_EQ(deltas[0], deltas[1]);
  EXPECT_EQ(sums[0], sums[1]);
}

}  // namespace
