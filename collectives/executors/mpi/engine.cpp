// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/mpi/engine.hpp"

#include <sched.h>

#include <thread>
#include <utility>

#include "collectives/executors/host/process_state.hpp"
#include "collectives/executors/mpi/communicator.hpp"

namespace baton {
namespace {

/// The number of cores that each of the `ranks_on_host` ranks of this host can have for itself.
int cores_a_rank(int ranks_on_host) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  const int online = static_cast<int>(std::thread::hardware_concurrency());
  // A process is either bound to its own cores or shares all cores with its neighbours.
  return CPU_COUNT(&allowed) < online ? CPU_COUNT(&allowed) : online / ranks_on_host;
}

}  // namespace

MpiEngine::MpiEngine(Schedule schedule, MPI_Comm in_order, MPI_Comm in_reverse, int ranks_on_host)
    : schedule_(std::move(schedule)),
      memory_(schedule_),
      in_order_(in_order),
      in_reverse_(in_reverse),
      graph_(schedule_.steps()),
      feeds_message_(feeding_messages(schedule_.steps(), graph_)),
      recorder_(schedule_.home_rank(), static_cast<int>(schedule_.steps().size())),
      has_spare_core_(cores_a_rank(ranks_on_host) >= 2) {
  for (const NativeCall& native : schedule_.natives()) natives_.push_back(mpi_natives().at(native.name));
  for (const Step& step : schedule_.steps()) operands_.push_back(memory_.operands(step));
  if (!schedule_.kernels().empty())
    worker_ = std::make_unique<ComputeWorker>([this](int index) {
      running_step.computes = index;
      recorder_.starts(index);
      run_on_host(schedule_, schedule_.steps()[index], operands_[index]);
      recorder_.finishes(index);
      running_step.computes = -1;
    });
}

std::vector<StepTime> MpiEngine::run_traced() {
  recorder_.record(true);
  run();
  recorder_.record(false);
  return recorder_.times();
}

void MpiEngine::run() {
  blocked_by_ = graph_.blockers();
  unfinished_ = graph_.size();
  for (int i = 0; i < graph_.size(); ++i)
    if (graph_.blockers()[i] == 0) make_ready(i);
  while (unfinished_ > 0) {
    for (; !ready_messages_.empty(); ready_messages_.pop_front()) start_message(ready_messages_.front());
    if (!ready_urgent_.empty()) {
      run_next(ready_urgent_);
    } else if (!ready_local_.empty() && requests_.empty()) {
      run_next(ready_local_);
    } else {
      wait_for_something();
    }
  }
  running_step.ends();
}

void MpiEngine::run_next(std::deque<int>& ready) {
  const int index = ready.front();
  ready.pop_front();
  run_local(index);
  look_after_messages();
}

void MpiEngine::start_message(int index) {
  recorder_.starts(index);
  const Step& step = schedule_.steps()[index];
  MPI_Request request = MPI_REQUEST_NULL;
  if (step.verb == Verb::send) {
    const auto from = operands_[index].reads[0];
    mpi(MPI_Isend(from.data(), static_cast<int>(from.size()), MPI_FLOAT, step.peer, step.sequence, in_order_,
                  &request));
  } else {
    const auto into = operands_[index].writes[0];
    mpi(MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_FLOAT, step.peer, step.sequence, in_order_,
                  &request));
  }
  requests_.push_back(request);
  under_way_.push_back(index);
}

void MpiEngine::run_local(int index) {
  running_step.runs(index);
  recorder_.starts(index);
  const Step& step = schedule_.steps()[index];
  if (step.verb == Verb::native) {
    const NativeCall& native = schedule_.natives()[step.body];
    natives_[step.body]({native.reversed ? in_reverse_ : in_order_, native.blocks, operands_[index]});
  } else {
    run_on_host(schedule_, step, operands_[index]);
    worked_ += step.writes.back().count;
  }
  recorder_.finishes(index);
  finish(index);
}

/// A library without its own threads moves data only inside its calls, so long local work would
/// stall ranks that wait for data from this one. Testing after every short step would cost more
/// than it saves.
void MpiEngine::look_after_messages() {
  constexpr std::int64_t elements_between_looks = 16 * 1024;  // about ten microseconds
  if (worked_ >= elements_between_looks && !requests_.empty()) finish_messages(false);
}

void MpiEngine::wait_for_something() {
  const bool computes = worker_ && worker_->is_busy();
  if (!under_way_.empty())
    running_step.waits_for(under_way_.front(), schedule_.steps()[under_way_.front()].peer);
  if (!computes) {
    finish_messages(true);
  } else if (requests_.empty()) {
    finish_computed(true);
  } else {
    // A message or a compute step may end next, so both are polled. Polling without a pause would
    // slow down a worker on the same core.
    while (finish_messages(false) + finish_computed(false) == 0)
      if (!has_spare_core_) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

int MpiEngine::finish_messages(bool wait) {
  completed_.resize(requests_.size());
  int count = 0;
  worked_ = 0;
  const auto some = wait ? MPI_Waitsome : MPI_Testsome;
  mpi(some(static_cast<int>(requests_.size()), requests_.data(), &count, completed_.data(),
           MPI_STATUSES_IGNORE));
  if (count == 0) return 0;
  for (int i = 0; i < count; ++i) {
    recorder_.finishes(under_way_[completed_[i]]);
    finish(under_way_[completed_[i]]);
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    under_way_[kept++] = under_way_[i];
  }
  requests_.resize(kept);
  under_way_.resize(kept);
  return count;
}

int MpiEngine::finish_computed(bool wait) {
  const std::vector<int> computed = worker_->finished(wait);
  for (int index : computed) finish(index);
  return static_cast<int>(computed.size());
}

void MpiEngine::finish(int index) {
  --unfinished_;
  for (int after : graph_.waiters(index))
    if (--blocked_by_[after] == 0) make_ready(after);
}

void MpiEngine::make_ready(int index) {
  const Step& step = schedule_.steps()[index];
  if (step.verb == Verb::compute) return worker_->submit(index);
  (step.is_message()       ? ready_messages_
   : feeds_message_[index] ? ready_urgent_
                           : ready_local_)
      .push_back(index);
}

}  // namespace baton
