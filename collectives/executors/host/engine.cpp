// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/host/engine.hpp"

#include <thread>
#include <utility>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/host/process_state.hpp"

namespace baton {
namespace {

constexpr std::int64_t elements_between_looks = 16 * 1024;  // about ten microseconds of local work

}  // namespace

Engine::Engine(Schedule schedule, Messages& messages, NativeRunner run_native, int own_cores, int threads)
    : schedule_(std::move(schedule)),
      memory_(schedule_),
      messages_(messages),
      run_native_(std::move(run_native)),
      graph_(schedule_.steps()),
      feeds_message_(feeding_messages(schedule_.steps(), graph_)),
      recorder_(schedule_.home_rank(), static_cast<int>(schedule_.steps().size())),
      has_spare_core_(own_cores >= 2) {
  for (const Step& step : schedule_.steps()) operands_.push_back(memory_.operands(step));
  if (!schedule_.kernels().empty() && threads > 1)
    worker_ = std::make_unique<ComputeWorker>([this](int index) {
      running_step.computes = index;
      recorder_.starts(index);
      run_on_host(schedule_, schedule_.steps()[index], operands_[index]);
      recorder_.finishes(index);
      running_step.computes = -1;
    });
}

std::vector<StepTime> Engine::run_traced() {
  recorder_.record(true);
  run();
  recorder_.record(false);
  return recorder_.times();
}

void Engine::run() {
  messages_.begin_round();
  blocked_by_ = graph_.blockers();
  unfinished_ = graph_.size();
  for (int i = 0; i < graph_.size(); ++i)
    if (graph_.blockers()[i] == 0) make_ready(i);
  while (unfinished_ > 0) {
    for (; !ready_messages_.empty(); ready_messages_.pop_front()) start_message(ready_messages_.front());
    if (!ready_urgent_.empty()) {
      run_next(ready_urgent_);
    } else if (!ready_compute_.empty()) {
      run_next(ready_compute_);
    } else if (!ready_local_.empty() && under_way_ == 0) {
      run_next(ready_local_);
    } else {
      wait_for_something();
    }
  }
  running_step.ends();
}

void Engine::run_next(std::deque<int>& ready) {
  const int index = ready.front();
  ready.pop_front();
  run_local(index);
  look_after_messages();
}

void Engine::start_message(int index) {
  recorder_.starts(index);
  const Step& step = schedule_.steps()[index];
  ++under_way_;
  if (step.verb == Verb::send)
    messages_.send(index, std::as_bytes(operands_[index].reads[0]), step.peer, step.sequence);
  else
    messages_.receive(index, std::as_writable_bytes(operands_[index].writes[0]), step.peer, step.sequence);
}

void Engine::run_local(int index) {
  running_step.runs(index);
  recorder_.starts(index);
  const Step& step = schedule_.steps()[index];
  if (step.verb == Verb::native) {
    run_native_(schedule_.natives()[step.body], operands_[index]);
  } else {
    run_on_host(schedule_, step, operands_[index]);
    worked_ += step.verb == Verb::compute ? elements_between_looks : step.writes.back().count;
  }
  recorder_.finishes(index);
  finish(index);
}

/// Lets messages progress after a kernel or some local work, since a library without its own
/// threads moves data only inside its calls. Testing after every short step would cost more than it
/// saves.
void Engine::look_after_messages() {
  if (worked_ >= elements_between_looks && under_way_ > 0) finish_messages(false);
}

void Engine::wait_for_something() {
  const bool computes = worker_ && worker_->is_busy();
  if (under_way_ > 0)
    running_step.waits_for(messages_.under_way(), schedule_.steps()[messages_.under_way()].peer);
  if (!computes) {
    finish_messages(true);
  } else if (under_way_ == 0) {
    finish_computed(true);
  } else {
    // A message or a compute step may end next, so both are polled. Polling without a pause would
    // slow down a worker on the same core.
    while (finish_messages(false) + finish_computed(false) == 0)
      if (!has_spare_core_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

int Engine::finish_messages(bool wait) {
  worked_ = 0;
  completed_.clear();
  messages_.finish(completed_, wait);
  under_way_ -= static_cast<int>(completed_.size());
  for (int index : completed_) {
    recorder_.finishes(index);
    finish(index);
  }
  return static_cast<int>(completed_.size());
}

int Engine::finish_computed(bool wait) {
  const std::vector<int> computed = worker_->finished(wait);
  for (int index : computed) finish(index);
  return static_cast<int>(computed.size());
}

void Engine::finish(int index) {
  --unfinished_;
  for (int after : graph_.waiters(index))
    if (--blocked_by_[after] == 0) make_ready(after);
}

void Engine::make_ready(int index) {
  const Step& step = schedule_.steps()[index];
  if (step.verb == Verb::compute && worker_) return worker_->submit(index);
  (step.is_message()            ? ready_messages_
   : step.verb == Verb::compute ? ready_compute_
   : feeds_message_[index]      ? ready_urgent_
                                : ready_local_)
      .push_back(index);
}

EngineExecutor::EngineExecutor(int ranks)
    : team_(team_of_first(ranks)),
      is_on_one_host_(team_.host().size == team_.size()),
      own_cores_(cores_of_rank(team_)) {}

double EngineExecutor::run() {
  const double start = monotonic_seconds();
  engine_->run();
  return monotonic_seconds() - start;
}

std::vector<StepTime> EngineExecutor::run_traced() {
  double start = monotonic_seconds();
  std::vector<StepTime> times = engine_->run_traced();
  if (is_on_one_host_) start = team_.min(start);
  for (StepTime& time : times) time.start_seconds -= start, time.finish_seconds -= start;
  return times;
}

void EngineExecutor::prepare_engine(std::vector<Schedule> schedules, Messages& messages,
                                    NativeRunner run_native) {
  engine_.reset();  // its memory first: two cases need not fit at once
  engine_ = std::make_unique<Engine>(std::move(schedules[team_.rank()]), messages, std::move(run_native),
                                     own_cores_, threads_);
}

}  // namespace baton
