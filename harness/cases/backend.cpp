// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/backend.hpp"

#include <algorithm>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

Backend backend_of(const ExecutorEntry& entry) {
  return {.name = entry.name,
          .summary = entry.summary,
          .process_per_rank = entry.process_per_rank,
          .is_measured = true,
          .tensors = entry.tensors,
          .family = entry.tensors == Dtype::bf16 && entry.wire == Dtype::f32 ? "GPUs" : entry.name,
          .runs_native =
              [&entry](const std::string& name) { return entry.runs_native && entry.runs_native(name); },
          .shares_gpus = entry.shares_gpus,
          .most_threads = entry.most_threads,
          .lacking = [&entry](int ranks) { return entry.lacking(ranks); }};
}

std::vector<Backend> all_backends() {
  std::vector<Backend> all{
      {.name = "simulator",
       .summary = "virtual time on a machine of --topology: nothing is moved, all is predicted",
       .process_per_rank = false,
       .is_measured = false,
       .family = "simulator",
       .runs_native = [](const std::string&) { return false; },
       .lacking = [](int) { return Refusal{}; }}};
  for (const ExecutorEntry* entry : executors()) all.push_back(backend_of(*entry));
  std::sort(all.begin(), all.end(), [](const Backend& a, const Backend& b) { return a.name < b.name; });
  return all;
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = all_backends();
  return all;
}

const Backend& find_backend(const std::string& name) {
  for (const Backend& backend : backends())
    if (backend.name == name) return backend;
  throw UsageError("the executor '" + name + "' is not built in");
}

}  // namespace baton
