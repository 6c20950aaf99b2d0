// SPDX-License-Identifier: Apache-2.0
// Executor `faulty`: the executor `mpi` with one fault, which the variable BATON_FAULT names. The
// variable BATON_FAULT_IN names another executor. Without a fault it only stands for the other.
//
//   prepare: schedules recorded once more under the fault's edit (faults.cpp)
//   run:     a fault of rounds, or of the collective that is prepared (collectives.cpp)
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/forwarding_executor.hpp"
#include "tests/harness/faults/rewrite.hpp"

namespace baton {
namespace {

using Clock = std::chrono::steady_clock;

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

class FaultyExecutor : public ForwardingExecutor {
 public:
  explicit FaultyExecutor(int ranks)
      : ForwardingExecutor(variable("BATON_FAULT_IN", "mpi"), ranks), fault_(variable("BATON_FAULT", "")) {
    const bool is_of_rounds = fault_ == "garbage_once" || fault_ == "idle_after_four" || fault_ == "slow5";
    if (!fault_.empty() && !is_of_rounds && !step_faults().contains(fault_))
      throw UsageError("there is no fault '" + fault_ + "'");
  }

  void prepare(std::vector<Schedule> schedules) override;
  double run() override;

 private:
  /// What the prepared collective does to this process.
  void misbehave();
  void write_garbage();
  bool is_in(const std::string& region) const {
    return std::find(regions_.begin(), regions_.end(), region) != regions_.end();
  }

  std::string fault_;
  std::vector<std::string> regions_;
  Slice output_;
  bool is_all_scan_ = false;
  int rounds_ = 0;
  std::vector<std::vector<char>> hoard_;
};

void FaultyExecutor::prepare(std::vector<Schedule> schedules) {
  rounds_ = 0;
  const Schedule& own = schedules[local_ranks().front()];
  regions_ = own.regions();
  is_all_scan_ =
      !own.steps().empty() && regions_.size() == 1 && where(own.steps()[0]).starts_with("all_scan.cpp");
  output_ = {};
  for (const Buffer& buffer : own.buffers())
    if (buffer.role == Role::output && buffer.covered) output_ = own.buffer(buffer.name);
  const auto edit = step_faults().find(fault_);
  if (edit != step_faults().end())
    for (Schedule& schedule : schedules) schedule = rewritten(schedule, edit->second);
  ForwardingExecutor::prepare(std::move(schedules));
}

double FaultyExecutor::run() {
  ++rounds_;
  if (fault_ == "idle_after_four" && rounds_ > 4) return 5e-8;
  if (local_ranks().front() == 1 && rounds_ == 4) misbehave();
  const auto start = Clock::now();
  double seconds = ForwardingExecutor::run();
  if (fault_ == "garbage_once" && rounds_ == 6) write_garbage();
  if (fault_ != "slow5" || !is_all_scan_) return seconds;
  const std::chrono::duration<double> longer(seconds * 1.05);
  while (Clock::now() - start < longer) {
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void FaultyExecutor::misbehave() {
  if (is_in("hang"))
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  if (is_in("crash")) std::abort();
  if (is_in("throw")) throw std::runtime_error("a planted error");
  if (is_in("kill")) std::raise(SIGKILL);
  if (is_in("stop")) std::raise(SIGSTOP);
  if (is_in("memory")) throw std::bad_alloc();
}

void FaultyExecutor::write_garbage() {
  const float garbage = 1234.5F;
  if (!output_.empty()) write(local_ranks().front(), output_.part(output_.count / 2, 1), {&garbage, 1});
}

const RegisteredExecutor registered{{
    .name = "faulty",
    .summary = "mpi with the fault that BATON_FAULT names",
    .process_per_rank = true,
    .make = [](int ranks) { return std::make_unique<FaultyExecutor>(ranks); },
    .runs_native = [](const std::string& name) { return find_executor("mpi").runs_native(name); },
    .shares_gpus = true,
}};

}  // namespace
}  // namespace baton
