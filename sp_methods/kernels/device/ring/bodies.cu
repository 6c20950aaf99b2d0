// SPDX-License-Identifier: Apache-2.0
// The device bodies of the ring methods, under the names of their steps. Operands and parameters stand in the order in
// which sp_methods/ring.hpp, ring_attention.cpp and ring_attention_softmax.cpp record them.
#include <bit>

#include "collectives/executors/cuda/error.cuh"
#include "sp_methods/kernels/device/left_product/launch.cuh"
#include "sp_methods/kernels/device/ring/steps.cuh"
#include "sp_methods/kernels/device/softmax/launch.cuh"
#include "sp_methods/kernels/device/tile/operands.cuh"

namespace baton {
namespace {

const std::vector<std::int64_t>& numbers_of(const Kernel& kernel) {
  return std::any_cast<const std::vector<std::int64_t>&>(kernel.parameters);
}

std::int64_t written_count(const CudaKernelCall& x) {
  return static_cast<std::int64_t>(x.operands.writes[0].size());
}

void fill(const CudaKernelCall& x) {
  const auto bits = static_cast<std::int32_t>(numbers_of(x.kernel)[0]);
  cuda(ring_fill(x.stream, written(x, 0), std::bit_cast<float>(bits), written_count(x)));
}

bool writes_bf16(const CudaKernelCall& x) {
  return static_cast<Dtype>(numbers_of(x.kernel)[0]) == Dtype::bf16;
}
void add(const CudaKernelCall& x) {
  cuda(writes_bf16(x) ? ring_add(x.stream, written<Bf16>(x, 0), read(x, 0), written_count(x))
                      : ring_add(x.stream, written(x, 0), read(x, 0), written_count(x)));
}
void narrow(const CudaKernelCall& x) {
  cuda(ring_narrow(x.stream, written<Bf16>(x, 0), read(x, 0), written_count(x)));
}

GlaShape shape_of(const CudaKernelCall& x) {
  const auto& p = numbers_of(x.kernel);
  return {p[0], p[1], p[2], p[3], 64, static_cast<GateKind>(p[4])};
}

GlaDeviceInputs inputs_of(const CudaKernelCall& x) {
  return {read<Bf16>(x, 0), read<Bf16>(x, 1), read<Bf16>(x, 2), read<Bf16>(x, 3)};
}

/// Edges that lie in scratch of f32; what only reads them shares the type.
TileEdges edges_of(const GlaShape& s, const float* scratch) {
  const std::int64_t channels = s.heads * s.d_k, tiles = s.chunks();
  TileEdges edges;
  edges.totals = const_cast<float*>(scratch);
  edges.fractions = edges.totals + tiles * channels;
  // The exponents are integers of as many bytes.
  edges.exponents = reinterpret_cast<int*>(edges.fractions + (tiles + 1) * channels);
  return edges;
}

/// The rank of a call whose scaled queries and keys, and edges, lie there.
LeftProductRank rank_of(const CudaKernelCall& x, const Bf16* scaled, const float* edges) {
  LeftProductRank rank{.shape = shape_of(x), .in = inputs_of(x), .stream = x.stream};
  const GlaShape& s = rank.shape;
  const bool gated = s.gate != GateKind::none;
  rank.q = const_cast<Bf16*>(gated ? scaled : rank.in.q);
  rank.k = const_cast<Bf16*>(gated ? scaled + s.tokens * s.heads * s.d_k : rank.in.k);
  if (gated) rank.edges = edges_of(s, edges);
  return rank;
}

void left_product_keys(const CudaKernelCall& x) {
  cuda(
      left_product_scale(rank_of(x, written<Bf16>(x, 2), written(x, 3)), written<Bf16>(x, 0), written(x, 1)));
}

/// One chunk a segment, nothing before or after it: pairs within tiles.
Segments within_tiles(const LeftProductRank& rank) {
  return {.shape = rank.shape, .count = rank.shape.chunks()};
}

/// The call of one product between tiles of this rank, or with all of another rank's.
LeftProductCall call_of(const LeftProductRank& rank, bool rows_are_queries, bool own) {
  LeftProductCall call;
  call.tokens = rank.shape.tokens;
  call.heads = static_cast<int>(rank.shape.heads);
  call.scale = rank.shape.scale();
  call.rows_are_queries = rows_are_queries;
  call.adds = !own;
  call.columns = !own ? Columns::all : rows_are_queries ? Columns::earlier : Columns::later;
  if (rank.shape.gate == GateKind::none) return call;
  const int* of_queries = rank.edges.exponents;
  const int* of_keys = of_queries + rank.shape.heads * rank.shape.d_k;
  call.row_exponents = rows_are_queries ? of_queries : of_keys;
  call.column_exponents = rows_are_queries ? of_keys : of_queries;
  return call;
}

/// The three operands of a product, and where it goes.
struct Factors {
  const Bf16* left;
  const Bf16* middle;
  const Bf16* right;
  float* out;
};

/// `scores_of_keys`: whether queries meet keys, or values' gradients values.
void multiply(const LeftProductRank& rank, LeftProductCall call, const Factors& x, bool scores_of_keys) {
  const int d_k = static_cast<int>(rank.shape.d_k), d_v = static_cast<int>(rank.shape.d_v);
  call.left = x.left;
  call.middle = x.middle;
  call.right = x.right;
  call.out = x.out;
  const bool fades = rank.shape.gate != GateKind::none && call.columns != Columns::all;
  const Scaled scaled = !fades ? Scaled::nothing : scores_of_keys ? Scaled::inner : Scaled::outer;
  cuda(left_product(rank.stream, call, scores_of_keys ? d_k : d_v, scores_of_keys ? d_v : d_k, scaled));
}

void left_product_own_block(const CudaKernelCall& x) {
  const LeftProductRank rank = rank_of(x, read<Bf16>(x, 4), read(x, 5));
  cuda(segment_output(rank.stream, {.in = rank.in, .o = written<Bf16>(x, 0)}, within_tiles(rank)));
  multiply(rank, call_of(rank, true, true), {rank.q, rank.k, rank.in.v, written(x, 1)}, true);
}

/// The queries as they meet another rank's keys, made in `room` where there are gates.
const Bf16* queries_of_block(const LeftProductRank& rank, Bf16* room, const float* between) {
  if (rank.shape.gate == GateKind::none) return rank.in.q;
  cuda(left_product_queries(rank, room, between));
  return room;
}

void left_product_block(const CudaKernelCall& x) {
  const LeftProductRank rank = rank_of(x, read<Bf16>(x, 7), read(x, 8));
  const Bf16* queries = queries_of_block(rank, written<Bf16>(x, 1), read(x, 6));
  multiply(rank, call_of(rank, true, false), {queries, read<Bf16>(x, 4), read<Bf16>(x, 5), written(x, 0)},
           true);
}

/// dO meets values, and so do keys and queries with it.
struct BlockOperands {
  const Bf16* q;
  const Bf16* k;
  const Bf16* v;
  const Bf16* d_o;
};

void multiply_key_side(const LeftProductRank& rank, const BlockOperands& x, bool own, float* dy, float* dv) {
  const LeftProductCall of_keys = call_of(rank, false, own);
  multiply(rank, of_keys, {x.v, x.d_o, x.q, dy}, false);
  multiply(rank, of_keys, {x.k, x.q, x.d_o, dv}, true);
}

GlaDeviceGradients gradients_of(const CudaKernelCall& x) {
  return {written<Bf16>(x, 0), written<Bf16>(x, 1), written<Bf16>(x, 2), written<Bf16>(x, 3)};
}

void left_product_own_gradients(const CudaKernelCall& x) {
  const LeftProductRank rank = rank_of(x, read<Bf16>(x, 5), read(x, 6));
  const BlockOperands block{rank.q, rank.k, rank.in.v, read<Bf16>(x, 4)};
  const LeftProductSums sums{written(x, 4), written(x, 5), written(x, 6), written(x, 7)};
  cuda(segment_gradients(rank.stream, {.in = rank.in, .d_o = block.d_o, .out = gradients_of(x)},
                         within_tiles(rank)));
  multiply(rank, call_of(rank, true, true), {block.d_o, block.v, block.k, sums.dq}, false);
  multiply_key_side(rank, block, true, sums.dk, sums.dv);
  cuda(left_product_own_sums(rank, sums));
}

void left_product_block_gradients(const CudaKernelCall& x) {
  const LeftProductRank rank = rank_of(x, read<Bf16>(x, 8), read(x, 9));
  const float* between = read(x, 7);
  const Bf16* queries = queries_of_block(rank, written<Bf16>(x, 7), between);
  const BlockOperands block{queries, read<Bf16>(x, 5), read<Bf16>(x, 6), read<Bf16>(x, 4)};
  const LeftProductSums sums{.dq = written(x, 5), .z = written(x, 6)};
  const bool gated = rank.shape.gate != GateKind::none;
  LeftProductCall of_queries = call_of(rank, true, false);
  of_queries.adds = !gated;
  float* block_x = gated ? written(x, 8) : sums.dq;
  multiply(rank, of_queries, {block.d_o, block.v, block.k, block_x}, false);
  multiply_key_side(rank, block, false, written(x, 3), written(x, 4));
  cuda(left_product_block_sums(rank, sums, queries, block_x, between));
}

void left_product_home_gradients(const CudaKernelCall& x) {
  const LeftProductRank rank = rank_of(x, read<Bf16>(x, 4), written(x, 10));
  const LeftProductSums sums{written(x, 7), written(x, 8), const_cast<float*>(read(x, 5)), written(x, 9)};
  cuda(left_product_finish(rank, gradients_of(x), sums, {written(x, 5), written(x, 6)}, written(x, 4)));
}

void left_product_edge_gradients(const CudaKernelCall& x) {
  const GlaShape shape = shape_of(x);
  const LeftProductRank rank{.shape = shape, .edges = edges_of(shape, read(x, 3)), .stream = x.stream};
  cuda(left_product_gates(rank, written<Bf16>(x, 0), read(x, 2), read(x, 0)));
}

void extend_decay(const CudaKernelCall& x) {
  // Decays are of f32, two elements of a bf16 slice each.
  cuda(ring_multiply(x.stream, written(x, 0), read(x, 0), written_count(x) / 2));
}

SoftmaxShape softmax_shape_of(const CudaKernelCall& x) {
  const auto& p = numbers_of(x.kernel);
  return {p[0], p[0], p[1], p[2], p[3], {p[6], p[7], p[8]}, {p[9], p[10], p[11]}};
}

SoftmaxDeviceInputs softmax_inputs_of(const CudaKernelCall& x) {
  return {read<Bf16>(x, 0), read<Bf16>(x, 1), read<Bf16>(x, 2)};
}

void softmax_block(const CudaKernelCall& x) {
  cuda(softmax_device_block(x.stream, written(x, 0), written(x, 1), softmax_inputs_of(x),
                            softmax_shape_of(x)));
}

void merge_softmax(const CudaKernelCall& x) {
  cuda(softmax_device_merge(x.stream, written(x, 0), written(x, 1), read(x, 0), read(x, 1),
                            softmax_shape_of(x)));
}

void softmax_delta(const CudaKernelCall& x) {
  cuda(softmax_device_delta(x.stream, written(x, 0), read<Bf16>(x, 0), read(x, 1), softmax_shape_of(x)));
}

void softmax_block_gradients(const CudaKernelCall& x) {
  cuda(softmax_device_gradients(x.stream, {written(x, 0), written(x, 1), written(x, 2)}, softmax_inputs_of(x),
                                {read<Bf16>(x, 3), read(x, 4), read(x, 5)}, softmax_shape_of(x)));
}

Refusal unsupported(const Kernel& kernel) {
  const auto& p = numbers_of(kernel);
  return unsupported_in_tiles(kernel, p[5], p[2], p[3]);
}

const RegisteredCudaKernel registered[]{
    {"fill", fill},
    {"add", add},
    {"narrow", narrow},
    {"left_product_keys", left_product_keys, unsupported},
    {"left_product_own_block", left_product_own_block, unsupported},
    {"left_product_block", left_product_block, unsupported},
    {"left_product_own_gradients", left_product_own_gradients, unsupported},
    {"left_product_block_gradients", left_product_block_gradients, unsupported},
    {"left_product_home_gradients", left_product_home_gradients, unsupported},
    {"left_product_edge_gradients", left_product_edge_gradients, unsupported},
    {"extend_decay", extend_decay, unsupported},
    {"softmax_block", softmax_block, unsupported},
    {"merge_softmax", merge_softmax, unsupported},
    {"softmax_delta", softmax_delta, unsupported},
    {"softmax_block_gradients", softmax_block_gradients, unsupported},
};

}  // namespace
}  // namespace baton
