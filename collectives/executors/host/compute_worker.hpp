// SPDX-License-Identifier: Apache-2.0
// A thread that runs compute steps in the order of submission, beside the thread that communicates.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace baton {

class ComputeWorker {
 public:
  /// Starts the worker's thread, which calls `run` with the number of each submitted step.
  explicit ComputeWorker(std::function<void(int)> run);
  /// Waits for the running step and drops the queued ones.
  ~ComputeWorker();
  ComputeWorker(const ComputeWorker&) = delete;
  ComputeWorker& operator=(const ComputeWorker&) = delete;

  void submit(int step);

  /// True while `finished` has not returned every submitted step.
  bool is_busy() const { return outstanding_ > 0; }

  /// The steps that have finished since the last call. With `wait` it blocks until there is at
  /// least one, which must be outstanding. Rethrows the exception of a step.
  std::vector<int> finished(bool wait);

 private:
  void work();

  std::function<void(int)> run_;
  int outstanding_ = 0;  // of the submitting thread alone
  std::mutex mutex_;
  std::condition_variable something_to_do_;
  std::condition_variable something_done_;
  std::deque<int> queue_;
  std::vector<int> done_;
  std::exception_ptr error_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all of the above
};

inline ComputeWorker::ComputeWorker(std::function<void(int)> run)
    : run_(std::move(run)), thread_([this] { work(); }) {}

inline ComputeWorker::~ComputeWorker() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  something_to_do_.notify_one();
  thread_.join();
}

inline void ComputeWorker::submit(int step) {
  ++outstanding_;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(step);
  }
  something_to_do_.notify_one();
}

inline std::vector<int> ComputeWorker::finished(bool wait) {
  std::unique_lock lock(mutex_);
  if (wait) something_done_.wait(lock, [this] { return !done_.empty() || error_; });
  if (error_) std::rethrow_exception(error_);
  outstanding_ -= static_cast<int>(done_.size());
  return std::exchange(done_, {});
}

inline void ComputeWorker::work() {
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
