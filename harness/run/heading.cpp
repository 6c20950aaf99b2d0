// SPDX-License-Identifier: Apache-2.0
#include "harness/run/heading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "collectives/collective.hpp"
#include "collectives/executors/launcher.hpp"
#include "harness/cases/case.hpp"
#include "harness/options/options.hpp"
#include "harness/process/conditions.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

void add(std::string& all, const std::string& text) {
  if (!text.empty()) all += (all.empty() ? "" : ", ") + text;
}

std::string with_spaces(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

std::string subject(const AxisValues& a) {
  const std::string beside = a.text("beside").empty() ? "" : ", " + a.text("beside");
  if (a.has("model"))
    return fmt::format("{}: {} of width {}{}", a.text("model"), quantity(a.whole("layers"), "layer"),
                       a.whole("width"), beside);
  return a.has("attention") ? a.text("attention") + " attention" : with_spaces(a.text("kind"));
}

std::string way(const AxisValues& a) {
  if (!a.has("pass")) return a.text("direction");
  return a.text("pass") == "both" ? "both passes" : a.text("pass") + " pass";
}

std::string cadence(const AxisValues& a) { return a.text("cadence") + " rounds"; }

std::string backend(const AxisValues& a) { return "executor " + a.text("executor"); }

std::string heads(const AxisValues& a) {
  const std::string size = fmt::format("heads of {} x {}", a.whole("d_k"), a.whole("d_v"));
  if (!a.has("pass")) return size;
  const std::string on = a.whole("kv_heads") > 0 ? fmt::format(" on {}", a.whole("kv_heads")) : "";
  return fmt::format("{}{}{} {}", a.whole("heads"), on, a.truth("latent") ? " latent" : "", size);
}

std::string maps(const AxisValues& a) {
  return !a.has("map") || a.text("map") == "diagonal" ? "" : a.text("map") + " maps";
}

std::string tokens(const AxisValues& a) {
  if (a.whole("packed") > 0) return fmt::format("packed documents of {} tokens", a.whole("packed"));
  const bool depends_on_tokens = !a.has("pass") && moves_tokens(find_collective(a.text("name")).kind);
  return depends_on_tokens ? fmt::format("{} tokens a rank", a.whole("tokens")) : "";
}

std::string layer(const AxisValues& a) {
  if (!a.has("pass")) return {};
  const std::string gates =
      a.text("gate") == "none" ? "no gates" : a.text("gates") + " " + a.text("gate") + " gates";
  const std::string groups = a.whole("groups") > 1 ? fmt::format(", {} head groups", a.whole("groups")) : "";
  const std::string kernel = a.text("kernel"), version = a.text("kernel_version");
  const std::string by = kernel.empty() ? ""
                         : kernel == "own"
                             ? ", our own kernels"
                             : fmt::format(", blocks by {}{}{}", kernel, version.empty() ? "" : " ", version);
  return fmt::format("{}, {}, chunks of {}{}{}", a.text("dtype"), gates, a.whole("chunk"), groups, by);
}

std::string nodes(const AxisValues& a) {
  return a.whole("ranks_per_node") > 0 ? fmt::format("{} ranks a node", a.whole("ranks_per_node")) : "";
}

std::string threads(const AxisValues& a) {
  return a.whole("threads_per_rank") == 1 ? "one thread a rank, which computes and exchanges by turns" : "";
}

std::string repetition(const AxisValues& a) {
  return a.whole("cycle") > 0 ? fmt::format("cycle {}", a.whole("cycle")) : "";
}

using Words = std::string (*)(const AxisValues&);

/// A fact that the cases of a contest may share, other than the executor: some axes, and a function
/// that puts them into words.
struct Fact {
  std::vector<schema::Key> axes;
  Words words;
};

const std::vector<Fact>& facts_of_axes() {
  static const std::vector<Fact> all{
      {{"kind", "attention", "model", "layers", "width", "mlp", "beside"}, subject},
      {{"direction", "pass"}, way},
      {{"cadence"}, cadence},
      {{"heads", "kv_heads", "latent", "d_k", "d_v"}, heads},
      {{"map"}, maps},
      {{"tokens", "packed"}, tokens},
      {{"dtype", "gate", "gates", "chunk", "groups", "kernel"}, layer},
      {{"ranks_per_node", "ranks_per_gpu"}, nodes},  // the lines of links tell of GPUs that are shared
      {{"threads_per_rank"}, threads},
      {{"cycle"}, repetition}};
  return all;
}

/// True for an axis that no fact has in its words, and that has no column, which has a title.
bool has_no_words(const schema::Field& field) {
  const auto tells = [&](schema::Key key) { return key.field().key == field.key; };
  return field.role == schema::Role::axis && field.title.empty() &&
         std::none_of(facts_of_axes().begin(), facts_of_axes().end(), [&](const Fact& fact) {
           return std::any_of(fact.axes.begin(), fact.axes.end(), tells);
         });
}

/// The axes of a contest that no fact has in its words, as in the name of a case.
std::string others(const AxisValues& a) {
  std::string words;
  for (const AxisValue& one : a)
    if ((one.parts & in_contest) != 0 && has_no_words(one.key.field())) add(words, one.text());
  return words;
}

/// The functions that put all facts into words, in the order in which the words stand.
std::vector<Words> facts() {
  std::vector<Words> all;
  for (const Fact& fact : facts_of_axes()) all.push_back(fact.words);
  all.push_back(others);
  return all;
}

bool is_shared(const std::vector<Case>& cases, Words fact) {
  const std::string first = fact(cases.front().axes());
  return std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return fact(c.axes()) == first; });
}

/// The mode that all rows with a mode share; empty if they have several, or none.
std::string shared_mode(const std::vector<Case>& cases) {
  std::set<std::string> modes;
  for (const Case& c : cases)
    if (!c.workload->variant().empty()) modes.insert(c.workload->variant());
  return modes.size() == 1 ? with_spaces(*modes.begin()) : "";
}

std::string measured_lines(const Options& options) {
  return wrapped(
      fmt::format("# {} warm-up and {} measured rounds a launch; a round is its slowest rank's time; timer "
                  "{:.0f} ns a reading; seed {}",
                  options.warmup, options.rounds, timer_overhead_seconds() * 1e9, options.seed),
      "#   ");
}

/// A warning where the ranks of one host have more busy threads than cores; empty elsewhere.
std::string crowded_line(const std::vector<Case>& cases) {
  const Cores cores = usable_cores();
  const Case* worst = nullptr;
  for (const Case& one : cases)
    if (const Backend& backend = find_backend(one.executor); backend.process_per_rank &&
                                                             backend.tensors == Dtype::f32 &&
                                                             one.ranks * one.threads_per_rank > cores.count())
      if (worst == nullptr || one.ranks > worst->ranks) worst = &one;
  if (worst == nullptr || is_launched()) return {};  // ranks that others bound know their own cores
  return wrapped(
      fmt::format("# Warning: {} ranks keep {} threads busy on {}. Threads wait for their turn, so "
                  "that times compare nothing: ask for fewer --ranks.",
                  worst->ranks, worst->ranks * worst->threads_per_rank, cores_in_words(cores)),
      "#   ");
}

std::string device_lines(const std::string& name, int ranks, const Device& device, const AlphaBeta& model) {
  std::string text =
      device.is_shared()
          ? fmt::format("# {}, {} ranks, up to {} on a GPU by turns: no time here is a measure of a link",
                        name, ranks, executor_choices().ranks_per_gpu)
          : fmt::format("# {}, {}: empty round {:.2f} us", name, quantity(ranks, "rank"),
                        model.floor_seconds * 1e6);
  if (ranks > 1 && !device.is_shared())
    text += fmt::format(", alpha {:.2f} us, beta {:.1f} GB/s", model.alpha_seconds * 1e6, model.beta * 1e-9);
  if (model.message_beta > 0)
    text += fmt::format(" (its own messages {:.2f} us, {:.1f} GB/s)", model.message_alpha_seconds * 1e6,
                        model.message_beta * 1e-9);
  text += "; rounds start by ";
  text += device.starts_on_device() ? "flags between the GPUs" : "a barrier";
  std::string facts = "#";
  for (const auto& [fact, value] : device.facts()) facts += fmt::format(" {} {};", fact, value);
  facts.pop_back();
  return wrapped(text, "#   ") + wrapped(facts, "#   ");
}

std::string processor_lines(const std::string& name, int ranks, const RankLinks& links) {
  const AlphaBeta& model = links.model;
  const std::string where = links.hosts ? " on " + links.hosts->placement : "";
  const std::string classes = links.hosts ? links.hosts->words(model)
                                          : fmt::format("alpha {:.2f} us, beta {:.2f} GB/s",
                                                        model.alpha_seconds * 1e6, model.beta * 1e-9);
  std::string skew = std::isnan(links.start_skew.seconds)
                         ? "unknown (several hosts)"
                         : fmt::format("{:.2f} us", links.start_skew.seconds * 1e6);
  if (links.hosts && links.start_skew.clock_error_seconds > 0)
    skew +=
        fmt::format(", clocks of hosts compared to {:.2f} us", links.start_skew.clock_error_seconds * 1e6);
  return wrapped(fmt::format("# {}, {} ranks{}: {}, start skew {}", name, ranks, where, classes, skew),
                 "#   ");
}

}  // namespace

std::string link_lines(const std::string& name, int ranks, const Device* device, const RankLinks& links) {
  if (device == nullptr && ranks < 2) return {};
  std::string text = device != nullptr ? device_lines(name, ranks, *device, links.model)
                                       : processor_lines(name, ranks, links);
  if (links.hosts && device != nullptr)
    text += fmt::format("# {} ranks on {}\n", ranks, links.hosts->placement);
  if (links.hosts && !links.hosts->irregular.empty()) text += wrapped("# " + links.hosts->irregular, "#   ");
  return text;
}

std::string heading(const Options& options) {
  const std::vector<Case>& cases = options.cases;
  const auto is_measured = [](const Case& c) { return find_backend(c.executor).is_measured; };
  const bool any_measured = std::any_of(cases.begin(), cases.end(), is_measured);
  const bool any_simulated = !std::all_of(cases.begin(), cases.end(), is_measured);
  const Machine machine = this_machine(mpi_library());
  std::string text;
  if (any_measured)
    text = wrapped(fmt::format("# baton {} · {} · {} cores · {} · {} · {} · {}", commit(), machine.cpu,
                               machine.cores, machine.system, machine.mpi, machine.compiler, machine.build),
                   "#   ");
  if (any_simulated)
    text += wrapped(
        fmt::format("# {}~ marks rows in the virtual time of a simulated machine: nothing of them was "
                    "measured",
                    any_measured ? "" : "baton " + commit() + ": "),
        "#   ");
  std::string shared;
  for (const Words fact : facts())
    if (is_shared(cases, fact)) add(shared, fact(cases.front().axes()));
  add(shared, shared_mode(cases));
  if (is_shared(cases, backend)) add(shared, backend(cases.front().axes()));
  if (!shared.empty()) text += wrapped("# " + shared, "#   ");
  return any_measured ? text + measured_lines(options) + crowded_line(cases) : text;
}

std::string contest_title(const std::vector<Case>& cases, const Case& one) {
  std::string title;
  for (const Words fact : facts())
    if (!is_shared(cases, fact)) add(title, fact(one.axes()));
  return title;
}

}  // namespace baton
