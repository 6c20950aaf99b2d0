// SPDX-License-Identifier: Apache-2.0
// Ranks of an executor with a process a rank, as threads of one process: thousands of schedules can
// run on it one after the other without a launch.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collectives/executors/executor.hpp"

namespace baton {

class ThreadRanks {
 public:
  /// What a rank does with its executor.
  using Work = std::function<void(int rank, Executor& executor)>;

  /// Starts `ranks` ranks of the executor called `name`, connected over this host.
  ThreadRanks(const std::string& name, int ranks);
  ~ThreadRanks();
  ThreadRanks(const ThreadRanks&) = delete;
  ThreadRanks& operator=(const ThreadRanks&) = delete;

  /// Lets all ranks do `work`. Ends the program, saying `what()`, if one of them fails, or if they
  /// have not come to an end after a minute: ranks that wait for one another cannot be stopped.
  void run(const Work& work, const std::function<std::string()>& what);

 private:
  void serve(int rank, const std::function<std::unique_ptr<Executor>()>& make);

  std::mutex mutex_;
  std::condition_variable changed_;
  const Work* work_ = nullptr;
  int turn_ = 0;        // how often `run` was called
  int unfinished_ = 0;  // ranks
  std::string failure_;
  bool ends_ = false;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace baton
