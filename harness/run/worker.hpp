// SPDX-License-Identifier: Apache-2.0
// The part of each rank in a launch: it runs the cases of a plan, and rank 0 sends what they give.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "harness/machine/system.hpp"
#include "harness/process/watchdog.hpp"
#include "harness/run/channel.hpp"

namespace baton {

class CaseRunner;
struct Backend;
struct Case;
struct Options;
struct Prepared;
struct Topology;

/// Runs the cases of a launch on all its ranks.
class Worker {
 public:
  /// `send` takes the messages of rank 0. `resume_hint` is what the watchdog says of the results
  /// when the launch is ended from outside. All arguments must outlive the worker. Collective over
  /// `world`.
  Worker(const Options& options, const std::optional<Topology>& topology, const World& world,
         TakeMessage send, const std::string& resume_hint);
  ~Worker();

  /// Runs the cases of `plan` in its order. Collective over the world. Throws what Executor throws.
  void run(const Plan& plan);

 private:
  void run_case(int index, bool is_last);
  Result failed_result(const Case& bench_case, const std::string& error) const;
  Machine machine_for(const Case& bench_case) const;
  void write_files(CaseRunner& runner, const Prepared& prepared);
  CaseRunner& runner(const Case& bench_case);
  std::unique_ptr<CaseRunner> make_runner(const Backend& backend, int ranks);
  void send(const Message& message);

  const Options& options_;
  const std::optional<Topology>& topology_;
  const World& world_;
  TakeMessage send_;
  const Machine machine_;
  Watchdog watchdog_;
  std::map<std::pair<const Backend*, int>, std::unique_ptr<CaseRunner>> runners_;
};

}  // namespace baton
