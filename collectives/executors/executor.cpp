// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/executor.hpp"

#include <utility>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/registry.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {
namespace {

Registry<ExecutorEntry>& registry() {
  static Registry<ExecutorEntry> all("executor");
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

RegisteredExecutor::RegisteredExecutor(ExecutorEntry entry) {
  const std::string name = entry.name;
  registry().add(name, std::move(entry));
}

std::vector<const ExecutorEntry*> executors() { return registry().all(); }

const ExecutorEntry& find_executor(const std::string& name) {
  if (const ExecutorEntry* entry = registry().find(name)) return *entry;
  throw UsageError("the executor '" + name + "' is not built in");
}

}  // namespace baton
