// SPDX-License-Identifier: Apache-2.0
#include "harness/run/heading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collectives/collective.hpp"
#include "collectives/executors/launcher.hpp"
#include "harness/cases/case.hpp"
#include "harness/machine/conditions.hpp"
#include "harness/machine/system.hpp"
#include "harness/measure/hosts.hpp"
#include "harness/options/options.hpp"
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
  const std::int64_t count = a.whole("heads");
  const std::string size = fmt::format("of {} x {}", a.whole("d_k"), a.whole("d_v"));
  if (!a.has("pass")) return "heads " + size;
  const std::string on = a.whole("kv_heads") > 0 ? fmt::format(" on {}", a.whole("kv_heads")) : "";
  return fmt::format("{}{}{} head{} {}", count, on, a.truth("latent") ? " latent" : "", count == 1 ? "" : "s",
                     size);
}

std::string maps(const AxisValues& a) {
  return !a.has("map") || a.text("map") == "diagonal" ? "" : a.text("map") + " maps";
}

std::string tokens(const AxisValues& a) {
  if (a.whole("packed") > 0) return "packed documents of " + quantity(a.whole("packed"), "token");
  const bool depends_on_tokens = !a.has("pass") && moves_tokens(find_collective(a.text("name")).kind);
  return depends_on_tokens ? quantity(a.whole("tokens"), "token") + " a rank" : "";
}

/// Who computes softmax blocks on GPUs.
std::string kernels(const AxisValues& a) {
  const std::string kernel = a.text("kernel"), version = a.text("kernel_version");
  if (kernel.empty()) return {};
  if (kernel == "own") return "our own kernels";
  return fmt::format("blocks by {}{}{}", kernel, version.empty() ? "" : " ", version);
}

std::string layer(const AxisValues& a) {
  if (!a.has("pass")) return {};
  // Softmax attention has neither gates nor chunks.
  const std::string gates =
      a.text("gate") == "none" ? "no gates" : a.text("gates") + " " + a.text("gate") + " gates";
  const std::string linear =
      a.text("attention") == "softmax" ? "" : fmt::format("{}, chunks of {}", gates, a.whole("chunk"));
  const std::string groups = a.whole("groups") > 1 ? fmt::format("{} head groups", a.whole("groups")) : "";
  std::string words = a.text("dtype");
  for (const std::string& more : {linear, groups, kernels(a)}) add(words, more);
  return words;
}

std::string nodes(const AxisValues& a) {
  return a.whole("ranks_per_node") > 0 ? quantity(a.whole("ranks_per_node"), "rank") + " a node" : "";
}

std::string threads(const AxisValues& a) {
  return a.whole("threads_per_rank") == 1 ? "one thread a rank, which computes and exchanges by turns" : "";
}

std::string repetition(const AxisValues& a) {
  return a.whole("cycle") > 0 ? fmt::format("cycle {}", a.whole("cycle")) : "";
}

using Words = Differences::Words;

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

/// The mode that all rows with a mode share; empty if they have several, or none. One thread
/// overlaps nothing, so that of the mode the order alone is left.
std::string shared_mode(const std::vector<Case>& cases) {
  std::set<std::string> modes;
  for (const Case& c : cases)
    if (!c.workload->variant_name().empty()) modes.insert(c.workload->variant_name());
  if (modes.size() != 1) return {};
  const std::string mode = with_spaces(*modes.begin());
  return mode == "overlapped" && !threads(cases.front().axes()).empty() && is_shared(cases, threads)
             ? "in the order of mode overlapped"
             : mode;
}

std::string measured_lines(const Options& options) {
  return wrapped(fmt::format("# {} warm-up and {} a launch; a round is its slowest rank's time; timer "
                             "{:.0f} ns a reading; seed {}",
                             options.warmup, quantity(options.rounds, "measured round"),
                             timer_overhead_seconds() * 1e9, options.seed),
                 "#   ");
}

/// A warning where the ranks of one host have more busy threads than cores; empty elsewhere.
std::string crowded_line(const std::vector<Case>& cases) {
  const Cores cores = usable_cores();
  const Case* worst = nullptr;
  for (const Case& one : cases)
    if (const Backend& backend = *one.backend; backend.process_per_rank && backend.tensors == Dtype::f32 &&
                                               one.ranks * one.threads_per_rank > cores.count())
      if (worst == nullptr || one.ranks > worst->ranks) worst = &one;
  if (worst == nullptr || is_launched()) return {};  // ranks that others bound know their own cores
  return wrapped(fmt::format("# Warning: {} keep {} threads busy on {}. Threads wait for their turn, so "
                             "that times compare nothing: ask for fewer --ranks.",
                             quantity(worst->ranks, "rank"), worst->ranks * worst->threads_per_rank,
                             cores_in_words(cores)),
                 "#   ");
}

}  // namespace

std::string heading(const Options& options) {
  const std::vector<Case>& cases = options.cases;
  const auto is_measured = [](const Case& c) { return c.backend->is_measured; };
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
  if (commit() == unknown_commit) text += wrapped("# Warning: " + commit_lacks(), "#   ");
  std::string shared;
  for (const Words fact : facts())
    if (is_shared(cases, fact)) add(shared, fact(cases.front().axes()));
  add(shared, shared_mode(cases));
  if (is_shared(cases, backend)) add(shared, backend(cases.front().axes()));
  if (!shared.empty()) text += wrapped("# " + shared, "#   ");
  return any_measured ? text + measured_lines(options) + crowded_line(cases) : text;
}

Differences::Differences(const std::vector<Case>& cases) {
  const std::vector<Words> all = facts();
  const AxisValues first = cases.front().axes();
  std::vector<bool> differ(all.size(), false);
  for (const Case& one : cases) {
    const AxisValues axes = one.axes();
    for (std::size_t fact = 0; fact < all.size(); ++fact)
      if (!differ[fact]) differ[fact] = all[fact](axes) != all[fact](first);
    has_variants_ |= one.workload->variant_name() != cases.front().workload->variant_name();
    has_blocks_ |= one.blocks != cases.front().blocks;
  }
  for (std::size_t fact = 0; fact < all.size(); ++fact)
    if (differ[fact]) facts_.push_back(all[fact]);
}

std::string Differences::of_contest(const Case& one) const {
  std::string text;
  for (const Words fact : facts_) add(text, fact(one.axes()));
  return text;
}

std::string Differences::of_case(const Case& one) const {
  std::string text = of_contest(one);
  if (has_variants_) add(text, with_spaces(one.workload->variant_name()));
  if (has_blocks_ && one.workload->cuts_blocks())
    add(text, one.blocks == auto_blocks ? "blocks as chosen" : quantity(one.blocks, "block"));
  return text;
}

}  // namespace baton
