// SPDX-License-Identifier: Apache-2.0
// What all cases of a run share stands above its table, with the links of its ranks; and what the
// cases of a contest share above its rows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "collectives/collective.hpp"
#include "harness/measure/machine.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/report/table.hpp"
#include "harness/run/display.hpp"
#include "harness/run/experiment.hpp"

namespace baton {
namespace {

using Fact = std::string (*)(const Case&);

std::string with_spaces(std::string word) {
  std::replace(word.begin(), word.end(), '_', ' ');
  return word;
}

std::string subject(const Case& c) {
  const Description d = c.workload->describe();
  if (d.model)
    return fmt::format("{}: {} layers of width {}{}{}", d.model->model, d.model->layers, d.model->width,
                       d.model->beside.empty() ? "" : ", ", d.model->beside);
  return d.layer ? d.layer->attention + " attention" : with_spaces(d.kind);
}

std::string way(const Case& c) {
  const Description d = c.workload->describe();
  if (!d.layer) return d.direction;
  return d.layer->pass == "both" ? "both passes" : d.layer->pass + " pass";
}

std::string cadence(const Case& c) { return std::string(to_string(c.timing)) + " rounds"; }

std::string backend(const Case& c) { return "executor " + c.executor; }

std::string heads(const Case& c) {
  const Description d = c.workload->describe();
  const std::string size = fmt::format("heads of {} x {}", d.d_k, d.d_v);
  if (!d.layer) return size;
  const bool is_grouped = d.layer->kv_heads != d.heads;
  const std::string on = is_grouped ? fmt::format(" on {}", d.layer->kv_heads) : "";
  return fmt::format("{}{}{} {}", d.heads, on, d.layer->latent ? " latent" : "", size);
}

std::string maps(const Case& c) {
  const MapKind map = c.workload->describe().map;
  return map == MapKind::diagonal ? "" : std::string(to_string(map)) + " maps";
}

std::string tokens(const Case& c) {
  const Description d = c.workload->describe();
  if (d.layer && d.layer->packed > 0) return fmt::format("packed documents of {} tokens", d.layer->packed);
  const bool depends_on_tokens = !d.layer && moves_tokens(find_collective(d.name).kind);
  return depends_on_tokens ? fmt::format("{} tokens a rank", d.tokens) : "";
}

std::string layer(const Case& c) {
  const auto layer = c.workload->describe().layer;
  if (!layer) return {};
  const std::string gates = layer->gate == "none" ? "no gates" : layer->gates + " " + layer->gate + " gates";
  const std::string groups = layer->groups > 1 ? fmt::format(", {} head groups", layer->groups) : "";
  const std::string by = layer->kernel.empty() ? ""
                         : layer->kernel == "own"
                             ? ", our own kernels"
                             : fmt::format(", blocks by {}{}{}", layer->kernel,
                                           layer->kernel_version.empty() ? "" : " ", layer->kernel_version);
  return fmt::format("{}, {}, chunks of {}{}{}", layer->dtype, gates, layer->chunk, groups, by);
}

std::string nodes(const Case& c) {
  return c.ranks_a_node > 0 ? fmt::format("{} ranks a node", c.ranks_a_node) : "";
}

std::string repetition(const Case& c) { return c.cycle > 0 ? fmt::format("cycle {}", c.cycle) : ""; }

/// Facts that the cases of a contest share, but for the executor.
constexpr std::array<Fact, 9> facts{subject, way, cadence, heads, maps, tokens, layer, nodes, repetition};

bool is_shared(const std::vector<Case>& cases, Fact fact) {
  const std::string first = fact(cases.front());
  return std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return fact(c) == first; });
}

void add(std::string& all, const std::string& text) {
  if (!text.empty()) all += (all.empty() ? "" : ", ") + text;
}

/// The mode of all rows but those that have none.
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

std::string device_lines(const std::string& name, int ranks, const Device& device, const AlphaBeta& model) {
  std::string text =
      device.is_shared()
          ? fmt::format("# {}, {} ranks, up to {} on a GPU by turns: no time here is a measure of a link",
                        name, ranks, executor_choices().ranks_a_gpu)
          : fmt::format("# {}, {} ranks: empty round {:.2f} us", name, ranks, model.floor_seconds * 1e6);
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
  for (const Fact fact : facts)
    if (is_shared(cases, fact)) add(shared, fact(cases.front()));
  add(shared, shared_mode(cases));
  if (is_shared(cases, backend)) add(shared, backend(cases.front()));
  if (!shared.empty()) text += wrapped("# " + shared, "#   ");
  return any_measured ? text + measured_lines(options) : text;
}

std::string contest_title(const std::vector<Case>& cases, const Case& one) {
  std::string title;
  for (const Fact fact : facts)
    if (!is_shared(cases, fact)) add(title, fact(one));
  return title;
}

}  // namespace baton
