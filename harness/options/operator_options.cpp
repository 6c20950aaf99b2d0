// SPDX-License-Identifier: Apache-2.0
// The command line of operator_bench.
#include <fmt/format.h>

#include <algorithm>

#include "collectives/executors/executor.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/cases/operator_workload.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/names.hpp"
#include "harness/options/options.hpp"

namespace baton {
namespace {

/// Arguments as the user wrote them, before they are looked up and multiplied out.
struct Words {
  std::vector<std::string> methods{"all"};
  std::vector<std::string> passes{"both"};
  std::vector<std::string> modes{"overlapped"};
  std::vector<std::int64_t> tokens{8192};
  std::string scan;
  std::string gate = "vector";
  std::string gates = "layer";
  int groups = 1;
  std::int64_t heads = 16;
  std::int64_t d_k = 128;
  std::int64_t d_v = 128;
  std::int64_t chunk = 64;
  std::string dtype = "auto";
};

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const SpMethod* method : sp_methods()) names.push_back(method->name);
  return names;
}

std::vector<std::string> scan_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives())
    if (collective->kind == Kind::exclusive_scan) names.push_back(collective->name);
  return names;
}

/// The modes in an order in which an overlapped row finds what its hidden share is measured against.
std::vector<Mode> modes(const std::vector<std::string>& words) {
  const auto named = chosen("mode", words, {"compute_only", "exposed", "overlapped"});
  std::vector<Mode> all;
  for (Mode mode : {Mode::compute_only, Mode::exposed, Mode::overlapped})
    if (std::find(named.begin(), named.end(), to_string(mode)) != named.end()) all.push_back(mode);
  return all;
}

std::vector<Pass> passes(const std::vector<std::string>& words) {
  std::vector<Pass> all;
  for (const std::string& word : chosen("pass", words, {"forward", "backward", "both"}))
    all.push_back(word == "forward" ? Pass::forward : word == "backward" ? Pass::backward : Pass::both);
  return all;
}

Layer layer_of(const Words& words, std::int64_t tokens) {
  const GateKind gate = words.gate == "vector"   ? GateKind::vector
                        : words.gate == "scalar" ? GateKind::scalar
                                                 : GateKind::none;
  Layer layer;
  layer.share = {tokens, words.heads, words.d_k, words.d_v, words.chunk, gate};
  layer.groups = words.groups;
  layer.scan = words.scan;
  layer.dtype = words.dtype == "bf16" ? Dtype::bf16 : Dtype::f32;
  layer.segmented = layer.dtype == Dtype::bf16;
  return layer;
}

/// The word for the type that all executors have kernels for.
std::string dtype_for(const std::vector<std::string>& executors) {
  const bool all_bf16 = std::all_of(executors.begin(), executors.end(), [](const std::string& name) {
    return find_executor(name).tensors == Dtype::bf16;
  });
  return to_string(all_bf16 ? Dtype::bf16 : Dtype::f32);
}

/// One contest for each token count and pass: every method in every mode.
std::vector<std::vector<std::shared_ptr<const Workload>>> contests(const Words& words,
                                                                   const std::vector<std::string>& names) {
  if (!words.scan.empty()) chosen("scan", {words.scan}, scan_names());
  check_size(words.heads, words.d_k, words.d_v);
  std::vector<std::vector<std::shared_ptr<const Workload>>> all;
  for (std::int64_t tokens : words.tokens)
    for (Pass pass : passes(words.passes)) {
      all.emplace_back();
      for (const std::string& name : names)
        for (Mode mode : modes(words.modes)) {
          Layer layer = layer_of(words, tokens);
          layer.pass = pass;
          layer.mode = mode;
          if (find_method(name).attention == Attention::softmax) layer.share.gate = GateKind::none;
          if (name == "local" && mode != modes(words.modes).front()) continue;  // it has no exchange to vary
          const GateDraw gates = words.gates == "layer" ? GateDraw::layer : GateDraw::strong;
          all.back().push_back(operator_workload(find_method(name), layer, gates));
        }
    }
  return all;
}

void add_options(CLI::App& app, Words& words) {
  app.add_option("--methods", words.methods, "names, or 'all'")->delimiter(',');
  app.add_option("--pass", words.passes, "forward, backward, both (one after the other), or 'all'")
      ->delimiter(',');
  app.add_option("--mode", words.modes, "overlapped as published, exposed, compute_only, or 'all'")
      ->delimiter(',');
  app.add_option("--scan", words.scan, "carry the states by this exclusive scan instead of the method's own");
  app.add_option("--groups", words.groups, "head groups whose exchanges follow one another")
      ->check(CLI::Range(1, 4096));
  app.add_option("--tokens", words.tokens, "tokens a rank")->delimiter(',')->check(size_range());
  app.add_option("--heads", words.heads, "attention heads")->check(size_range());
  app.add_option("--d-k", words.d_k, "key channels of a head")->check(size_range());
  app.add_option("--d-v", words.d_v, "value channels of a head")->check(size_range());
  app.add_option("--chunk", words.chunk, "tokens of a chunk")->check(size_range());
  app.add_option("--gate", words.gate, "a decay a channel, a head, or none")
      ->check(CLI::IsMember({"vector", "scalar", "none"}));
  app.add_option("--dtype", words.dtype,
                 "of the tensors; states are f32. bf16 runs on GPUs, with local work in segments of tokens; "
                 "auto: bf16 "
                 "where only they are asked for")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}));
  app.add_option("--gates", words.gates, "verify with gates as a layer makes them, or strong ones")
      ->check(CLI::IsMember({"layer", "strong"}));
}

void print_list() {
  fmt::print("methods\n");
  for (const SpMethod* method : sp_methods())
    fmt::print("  {:<24} {:<8} {}\n", method->name,
               method->attention == Attention::linear ? "linear" : "softmax", method->summary);
  fmt::print("scans\n");
  for (const std::string& name : scan_names())
    fmt::print("  {:<24} {}\n", name, find_collective(name).summary);
  print_executors();
}

}  // namespace

std::optional<Options> parse_operator_options(int argc, char** argv) {
  CommandLine line("operator_bench",
                   "Times one layer's attention under each sequence-parallel method, verified.");
  Words words;
  add_options(line.app, words);
  if (!line.parse(argc, argv, print_list)) return std::nullopt;
  if (!line.options.baseline.empty()) chosen("baseline", {line.options.baseline}, method_names());
  const auto names = chosen("method", words.methods, method_names());
  const bool has_local = std::find(names.begin(), names.end(), "local") != names.end();
  if (line.options.baseline.empty() && has_local) line.options.baseline = "local";
  Axes axes = line.axes(names);
  if (words.dtype == "auto") words.dtype = dtype_for(axes.executors);
  axes.contests = contests(words, names);
  line.options.cases = cases(axes);
  line.options.threads = 2;
  return line.options;
}

}  // namespace baton
