// SPDX-License-Identifier: Apache-2.0
#include "harness/layers/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/comparison_groups.hpp"
#include "harness/options/common_options.hpp"

namespace baton {
namespace {

/// Sets the widths and the number of key heads that --mla asks for. Throws UsageError.
void set_latent(RawOperators& raw) {
  if (raw.mla.empty()) return;
  if (raw.mla.size() != 2)
    throw UsageError(
        fmt::format("--mla needs two widths, of values and of positions, such as 512,64, found {}",
                    fmt::join(raw.mla, ",")));
  if (raw.mla[0] == 0) throw UsageError("--mla: the first width, of the values, must be 1 or more, found 0");
  raw.kv_heads = {1};
  raw.d_k = {raw.mla[0] + raw.mla[1]};
  raw.d_v = {raw.mla[0]};
}

/// The flags of the layer itself: its sizes, its gates and its type.
void declare_layer(Flags& flags, RawOperators& raw) {
  flags.begin(FlagGroup::sizes);
  flags.add("--tokens", raw.tokens, "tokens a rank").list().tokens();
  flags
      .add("--packed", raw.packed,
           "mean length of documents that are packed into the sequence, and follow from --seed; no state "
           "passes from one to the next. Linear attention only, on GPUs only with gates; 0: one document")
      .list()
      .tokens(0);
  flags.add("--heads", raw.heads, "attention heads").list().size();
  Flag kv_heads = flags.add("--kv-heads", raw.kv_heads,
                            "heads of keys and values in softmax attention; 0: as many as --heads");
  Flag d_k = flags.add("--d-k", raw.d_k, "key channels of a head").list().size();
  Flag d_v = flags.add("--d-v", raw.d_v, "value channels of a head").list().size();
  Flag mla = flags.add("--mla", raw.mla,
                       "latent keys in softmax attention: 512,64 is one head of keys of 512 + 64 channels, "
                       "the first 512 of which are its values");
  mla.list().range(0, 1 << 23);
  for (const Flag& other : {kv_heads.list().range(0, 1 << 24), d_k, d_v}) mla.excludes(other);
  flags.add("--chunk", raw.chunks, "tokens of a chunk in linear attention; GPUs take 64 only")
      .list()
      .tokens();
  flags
      .add("--gate-kind,--gate", raw.gate_kinds,
           "gates of gated linear attention: one a channel (vector), one a head (scalar), or none")
      .list()
      .one_of(words_of(gate_kind_choices));
  flags
      .add("--dtype", raw.dtypes,
           "type of the tensors; states are always f32. bf16 runs on GPUs only; auto: bf16 if all executors "
           "run on GPUs, else f32")
      .list()
      .one_of({"auto", "f32", "bf16"});
  flags
      .add("--gate-draw,--gates", raw.gate_draws,
           "how gates are drawn: layer, as a layer makes them; mixed, of which some keep a state over all "
           "ranks and some forget within a chunk; strong; weak, about -0.0001 a token")
      .list()
      .one_of(words_of(gate_draw_choices));
}

void declare(Flags& flags, RawOperators& raw) {
  flags.begin(FlagGroup::what);
  flags.add("--methods", raw.methods, "names, or 'all'").list();
  flags
      .add("--attention", raw.attentions,
           "the kind of linear attention: linear (gated linear attention); gdn, kda, deltanet (delta rules "
           "with a gate a head, a gate a channel, no gates); rwkv7; or 'all'. Softmax attention is chosen by "
           "--methods")
      .list();
  flags.add("--pass", raw.passes, "forward, backward, both (one after the other), or 'all'").list();
  flags
      .add("--mode", raw.modes,
           "overlapped (as published), exposed (each exchange is waited for at once), compute_only (no "
           "exchange), or 'all'")
      .list();
  flags
      .add("--kernel", raw.kernels,
           "kernels of softmax attention on GPUs: own, cudnn, or a list of both; auto: cudnn where it is "
           "found, else own")
      .list();
  flags.add("--scan", raw.scans, "the exclusive scans that carry the states, in place of the method's own")
      .list();
  flags.add("--groups", raw.groups, "head groups; the exchange of one overlaps the work of the next")
      .list()
      .range(1, 4096);
  declare_layer(flags, raw);
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
  RawOperators own;
  CommonOptions common(
      "operator_bench",
      "Times one layer's attention under each sequence-parallel method. Every result is verified.",
      "  operator_bench --methods zeco,lasp2,local --tokens 4K --mode all --launches 3\n"
      "  operator_bench --attention gdn --dry-run");
  Options& options = common.options();
  declare(common.flags(), own);
  if (!common.parse(argc, argv, print_list)) return std::nullopt;
  set_latent(own);
  const std::vector<std::string> known = names_of(sp_methods());
  const auto names = resolve_workloads("method", own.methods, known, options.baseline);
  const bool has_local = std::find(names.begin(), names.end(), "local") != names.end();
  if (options.baseline.empty() && has_local) options.baseline = "local";
  options.longest_name = longest_of(known);
  return common.with_cases(comparison_groups(own, names, common.executors(), options.seed));
}

}  // namespace baton
