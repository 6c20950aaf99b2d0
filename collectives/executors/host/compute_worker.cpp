// SPDX-License-Identifier: Apache-2.0
// The worker's loop and its two queues.
#include "collectives/executors/host/compute_worker.hpp"

#include <utility>

namespace baton {

ComputeWorker::ComputeWorker(std::function<void(int)> run)
    : run_(std::move(run)), thread_([this] { work(); }) {}

ComputeWorker::~ComputeWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  something_to_do_.notify_one();
  thread_.join();
}

void ComputeWorker::submit(int step) {
  ++outstanding_;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(step);
  }
  something_to_do_.notify_one();
}

std::vector<int> ComputeWorker::finished(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) something_done_.wait(lock, [this] { return !done_.empty() || error_; });
  if (error_) std::rethrow_exception(error_);
  outstanding_ -= static_cast<int>(done_.size());
  return std::exchange(done_, {});
}

void ComputeWorker::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    something_to_do_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const int step = queue_.front();
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr error;
    try {
      run_(step);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error) error_ = error;
    done_.push_back(step);
    something_done_.notify_one();
  }
}

}  // namespace baton
