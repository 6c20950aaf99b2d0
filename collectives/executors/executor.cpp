// SPDX-License-Identifier: Apache-2.0
// The registry of executors.
#include "collectives/executors/executor.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "collectives/schedule/bf16.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

std::deque<ExecutorEntry>& registry() {
  static std::deque<ExecutorEntry> all;
  return all;
}

}  // namespace

std::vector<double> Executor::stream(int rounds) {
  std::vector<double> seconds(rounds);
  for (double& round : seconds) round = run();
  return seconds;
}

double wire_roundoff(const Executor& executor) {
  return executor.wire_dtype() == Dtype::bf16 ? bf16_roundoff : 0;
}

ExecutorChoices& executor_choices() {
  static ExecutorChoices choices;
  return choices;
}

RegisteredExecutor::RegisteredExecutor(ExecutorEntry entry) { registry().push_back(std::move(entry)); }

std::vector<const ExecutorEntry*> executors() {
  std::vector<const ExecutorEntry*> all;
  for (const ExecutorEntry& entry : registry()) all.push_back(&entry);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return all;
}

const ExecutorEntry& find_executor(const std::string& name) {
  for (const ExecutorEntry& entry : registry())
    if (entry.name == name) return entry;
  throw UsageError("the executor '" + name + "' is not built in");
}

}  // namespace baton
