// SPDX-License-Identifier: Apache-2.0
// A sequence-parallel method records one layer's attention, its sequence cut over the ranks.
//
// Its local kernels are `compute` steps. The exchange is recorded among them, often as an embedded
// collective. The slices that the steps touch decide which of them overlap.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/schedule.hpp"
#include "sp_methods/kernels/contracts.hpp"
#include "sp_methods/kernels/shape.hpp"

namespace baton {

/// The passes that a schedule runs: the layer, its gradients, or one after the other.
enum class Pass { forward, backward, both };

/// How a method's exchange runs: as the method was published, waited for at once, or left out.
/// Without an exchange each rank's tokens are a sequence of their own.
enum class Mode { overlapped, exposed, compute_only };

/// The attention of a layer: linear attention, or softmax attention.
enum class Attention { linear, softmax };

/// How a token of linear attention changes the state. Gated linear attention lets it decay and adds
/// k^T v; a delta rule first takes out what the state returns for k (kernels/delta.hpp); a
/// low-rank rule adds what the state returns for a key of its own along another one
/// (kernels/low_rank.hpp).
enum class Rule { decay, delta, low_rank };

/// The states at the ends of a layer's sequence: one that comes in before its first token, as from
/// an earlier part of a prefill; one that goes out behind its last token; both, or none. With each
/// goes its gradient.
enum class States { none, in, out, both };

constexpr bool comes_in(States states) { return states == States::in || states == States::both; }
constexpr bool goes_out(States states) { return states == States::out || states == States::both; }

/// True if a rank's tokens map the state by a matrix a head, false if by decays.
constexpr bool has_matrices(Rule rule) { return rule != Rule::decay; }

/// The tokens that a rank works on: its share of the sequence; its share, as a sequence of its own;
/// or all of the sequence on the first rank, and nothing on the others.
enum class Sequence { cut, own, whole };

const char* to_string(Pass pass);
const char* to_string(Mode mode);
const char* to_string(Attention attention);
const char* to_string(GateKind gate);
/// What the word of a mask with a window begins with; its number of keys follows.
inline constexpr std::string_view window_prefix = "window:";
/// A mask in users' words: causal, full, or window:W for a window of W keys.
std::string to_string(const Mask& mask);
/// Shares in users' words: padded, even, last, or the tokens of each rank, as in 3,0,1.
std::string to_string(const Shares& shares);
const char* to_string(Rule rule);
const char* to_string(States states);
/// The attention of a layer in users' words: softmax, linear, and of a delta rule kda, gdn or
/// deltanet, for a gate a channel, a gate a head or none; rwkv7 for a low-rank rule.
const char* attention_name(Attention attention, Rule rule, GateKind gate);

/// One layer on one rank.
struct Layer {
  /// Sizes of one rank's share: of the largest one, or within `build` of the rank's own.
  LayerShape share;
  /// How the tokens of the sequence are shared. Padded shares are all equal.
  Shares shares = {};
  /// The rule by which tokens of linear attention change the state.
  Rule rule = Rule::decay;
  Pass pass = Pass::forward;
  Mode mode = Mode::overlapped;
  /// The states at the ends of the sequence of linear attention.
  States states = States::none;
  /// The number of head groups, whose exchanges follow one another.
  int groups = 1;
  /// The exclusive scan that carries the states; the method's own if empty.
  std::string scan;
  /// The number of blocks of a state, for scans that cut it.
  int blocks = 1;
  /// The type of the tensors; states are f32.
  Dtype dtype = Dtype::f32;
  /// True if local work runs as on a device. Linear attention then runs in segments
  /// (gla_segments.hpp) instead of chunks whose states are all kept (gla_chunks.hpp), and Ring
  /// Attention sums up in f32 beside its tensors.
  bool segmented = false;
  /// Facts of the device's kernels, for recordings that depend on them.
  KernelTraits kernels;
  /// Memory that this layer's forward recording leaves to its backward recording, by name. It is
  /// null unless a schedule of several layers has all forward passes before the backward passes.
  std::shared_ptr<std::map<std::string, Slice>> saved = nullptr;
  /// Positions, ascending, at which packed documents start in the tokens of all ranks. No state
  /// passes a start, and no query sees keys before that of its document; if there is none, all
  /// tokens are one document.
  std::vector<std::int64_t> starts = {};
  /// The keys that queries of softmax attention see; the state of linear attention is causal.
  /// Tokens from `mask.end` on are padding under every method: all their inputs are zero.
  Mask mask = {};

  /// Keeps states within documents: cuts the chunks of `share`, whose first token is at position
  /// `first`, at the starts. Segmented work needs no cut: its inputs have closed gates there. Nor
  /// has a document one that goes on from a state before the sequence.
  void cut_documents(std::int64_t first) {
    std::vector<std::int64_t> cuts = segmented ? std::vector<std::int64_t>{} : starts;
    if (comes_in(states)) std::erase(cuts, 0);
    cut_at_starts(share, cuts, first);
  }
};

/// The shape of the maps that `heads` heads of a layer exchange.
inline Shape shape_of_maps(const Layer& layer, std::int64_t heads) {
  const MapKind kind = has_matrices(layer.rule) ? MapKind::affine : MapKind::diagonal;
  return {heads, layer.share.d_k, layer.share.d_v, layer.share.tokens, kind};
}

/// The cut of a layer's sequence over `ranks` ranks on which it lies in `layout`.
inline Cut cut_of(const Layer& layer, Layout layout, std::int64_t ranks) {
  return Cut::of(layout, ranks, layer.share.tokens, layer.shares);
}

/// One rank's tensors, [tokens, heads, width] each, and states as maps have them, [heads, d_k,
/// d_v], or [heads, d_v, d_k] where maps have matrices. Tensors that a layer, a pass or a rank has
/// none of are empty.
struct LayerTensors {
  Slice q, k, v, g, beta, a, b, d_o;       // inputs
  Slice o, dq, dk, dv, dg, dbeta, da, db;  // outputs
  /// The state before the sequence and the gradient of the one behind it, which are inputs.
  Slice initial_state, d_final_state;
  /// The state behind the sequence and the gradient of the one before it, which are outputs.
  Slice final_state, d_initial_state;
  Slice conv_w, dconv_w;  // weights [channels of q, of k, of v; width], dconv_w in f32

  /// The inputs q, k, v and g as operands of a kernel.
  LayerInputs<Recorded> inputs() const { return {q, k, v, g}; }
  /// The gradients dq, dk, dv and dg as operands of a kernel.
  LayerGradients<Recorded> gradients() const { return {dq, dk, dv, dg}; }

  /// The tensors' rows of `count` of a rank's `all` tokens, from token `first` on, without states.
  LayerTensors rows(std::int64_t first, std::int64_t count, std::int64_t all) const;
};

/// The properties of one tensor of a layer, whatever the layer's sizes.
struct TensorKind {
  enum class Role { input, output, output_gradient, gradient, weight, weight_gradient };
  enum class End { start, finish };

  std::string_view name;
  Slice LayerTensors::*slice;
  Role role;
  /// Number of elements of one token in one head, of a state in one head, or of all weights; 0 if a
  /// layer of this share has no such tensor.
  std::int64_t (*width)(const LayerShape& share);
  /// Number of heads of the tensor.
  std::int64_t (*heads)(const LayerShape& share);
  /// The only rule whose layers have the tensor; empty if all have it.
  std::optional<Rule> rule = std::nullopt;
  /// Where the sequence has the state, at its start or at its end; empty for tensors of tokens.
  std::optional<End> end = std::nullopt;

  /// True for tensors without tokens, which the sequences of a batch share.
  bool is_weight() const { return role == Role::weight || role == Role::weight_gradient; }
  /// True if a layer with rule `other` has the tensor in `pass`.
  bool is_in(Rule other, Pass pass) const {
    if (rule && *rule != other) return false;
    if (role == Role::input || role == Role::weight) return true;
    return pass != (role == Role::output ? Pass::backward : Pass::forward);
  }
};

/// The tensors of all layers that have rows for each token, in the order of a schedule's buffers.
std::span<const TensorKind> tensor_kinds();

/// The tensor or state called `name`, or a null pointer.
const TensorKind* find_tensor(std::string_view name);

/// Records one call of a contract's kernel.
template <class Contract>
void record(Schedule& schedule, const typename Contract::Parameters& parameters,
            typename Contract::template Operands<Recorded> operands,
            std::source_location source = std::source_location::current()) {
  schedule.compute(kernel_of<Contract>(parameters), slices_of(operands.writes()), slices_of(operands.reads()),
                   source);
}

/// The tokens, and the heads of each sequence, whose tensors a rank has.
struct TensorPart {
  Positions positions;
  std::int64_t tokens = 0;
  std::int64_t first_head = 0;
  std::int64_t heads = 0;
};

/// Prefix of the names of inputs that the forward pass has gathered and kept: "kept_q".
inline constexpr std::string_view kept_prefix = "kept_";
/// Prefix of the names of the rows before each run of a rank that the forward pass of a convolution
/// has received and kept: "halo_q".
inline constexpr std::string_view halo_prefix = "halo_";

/// A named sequence-parallel method.
struct SpMethod {
  std::string name;
  /// One line: where it comes from and what it exchanges.
  std::string summary;
  Attention attention = Attention::linear;
  /// The rules of linear attention that the method knows. Once registered, it refuses other rules.
  std::vector<Rule> rules{Rule::decay};
  /// True if the method takes packed documents. Once registered, a method refuses them otherwise.
  bool packs = false;
  /// True if the method takes ranks with different numbers of tokens, or none. Once registered, a
  /// method refuses them otherwise.
  bool shares_unequally = false;
  /// True if the method is for masks with a window alone. Once registered, it refuses others.
  bool needs_window = false;
  /// True if the method takes states at the ends of the sequence. Once registered, a method refuses
  /// them otherwise, and mode compute_only with them.
  bool has_states = false;
  /// True if the method has a convolution before q, k and v where the layer has one
  /// (passes/convolution.hpp). Once registered, a method refuses such a layer otherwise.
  bool convolves = false;
  /// True if the method takes fewer heads of q and k than of v (passes/grouped_heads.hpp). Once
  /// registered, a method refuses such a layer otherwise.
  bool groups_heads = false;
  /// The scan that the method uses by default; empty if it uses none.
  std::string scan;
  /// Records the schedule of one rank.
  std::function<void(Schedule&, const Layer&, const LayerTensors&)> build;
  /// Claimed cost of a layer that the method does not refuse, in every pass and mode, as `check`
  /// counts it. The function must be set; it returns nothing if a scan beneath claims nothing, and
  /// ignores the direction of the split.
  std::function<std::optional<Cost>(const Layer&, const Split&)> claim;
  /// The reason why the method cannot run a layer on `ranks` ranks; empty if it can. May be null.
  /// Once registered, linear attention also refuses fewer heads of keys than of queries, latent
  /// keys, and masks that are not causal.
  std::function<Refusal(const Layer&, int ranks)> unsupported;
  /// The tokens that a rank works on. A method that does not cut the sequence exchanges nothing, so
  /// all its modes are one.
  Sequence sequence = Sequence::cut;
  /// How the sequence lies on the ranks, or on groups of them.
  Layout layout = Layout::contiguous;
  /// The positions of a rank's tokens in the sequence, where they lie in none of the layouts. All
  /// ranks have as many.
  std::function<Positions(int rank, int ranks, std::int64_t tokens)> positions = nullptr;
  /// The part that a rank has of the tensors that the forward pass keeps: `out`, `lse`, and those
  /// under `kept_prefix`. It is the rank's own share if this is null.
  std::function<TensorPart(int rank, int ranks, const LayerShape& share, const Shares& shares)> kept =
      nullptr;
  /// False if the last bits of its results may differ between rounds.
  bool is_deterministic = true;
};

/// Adds a method to the registry, before `main`. If its name is taken, or it has no claim, the
/// program ends with exit code 2 and a text that says so.
struct RegisteredMethod {
  explicit RegisteredMethod(const SpMethod& method);
};

/// All registered methods, by name.
std::vector<const SpMethod*> sp_methods();

/// The method called `name`. Throws UsageError if there is none.
const SpMethod& find_method(const std::string& name);

/// The positions of a rank's tokens under `method`. Equal shares have `tokens` tokens.
Positions positions_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens,
                       const Shares& shares = {});

/// Number of tokens that a rank has under `method`. Equal shares have `tokens` tokens.
std::int64_t tokens_of(const SpMethod& method, int rank, int ranks, std::int64_t tokens,
                       const Shares& shares = {});

/// Memory that the forward pass leaves to the backward pass: scratch if this schedule runs the
/// forward pass, an input called `name` if it runs the backward pass alone. Buffers start as zeros.
/// A layer with `saved` keeps the scratch there, and its backward recording finds it; throws
/// std::out_of_range if the forward recording kept none of that name.
Slice saved_for_backward(Schedule& schedule, const Layer& layer, const std::string& name, std::int64_t count,
                         Dtype dtype = Dtype::f32);

/// One rank's schedule, with inputs "q k v g" and "d_o", outputs "o" and "dq dk dv dg" as its pass
/// needs them, "beta" and "dbeta" under a delta rule, "a b" and "da db" under a low-rank rule.
/// Ranks fill nodes of `ranks_per_node`; 0 for all on one node. The chunks of the share are cut
/// where packed documents start.
Schedule build(const SpMethod& method, const Layer& layer, int rank, int ranks, int ranks_per_node = 0);

/// The schedules of all ranks.
std::vector<Schedule> build_all(const SpMethod& method, const Layer& layer, int ranks,
                                int ranks_per_node = 0);

}  // namespace baton
