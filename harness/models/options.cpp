// SPDX-License-Identifier: Apache-2.0
#include "harness/models/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/comparison_groups.hpp"
#include "harness/models/read.hpp"
#include "harness/models/workload.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/names.hpp"
#include "harness/process/system.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

/// The bench's own flags as the user wrote them. A size of 0 is the model's.
struct RawModels {
  std::string model = "tiny";
  std::vector<std::string> methods{"zeco", "lasp1", "lasp2"};
  std::vector<std::string> lines{"all"};
  std::string softmax = "ring_attention_softmax";
  std::string scan;
  std::string peak;
  std::vector<std::int64_t> tokens{256};
  int groups = 1;
  std::int64_t layers = 0, width = 0, heads = 0, d_k = 0, d_v = 0, mlp = 0, vocabulary = 0, chunk = 0;
  bool head = false, optimizer = false, fsdp = false;
};

const Choices<Line> line_choices{{"dp", Line::dp}, {"split", Line::split}, {"full", Line::full}};

/// Methods of one kind of attention that exchange something and keep contiguous tokens.
std::vector<std::string> cut_methods(Attention attention) {
  std::vector<std::string> names;
  for (const SpMethod* method : sp_methods())
    if (method->attention == attention && method->sequence == Sequence::cut &&
        keeps_contiguous_tokens(*method))
      names.push_back(method->name);
  return names;
}

ModelShape shape_of(const RawModels& raw) {
  ModelShape shape = find_model(raw.model);
  const auto set = [](std::int64_t& size, std::int64_t asked) {
    if (asked > 0) size = asked;
  };
  set(shape.width, raw.width);
  if (raw.heads > 0) shape.kv_heads = shape.heads = raw.heads;
  set(shape.d_k, raw.d_k);
  set(shape.d_v, raw.d_v);
  set(shape.mlp, raw.mlp);
  set(shape.vocabulary, raw.vocabulary);
  set(shape.chunk, raw.chunk);
  const std::vector<Attention> pattern = shape.layers;
  if (raw.layers > 0) {
    shape.layers.clear();
    for (std::int64_t i = 0; i < raw.layers; ++i)
      shape.layers.push_back(pattern[static_cast<std::size_t>(i) % pattern.size()]);
  }
  for (const Weight& weight : shape.weights(shape.layers.front()))
    check_size(weight.rows, weight.columns, shape.count());
  return shape;
}

/// The peak flop/s of a rank from a word in teraflops, such as 0.05; 0 for no word. Throws
/// UsageError.
double peak_of(const std::string& word) {
  if (word.empty()) return 0;
  double teraflops = 0;
  const char* end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, teraflops);
  if (parsed.ptr != end || parsed.ec != std::errc{} || !(teraflops >= 1e-9) || teraflops > 1e9)
    throw UsageError("--peak takes teraflops of a rank from 1e-9 to 1e9, such as 0.05, not " + quoted(word));
  return 1e12 * teraflops;
}

/// A comparison group: the lines of every method, the data-parallel one once and first.
std::vector<std::shared_ptr<const Workload>> comparison_group(const RawModels& raw, const Stack& shared,
                                                              const std::vector<std::string>& names) {
  const auto lines = resolve_values("line", raw.lines, line_choices);
  const auto asks = [&](Line line) { return std::find(lines.begin(), lines.end(), line) != lines.end(); };
  const double peak = peak_of(raw.peak);
  std::vector<std::shared_ptr<const Workload>> all;
  const auto add = [&](const std::string& name, Mode mode) {
    Stack stack = shared;
    stack.layer.mode = mode;
    const bool has_softmax = shared.shape.softmax_layers() > 0;
    if (shared.shape.softmax_layers() < shared.shape.count()) stack.linear = &find_method(name);
    if (has_softmax) stack.softmax = &find_method(stack.linear == nullptr ? name : raw.softmax);
    all.push_back(model_workload(stack, peak));
  };
  const bool is_hybrid = shared.shape.softmax_layers() > 0;
  if (asks(Line::dp) && !is_hybrid) add("local", Mode::overlapped);
  for (const std::string& name : names) {
    if (asks(Line::split)) add(name, Mode::compute_only);
    if (asks(Line::full)) add(name, Mode::overlapped);
  }
  return all;
}

void declare(Flags& flags, RawModels& raw) {
  flags.begin(FlagGroup::what);
  flags.add("--model", raw.model, "tiny, one of those that --list shows, or a JSON file");
  flags.add("--methods", raw.methods, "names of methods that exchange something, or 'all'").list();
  flags
      .add("--lines", raw.lines,
           "dp, the data-parallel line; split, the method without its exchange; full; or 'all'")
      .list();
  flags.add("--softmax", raw.softmax, "the method of softmax layers beside linear ones");
  flags.add("--scan", raw.scan, "carry the states by this exclusive scan instead of the method's own");
  flags.add("--groups", raw.groups, "head groups whose exchanges follow one another").range(1, 4096);
  flags.begin(FlagGroup::sizes);
  flags.add("--tokens", raw.tokens, "tokens a rank").list().tokens();
  flags.add("--layers", raw.layers, "blocks; 0 here and below: as many as the model has").range(0, 1024);
  flags.add("--width", raw.width, "numbers of a hidden state").range(0, 1 << 20);
  flags.add("--heads", raw.heads, "attention heads").range(0, 1 << 20);
  flags.add("--d-k", raw.d_k, "key channels of a head").range(0, 1 << 20);
  flags.add("--d-v", raw.d_v, "value channels of a head").range(0, 1 << 20);
  flags.add("--mlp", raw.mlp, "numbers inside the MLP").range(0, 1 << 24);
  flags.add("--vocabulary", raw.vocabulary, "rows of the embedding").range(0, 1 << 24);
  flags.add("--chunk", raw.chunk, "tokens of a chunk of linear attention; on GPUs 64 alone").range(0, 1 << 20);
  flags.begin(FlagGroup::what);
  flags.add("--fsdp", raw.fsdp,
            "shard the weights: a layer's are gathered while the one before it runs, and its gradients are "
            "reduce-scattered");
  flags.add("--head", raw.head, "embedding, head and loss too");
  flags.add("--optimizer", raw.optimizer, "one pass of AdamW over the blocks' weights too");
  flags.add("--peak", raw.peak, "teraflops that a rank could do, which MFU refers to");
}

void print_list() {
  fmt::print("models\n");
  for (const std::string& name : model_names()) {
    const ModelShape shape = find_model(name);
    fmt::print("  {:<25} {} of width {}, {} heads of {} x {}, {:.2f} billion weights\n", name,
               quantity(shape.count(), "layer"), shape.width, shape.heads, shape.d_k, shape.d_v,
               static_cast<double>(shape.parameters(true)) * 1e-9);
  }
  fmt::print("methods\n");
  for (const SpMethod* method : sp_methods())
    if (method->sequence == Sequence::cut && keeps_contiguous_tokens(*method))
      fmt::print("  {:<25} {:<8} {}\n", method->name, to_string(method->attention), method->summary);
}

/// True if tensors are bf16 on these executors. Throws UsageError if some are on GPUs and some not.
bool takes_bf16(const std::vector<std::string>& executors) {
  const bool none = std::none_of(executors.begin(), executors.end(),
                                 [](const std::string& name) { return are_on_gpus({name}); });
  if (!none && !are_on_gpus(executors))
    throw UsageError(
        "--executor: models are bf16 on GPUs and f32 elsewhere, so a run takes one kind of them");
  return !none;
}

}  // namespace

std::optional<Options> parse_model_options(int argc, char** argv) {
  RawModels own;
  CommonOptions common(
      "model_bench",
      "Times a model's blocks, forward and backward, under each sequence-parallel method, verified.",
      "  model_bench --methods zeco,lasp2 --tokens 512 --launches 3\n"
      "  model_bench --model gla-1b-h16 --layers 1 --lines dp,full");
  Options& options = common.options();
  declare(common.flags(), own);
  if (!common.parse(argc, argv, print_list)) return std::nullopt;
  const ModelShape shape = shape_of(own);
  const bool has_linear = shape.softmax_layers() < shape.count();
  const auto known = cut_methods(has_linear ? Attention::linear : Attention::softmax);
  const auto names = resolve_names("method", own.methods, known);
  resolve_names("softmax", {own.softmax}, cut_methods(Attention::softmax));
  require_scan(own.scan, names);
  if (options.baseline.empty() && shape.softmax_layers() == 0) options.baseline = "local";
  options.longest_name = longest_of(names_of(sp_methods()));
  const bool on_gpus = takes_bf16(common.executors());
  std::vector<std::vector<std::shared_ptr<const Workload>>> groups;
  for (const std::int64_t tokens : own.tokens) {
    Stack stack{.shape = shape, .tokens = tokens};
    stack.layer.groups = own.groups;
    stack.layer.scan = own.scan;
    stack.layer.dtype = on_gpus ? Dtype::bf16 : Dtype::f32;
    stack.layer.segmented = on_gpus;
    stack.shards_weights = own.fsdp;
    stack.has_head = own.head;
    stack.has_optimizer = own.optimizer;
    groups.push_back(comparison_group(own, stack, names));
  }
  return common.with_cases(std::move(groups));
}

}  // namespace baton
