// SPDX-License-Identifier: Apache-2.0
#include "harness/models/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "collectives/schedule/errors.hpp"
#include "harness/layers/comparison_groups.hpp"
#include "harness/machine/system.hpp"
#include "harness/models/read.hpp"
#include "harness/models/workload.hpp"
#include "harness/options/checks.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/grid.hpp"
#include "harness/options/names.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

/// A model that the flags ask for, without its methods and lines.
struct Asked {
  Stack stack;
  std::string softmax;
  std::int64_t sequence = 0;
};

/// The bench's own flags as the user wrote them. A size of 0 is the model's.
struct RawModels {
  explicit RawModels(Flags& flags) : shapes(flags), layers(flags) {}

  std::vector<std::string> methods{"zeco", "lasp1", "lasp2"};
  std::vector<std::string> lines{"all"};
  std::vector<std::string> scans;
  std::string dtype = "auto";
  double peak_teraflops = 0;
  AxisFlags<ModelShape> shapes;
  AxisFlags<Asked> layers;
  bool head = false, optimizer = false, fsdp = false;
};

const Choices<Scope> scope_choices{
    {"dp", Scope::data_parallel}, {"split", Scope::no_exchange}, {"full", Scope::full}};

/// Methods of one kind of attention that exchange something and keep contiguous tokens, without
/// `whole`.
std::vector<std::string> cut_methods(Attention attention) {
  std::vector<std::string> names;
  for (const SpMethod* method : sp_methods())
    if (method->attention == attention && method->sequence == Sequence::cut &&
        keeps_contiguous_tokens(*method))
      names.push_back(method->name);
  return names;
}

/// The registered method of this name, or `whole`.
const SpMethod& method_of(const std::string& name) {
  return name == whole_sequence().name ? whole_sequence() : find_method(name);
}

/// The names that --methods stands for in a model. `all` has `whole` where no backward pass is run.
std::vector<std::string> methods_of(const RawModels& raw, const ModelShape& shape, bool has_backward) {
  const bool has_linear = shape.softmax_layers() < shape.count();
  std::vector<std::string> known = cut_methods(has_linear ? Attention::linear : Attention::softmax);
  const bool is_all = raw.methods == std::vector<std::string>{"all"};
  if (has_linear && !(is_all && has_backward)) known.push_back(whole_sequence().name);
  std::vector<std::string> names = resolve_names("method", raw.methods, known), by_scans = names;
  std::erase(by_scans, whole_sequence().name);
  require_scans(raw.scans, by_scans);
  return names;
}

/// Repeats the pattern of a model's layers as often as it takes for `count` of them.
void set_layers(ModelShape& shape, std::int64_t count) {
  const std::vector<LayerKind> pattern = shape.layers;
  shape.layers.clear();
  for (std::int64_t i = 0; i < count; ++i)
    shape.layers.push_back(pattern[static_cast<std::size_t>(i) % pattern.size()]);
}

/// The shapes that the flags combine to, in the order of their tables. Throws UsageError.
std::vector<ModelShape> shapes_of(const RawModels& raw) {
  std::vector<ModelShape> shapes = raw.shapes.points({});
  for (const ModelShape& shape : shapes)
    for (const Weight& weight : shape.weights(shape.layers.front()))
      check_size(weight.rows, weight.columns, shape.count());
  return shapes;
}

/// The body of softmax blocks: cuDNN on GPUs where it is found, and in the simulator for heads that
/// no other body takes.
SoftmaxBody softmax_body(const ModelShape& shape, Dtype dtype, bool on_gpus) {
  const LayerShape of = shape.share(Attention::softmax, 1);
  const bool own_takes_it = !KernelTraits{}.unsupported(dtype, {of.d_k, of.d_v});
  const bool by_cudnn = on_gpus ? !cudnn_library().lacking() : !own_takes_it;
  return dtype == Dtype::bf16 && by_cudnn ? SoftmaxBody::cudnn : SoftmaxBody::own;
}

/// The models of one shape, in the order of their tables. Throws UsageError.
std::vector<Asked> models_of(const RawModels& raw, const ModelShape& shape, Dtype dtype, bool on_gpus) {
  Asked first{{.shape = shape}, {}};
  first.stack.layer.dtype = dtype;
  first.stack.layer.segmented = dtype == Dtype::bf16;
  first.stack.layer.kernels.softmax = softmax_body(shape, dtype, on_gpus);
  first.stack.shards_weights = raw.fsdp;
  first.stack.has_head = raw.head;
  first.stack.has_optimizer = raw.optimizer;
  std::vector<Asked> models = raw.layers.points(first);
  const auto is_forward = [](const Asked& one) { return !one.stack.has_backward; };
  if (raw.optimizer && std::any_of(models.begin(), models.end(), is_forward))
    throw UsageError("--optimizer: a forward pass alone makes no gradients");
  return models;
}

/// Makes comparison groups, and no row twice.
class Groups {
 public:
  explicit Groups(const RawModels& raw)
      : raw_(raw),
        scopes_(resolve_values("line", raw.lines, scope_choices)),
        peak_flops_(1e12 * raw.peak_teraflops) {}

  /// Adds the group of a model: the lines of every method, the data-parallel one once and first.
  void add(const Asked& asked, const std::vector<std::string>& names) {
    all_.emplace_back();
    if (asks(Scope::data_parallel) && asked.stack.shape.softmax_layers() == 0)
      add(asked, "local", Mode::overlapped, "");
    for (const std::string& name : names)
      for (const std::string& scan : scans_of(method_of(name), raw_.scans)) {
        if (asks(Scope::no_exchange)) add(asked, name, Mode::compute_only, scan);
        if (asks(Scope::full)) add(asked, name, Mode::overlapped, scan);
      }
    if (all_.back().empty()) all_.pop_back();
  }

  std::vector<std::vector<std::shared_ptr<const Workload>>> all() { return std::move(all_); }

 private:
  bool asks(Scope scope) const { return std::find(scopes_.begin(), scopes_.end(), scope) != scopes_.end(); }

  void add(const Asked& asked, const std::string& name, Mode mode, const std::string& scan) {
    Stack stack = asked.stack;
    stack.layer.mode = mode;
    stack.layer.scan = scan;
    const int softmax_layers = stack.shape.softmax_layers();
    if (softmax_layers < stack.shape.count()) stack.linear = &method_of(name);
    if (softmax_layers > 0) stack.softmax = &find_method(stack.linear == nullptr ? name : asked.softmax);
    auto one = model_workload(stack, peak_flops_, asked.sequence);
    if (names_of_rows_.insert(one->axes().folded(in_name)).second) all_.back().push_back(std::move(one));
  }

  const RawModels& raw_;
  std::vector<Scope> scopes_;
  double peak_flops_;
  std::set<std::string> names_of_rows_;
  std::vector<std::vector<std::shared_ptr<const Workload>>> all_;
};

/// Declares the flags of the model's sizes.
void declare_shapes(Flags& flags, RawModels& raw) {
  flags.begin(FlagGroup::what);
  raw.shapes.add<std::string>("model", {"tiny"},
                              [](ModelShape& one, const std::string& name) { one = find_model(name); });
  flags.begin(FlagGroup::sizes);
  const auto add = [&](schema::Key key, std::int64_t most, auto set) {
    raw.shapes
        .add<std::int64_t>(key, {0},
                           [set](ModelShape& one, std::int64_t asked) {
                             if (asked > 0) set(one, asked);
                           })
        .range(0, most)
        .also("0: as many as the model has");
  };
  constexpr std::int64_t most = 1 << 20;
  add("layers", 1024, set_layers);
  add("heads", most, [](ModelShape& one, auto heads) {
    one.linear.heads = one.softmax.heads = one.softmax.kv_heads = heads;
    one.linear.qk_heads = 0;
  });
  add("width", most, [](ModelShape& one, auto size) { one.width = size; });
  add("d_k", most, [](ModelShape& one, auto size) {
    one.linear.d_k = one.softmax.d_k = size;
    one.softmax.shared_k = std::min(one.softmax.shared_k, size / 2);
    const std::int64_t turning = one.softmax.shared_k > 0 ? one.softmax.shared_k : size;
    one.softmax.rotated = std::min(one.softmax.rotated, turning / 2 * 2);
  });
  add("d_v", most, [](ModelShape& one, auto size) { one.linear.d_v = one.softmax.d_v = size; });
  add("mlp", 1 << 24, [](ModelShape& one, auto size) { one.mlp = size; });
  add("vocabulary", 1 << 24, [](ModelShape& one, auto size) { one.vocabulary = size; });
  add("chunk", most, [](ModelShape& one, auto size) { one.chunk = size; });
}

void declare(Flags& flags, RawModels& raw) {
  declare_shapes(flags, raw);
  flags.begin(FlagGroup::what);
  flags.add("--methods", raw.methods, "names of methods that exchange something, or 'all'").list();
  flags.add_key("line", raw.lines).list();
  raw.layers.add("softmax", {"ring_attention_softmax"}, cut_methods(Attention::softmax),
                 [](Asked& one, const std::string& name) { one.softmax = name; });
  flags.add_key("scan", raw.scans).list();
  raw.layers.add<int>("groups", {1}, [](Asked& one, int groups) { one.stack.layer.groups = groups; })
      .range(1, 4096);
  flags.begin(FlagGroup::sizes);
  flags.add_key("dtype", raw.dtype).one_of({"auto", "f32", "bf16"});
  Flag tokens =
      raw.layers.add<std::int64_t>("tokens", {256}, [](Asked& one, auto count) { one.stack.tokens = count; });
  Flag sequence = raw.layers.add<std::int64_t>("sequence", {0}, [](Asked& one, auto count) {
    if (count > 0) one.stack.tokens = one.sequence = count;
  });
  sequence.tokens().excludes(tokens.tokens());
  flags.begin(FlagGroup::what);
  raw.layers.add("pass", {"both"}, {"forward", "both"},
                 [](Asked& one, const std::string& word) { one.stack.has_backward = word == "both"; });
  flags.add("--fsdp", raw.fsdp,
            "shard the weights: those of a layer are gathered while the layer before it runs, and gradients "
            "are reduce-scattered");
  flags.add("--head", raw.head, "add the embedding, the output layer and the loss");
  flags.add("--optimizer", raw.optimizer, "add a step of AdamW for the weights of the blocks");
  flags.add("--peak", raw.peak_teraflops, "teraflops that a rank could do, which MFU refers to; 0: not known")
      .reals(1e-9, 1e9);
}

void print_list() {
  fmt::print("models\n");
  for (const std::string& name : model_names()) {
    const ModelShape shape = find_model(name);
    const LayerShape of = shape.share(shape.layers.front(), 1);
    fmt::print("  {:<25} {} of width {}, {} heads of {} x {}, {:.2f} billion weights\n", name,
               quantity(shape.count(), "layer"), shape.width, of.heads, of.d_k, of.d_v,
               static_cast<double>(shape.parameters(true)) * 1e-9);
  }
  fmt::print("methods\n");
  for (const SpMethod* method : sp_methods())
    if (method->sequence == Sequence::cut && keeps_contiguous_tokens(*method))
      fmt::print("  {:<25} {:<8} {}\n", method->name, to_string(method->attention), method->summary);
  const SpMethod& whole = whole_sequence();
  fmt::print("  {:<25} {:<8} {}\n", whole.name, to_string(whole.attention), whole.summary);
}

/// The type of tensors that the word of --dtype asks for. Throws UsageError if some executors are
/// on GPUs and some not, or if those on GPUs are asked for f32.
Dtype dtype_of(const std::string& word, const std::vector<std::string>& executors) {
  const bool none = std::none_of(executors.begin(), executors.end(),
                                 [](const std::string& name) { return are_on_gpus({name}); });
  if (!none && !are_on_gpus(executors))
    throw UsageError(
        "--executor: models are bf16 on GPUs and f32 elsewhere, so a run takes one kind of them");
  if (!none && word == "f32") throw UsageError("--dtype: models are bf16 on GPUs");
  return !none || word == "bf16" ? Dtype::bf16 : Dtype::f32;
}

}  // namespace

std::optional<Options> parse_model_options(int argc, char** argv) {
  CommonOptions common("model_bench",
                       "Times the blocks of a model, forward and backward or forward alone, under each "
                       "sequence-parallel method. Every result is verified.",
                       "  model_bench --methods zeco,lasp2 --tokens 512 --launches 3\n"
                       "  model_bench --pass forward --sequence 1K,2K --ranks 1,2\n"
                       "  model_bench --model gla-1b-h16 --layers 1 --lines dp,full");
  Options& options = common.options();
  RawModels own(common.flags());
  declare(common.flags(), own);
  if (!common.parse(argc, argv, print_list)) return std::nullopt;
  const std::vector<ModelShape> shapes = shapes_of(own);
  const bool all_linear = std::all_of(shapes.begin(), shapes.end(),
                                      [](const ModelShape& one) { return one.softmax_layers() == 0; });
  if (options.baseline.empty() && all_linear) options.baseline = "local";
  options.longest_name = longest_of(names_of(sp_methods()));
  const Dtype dtype = dtype_of(own.dtype, common.executors());
  Groups groups(own);
  for (const ModelShape& shape : shapes)
    for (const Asked& asked : models_of(own, shape, dtype, are_on_gpus(common.executors())))
      groups.add(asked, methods_of(own, shape, asked.stack.has_backward));
  return common.with_cases(groups.all());
}

}  // namespace baton
