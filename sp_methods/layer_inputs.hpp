// SPDX-License-Identifier: Apache-2.0
// Random inputs of one layer over all ranks. Each number is a function of the seed, the tensor, the
// token's position in the whole sequence, the head and the channel, so that every process can make
// every head, and two methods that lay tokens out in other ways get the same layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collectives/drawn_numbers.hpp"
#include "sp_methods/sp_method.hpp"

namespace baton {

/// How log gates are drawn.
///
///   layer:  as gated linear attention's layer makes them, logsigmoid(N(0, 1)) / 16; of a low-rank
///           rule as RWKV-7's does, -e^{-1/2} sigmoid(N(0, 1))
///   strong: uniform in [-8, 0], which needs the kernels' safe path
///   weak:   uniform in [-0.0002, 0]: every channel keeps its state over thousands of tokens
///   mixed:  of every four channels (heads, if a head has one gate) one keeps a state over all
///           ranks, about -1 in total; one forgets within a chunk, -0.25 to -0.5 a token, less
///           where chunks are longer than 128; two are as a layer makes them
///
/// A delta rule forgets by its keys too: those of a few times d_k tokens erase all that was there.
/// In `mixed`, most keys are therefore zero in the channels that keep a state. Then a rank's matrix
/// is about one in them at any length, and a wrong matrix is seen. So are the rows a and b of a
/// low-rank rule, which erase.
enum class GateDraw { layer, strong, weak, mixed };

const char* to_string(GateDraw draw);

/// The log of a gate that keeps a state from the next document: e^-20 of it is lost in the rounding
/// of f32 sums, and differences of sums of gates stay finite, unlike those of minus infinity.
inline constexpr float closed_gate = -20.0F;

/// One layer over all ranks.
struct LayerProblem {
  Attention attention = Attention::linear;
  /// The share of one rank.
  LayerShape share;
  int ranks = 1;
  /// True if every rank's tokens are a sequence of their own.
  bool alone = false;
  GateDraw gates = GateDraw::layer;
  std::uint64_t seed = 1;
  Dtype dtype = Dtype::f32;
  /// The rule of linear attention. Under a delta rule q and k have length one, and beta is the
  /// logistic function of N(0, 1). Under a low-rank rule q, k and a have length one, and b is -a
  /// (.) the logistic function of N(0, 1).
  Rule rule = Rule::decay;
  /// Positions, ascending, at which packed documents start in the tokens of all ranks.
  std::vector<std::int64_t> starts = {};
  /// True if the gates of a document's first token are closed_gate, so that local work needs to
  /// know of no start.
  bool has_closed_gates = false;
  /// The keys that queries of softmax attention see. Inputs are zero from position `mask.end` on.
  Mask mask = {};
  /// The states before the first token of the sequence and behind its last one. One that comes in
  /// and the gradient of one that goes out are drawn from N(0, 1).
  States states = States::none;
  /// How the tokens of the sequence are shared among the ranks.
  Shares shares = {};
  /// The position behind the last token of each document, if padding may follow it. Inputs are zero
  /// from there to the next start. Empty if documents have no padding of their own.
  std::vector<std::int64_t> ends = {};

  /// The positions, ascending, at which a sequence starts, and the end of the last one.
  std::vector<std::int64_t> edges() const;
  /// Number of tokens of a sequence, of the longest one if they differ.
  std::int64_t sequence() const { return alone ? share.tokens : all_tokens(); }
  /// Number of tokens of all ranks.
  std::int64_t all_tokens() const { return shares.are_equal() ? share.tokens * ranks : shares.sequence; }
  /// Number of tokens of all ranks without those that fill their shares. Padding of documents
  /// counts.
  std::int64_t real_tokens() const { return std::min(mask.end, all_tokens()); }
  /// True for a position of padding, where all inputs are zero.
  bool is_padding(std::int64_t position) const;
  /// Number of pairs of a query and a key, among real_tokens(), that softmax attention leaves in
  /// one head.
  double visible_pairs() const;
  /// Number of elements of one token in one head of the tensor called q, k, v, g, beta, a, b, d_o,
  /// o, dq, dk, dv, dg, dbeta, da, db or lse; of one head of a state, or of the weights conv_w and
  /// dconv_w. If keys are latent, v and dv have none.
  std::int64_t width(const std::string& name) const;
  /// True for the states at the ends of the sequence, which have no rows for tokens.
  static bool is_state(const std::string& name);
  /// The first position of the sequence that the token at `position` is in.
  std::int64_t start_of(std::int64_t position) const;
  /// Number of heads of the tensor called `name`.
  std::int64_t heads(const std::string& name) const {
    const TensorKind* kind = find_tensor(name);
    return kind != nullptr ? kind->heads(share) : share.heads;
  }
  /// The kind, 0 to 3, of the mixed gate of a channel, or of a head if a head has one gate. Kind 0
  /// keeps a state.
  std::uint64_t kind_of_gate(std::int64_t place) const;
  /// Number of elements of one token of the tensor called `name`.
  std::int64_t row(const std::string& name) const { return heads(name) * width(name); }
};

/// How the lengths of packed documents are drawn: uniformly from 1 to 2 mean - 1, or from a
/// lognormal distribution of the same mean with sigma 1.17, as a corpus has them: 47 % of the
/// documents have at most 0.46 of the mean.
enum class LengthDraw { uniform, lognormal };

const char* to_string(LengthDraw draw);

/// The positions at which packed documents start in the `tokens` of each rank. The first one starts
/// at 0. Of three ranks or more, a drawn one begins with a document if lengths are uniform.
std::vector<std::int64_t> drawn_starts(std::int64_t mean, std::int64_t tokens, int ranks, std::uint64_t seed,
                                       LengthDraw draw = LengthDraw::uniform);

/// The positions at which documents of these lengths start, but for those without tokens.
std::vector<std::int64_t> starts_of(std::span<const std::int64_t> lengths);

/// Documents with padding behind each.
struct PaddedDocuments {
  std::vector<std::int64_t> starts = {};  ///< Positions, ascending, at which they start.
  std::vector<std::int64_t> ends = {};    ///< The position behind the last token of each.
  std::int64_t tokens = 0;                ///< Of all of them with their padding.
};

/// The documents that start at `starts`, at least one, in a sequence of so many tokens, each padded
/// to a multiple of `multiple` tokens.
PaddedDocuments padded_documents(const std::vector<std::int64_t>& starts, std::int64_t tokens,
                                 std::int64_t multiple);

/// The inputs q, k, v, g, beta, a, b, d_o and conv_w of a layer, in numbers that its dtype holds
/// exactly.
class LayerInputValues {
 public:
  explicit LayerInputValues(const LayerProblem& problem) : problem_(problem) {}

  const LayerProblem& problem() const { return problem_; }

  /// Fills the rows [tokens, heads, width] of the input called `name` at `positions`, from token
  /// `first` on.
  void fill(const std::string& name, const Positions& positions, std::int64_t first,
            std::span<float> rows) const;
  /// The rows [tokens, width] of one head of the input called `name`, from position `first` on.
  std::vector<double> of_head(const std::string& name, std::int64_t head, std::int64_t first,
                              std::int64_t tokens) const;

 private:
  /// Draws rows of one tensor.
  class Rows;
  float gate(std::int64_t head, std::int64_t channel, std::uint16_t drawn) const;
  /// True if a document starts at the position.
  bool is_first(std::int64_t position) const {
    return std::binary_search(problem_.starts.begin(), problem_.starts.end(), position);
  }

  LayerProblem problem_;
};

}  // namespace baton
