// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/layers/comparison_groups.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/flag_values.hpp"

namespace baton {
namespace {

const Choices<Pass> pass_choices{
    {"forward", Pass::forward}, {"backward", Pass::backward}, {"both", Pass::both}};
const Choices<States> state_choices{
    {"none", States::none}, {"in", States::in}, {"out", States::out}, {"both", States::both}};
const Choices<GateKind> gate_kind_choices{
    {"vector", GateKind::vector}, {"scalar", GateKind::scalar}, {"none", GateKind::none}};
const Choices<Mask> mask_choices{{"causal", {}}, {"full", {MaskKind::full}}};
const Choices<LengthDraw> length_draws{{"uniform", LengthDraw::uniform},
                                       {"lognormal", LengthDraw::lognormal}};
const Choices<GateDraw> gate_draw_choices{{"layer", GateDraw::layer},
                                          {"mixed", GateDraw::mixed},
                                          {"strong", GateDraw::strong},
                                          {"weak", GateDraw::weak}};

/// The number of keys of a word such as window:1024. Throws UsageError if there is none.
std::int64_t keys_of_window(const std::string& word) {
  const FlagRules rules{.name = "--mask " + word,
                        .kind = "size",
                        .least = 1,
                        .most = std::uint64_t{1} << 24,
                        .sized = "a window's number of keys, as in window:1024"};
  return static_cast<std::int64_t>(number_in(rules, word.substr(window_prefix.size())));
}

/// The words of masks, and of windows by their number of keys; 'all' stands for all names.
std::vector<std::string> resolve_masks(std::vector<std::string> words) {
  const std::vector<std::string> names = words_of(mask_choices);
  if (words == std::vector<std::string>{"all"}) return names;
  std::vector<std::string> known = names;
  known.push_back(std::string(window_prefix) + "W");
  for (std::string& word : words)
    if (word.starts_with(window_prefix))
      known.push_back(word = to_string(Mask{.window = keys_of_window(word)}));
  return resolve_names("mask", words, known);
}

Mask mask_of(const std::string& word) {
  return word.starts_with(window_prefix) ? Mask{.window = keys_of_window(word)}
                                         : value_of(mask_choices, word);
}

/// Declares the flags of a layer's sizes and of its numbers.
void declare_layer(Flags& flags, RawOperators& raw) {
  auto& layers = raw.layers;
  layers
      .add<std::string>("dtype", {"auto"}, [](AskedLayer& one, const std::string& word) { one.dtype = word; })
      .one_of({"auto", "f32", "bf16"});
  layers.add<std::int64_t>("heads", {16}, [](AskedLayer& one, auto heads) { one.layer.share.heads = heads; })
      .size();
  layers.add<std::int64_t>("batch", {1}, [](AskedLayer& one, auto count) { one.layer.share.batch = count; })
      .range(1, 1 << 16);
  Flag kv_heads = layers.add<std::int64_t>(
      "kv_heads", {0}, [](AskedLayer& one, auto heads) { one.layer.share.kv_heads = heads; });
  layers
      .add<std::int64_t>("qk_heads", {0},
                         [](AskedLayer& one, auto heads) { one.layer.share.qk_heads = heads; })
      .range(0, 1 << 24);
  Flag d_k = layers.add<std::int64_t>("d_k", {128},
                                      [](AskedLayer& one, auto channels) { one.layer.share.d_k = channels; });
  Flag d_v = layers.add<std::int64_t>("d_v", {128},
                                      [](AskedLayer& one, auto channels) { one.layer.share.d_v = channels; });
  Flag mla = flags.add("--mla", raw.mla,
                       "latent keys in softmax attention: 512,64 is one head of keys of 512 + 64 channels, "
                       "the first 512 of which are its values");
  mla.list().range(0, 1 << 23);
  for (const Flag& other : {kv_heads.range(0, 1 << 24), d_k.size(), d_v.size()}) mla.excludes(other);
  layers
      .add<std::int64_t>("chunk", {64}, [](AskedLayer& one, auto tokens) { one.layer.share.chunk = tokens; })
      .tokens();
  layers.add<std::int64_t>("conv", {0}, [](AskedLayer& one, auto width) { one.layer.share.conv = width; })
      .range(0, 64);
  layers
      .add<std::string>(
          "gate", {"vector"},
          [](AskedLayer& one, const std::string& word) {
            one.layer.share.gate = value_of(gate_kind_choices, word);
          },
          "--gate")
      .one_of(words_of(gate_kind_choices));
  layers
      .add<std::string>(
          "gates", {"mixed"},
          [](AskedLayer& one, const std::string& word) {
            one.draw.gates = value_of(gate_draw_choices, word);
          },
          "--gates")
      .one_of(words_of(gate_draw_choices));
}

/// Declares all flags of the bench. The order of axes is that of tables: the last changes fastest.
void declare(Flags& flags, RawOperators& raw) {
  auto& layers = raw.layers;
  flags.begin(FlagGroup::what);
  flags.add("--methods", raw.methods, "names, or 'all'").list();
  flags.add_key("attention", raw.attentions).list();
  flags.add_key("mode", raw.modes).list();
  flags.add_key("scan", raw.scans).list();
  flags.begin(FlagGroup::sizes);
  declare_layer(flags, raw);
  flags.begin(FlagGroup::what);
  layers.add<int>("groups", {1}, [](AskedLayer& one, int groups) { one.layer.groups = groups; })
      .range(1, 4096);
  flags.begin(FlagGroup::sizes);
  Flag packed = layers.add<std::int64_t>("packed", {0},
                                         [](AskedLayer& one, auto mean) { one.draw.packing.mean = mean; });
  packed.tokens(0);
  Flag draw = layers.add(
      "packed_draw", {"uniform"}, words_of(length_draws),
      [](AskedLayer& one, const std::string& word) { one.draw.packing.draw = value_of(length_draws, word); });
  draw.needs(packed);
  Flag documents = flags.add_key("documents", raw.documents);
  documents.list().excludes(packed);
  layers.add("mask", {"causal"}, resolve_masks, [](AskedLayer& one, const std::string& word) {
    const Mask mask = mask_of(word);
    one.layer.mask.kind = mask.kind;
    one.layer.mask.window = mask.window;
  });
  Flag tokens = layers.add<std::int64_t>("tokens", {8192},
                                         [](AskedLayer& one, auto count) { one.layer.share.tokens = count; });
  // Each number of ranks has another share of a sequence (Workload::sized).
  Flag sequence = layers.add<std::int64_t>("sequence", {0}, [](AskedLayer& one, auto count) {
    if (count > 0) one.layer.share.tokens = one.layer.mask.end = count;
  });
  sequence.tokens().excludes(tokens.tokens());
  documents.excludes(tokens).excludes(sequence);
  layers
      .add<std::int64_t>("pad_documents", {0},
                         [](AskedLayer& one, auto count) { one.draw.packing.multiple = count; })
      .tokens(0);
  flags.add_key("shares", raw.shares).list().excludes(tokens);
  flags.begin(FlagGroup::what);
  layers.add("pass", {"both"}, words_of(pass_choices),
             [](AskedLayer& one, const std::string& word) { one.layer.pass = value_of(pass_choices, word); });
  layers.add("state", {"none"}, words_of(state_choices), [](AskedLayer& one, const std::string& word) {
    one.layer.states = value_of(state_choices, word);
  });
  layers.add("kernel", {"auto"}, words_of(kernel_choices),
             [](AskedLayer& one, const std::string& word) { one.kernel = word; });
}

void print_list() {
  fmt::print("methods\n");
  for (const SpMethod* method : sp_methods())
    fmt::print("  {:<25} {:<8} {}\n", method->name, to_string(method->attention), method->summary);
  fmt::print("scans\n");
  for (const std::string& name : scan_names())
    fmt::print("  {:<25} {}\n", name, find_collective(name).summary);
}

}  // namespace

std::optional<Options> parse_operator_options(int argc, char** argv) {
  CommonOptions common(
      "operator_bench",
      "Times one layer's attention under each sequence-parallel method. Every result is verified.",
      "  operator_bench --methods zeco,lasp2,local --tokens 4K --mode all --launches 3\n"
      "  operator_bench --attention gdn --dry-run");
  Options& options = common.options();
  RawOperators own(common.flags());
  declare(common.flags(), own);
  if (!common.parse(argc, argv, print_list)) return std::nullopt;
  const std::vector<std::string> known = names_of(sp_methods());
  const auto names = resolve_workloads("method", own.methods, known, options.baseline);
  const bool has_local = std::find(names.begin(), names.end(), "local") != names.end();
  if (options.baseline.empty() && has_local) options.baseline = "local";
  options.longest_name = longest_of(known);
  return common.with_cases(comparison_groups(own, names, common.executors(), options.seed));
}

}  // namespace baton
