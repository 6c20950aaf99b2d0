// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/fuzz/thread_ranks.hpp"

#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "collectives/executors/team.hpp"

namespace baton {
namespace {

thread_local int rank_of_thread = 0;

/// Calls of a team whose members are threads.
class ThreadTransport : public TeamTransport {
 public:
  explicit ThreadTransport(int ranks) : given_(ranks), meeting_(ranks) {}

  int rank() const override { return rank_of_thread; }
  int size() const override { return static_cast<int>(given_.size()); }
  void gather(void* all, const void* mine, std::size_t bytes) const override {
    given_[rank()] = mine;
    meeting_.arrive_and_wait();
    for (int from = 0; from < size() && bytes > 0; ++from)
      std::memcpy(static_cast<char*>(all) + from * bytes, given_[from], bytes);
    meeting_.arrive_and_wait();
  }
  void broadcast(void* data, std::size_t bytes, int from) const override {
    given_[rank()] = data;
    meeting_.arrive_and_wait();
    if (rank() != from && bytes > 0) std::memcpy(data, given_[from], bytes);
    meeting_.arrive_and_wait();
  }
  void barrier() const override { meeting_.arrive_and_wait(); }
  void barrier_asleep() const override { barrier(); }

 private:
  mutable std::vector<const void*> given_;
  mutable std::barrier<> meeting_;
};

class ThreadBootstrap : public Bootstrap {
 public:
  explicit ThreadBootstrap(int ranks) : transport_(std::make_shared<ThreadTransport>(ranks)) {}

  int rank() const override { return rank_of_thread; }
  int size() const override { return transport_->size(); }
  Team team(int) const override { return Team(transport_); }
  std::string address() const override { return "127.0.0.1"; }
  [[noreturn]] void abort(int code) const override { std::_Exit(code); }

 private:
  std::shared_ptr<const ThreadTransport> transport_;
};

}  // namespace

ThreadRanks::ThreadRanks(const std::string& name, int ranks) : unfinished_(ranks) {
  const ThreadBootstrap bootstrap(ranks);
  const Bootstrap* before = std::exchange(the_bootstrap(), &bootstrap);
  for (int rank = 0; rank < ranks; ++rank)
    threads_.emplace_back([=, this] { serve(rank, [&] { return find_executor(name).make(ranks); }); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return unfinished_ == 0; });
  the_bootstrap() = before;
}

ThreadRanks::~ThreadRanks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadRanks::run(const Work& work, const std::function<std::string()>& what) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  unfinished_ = static_cast<int>(threads_.size());
  ++turn_;
  changed_.notify_all();
  const bool is_over = changed_.wait_for(lock, std::chrono::minutes(1),
                                         [this] { return unfinished_ == 0 || !failure_.empty(); });
  if (is_over && failure_.empty()) return;
  std::fprintf(stderr, "%s: %s\n", what().c_str(), is_over ? failure_.c_str() : "the ranks hang");
  std::abort();
}

void ThreadRanks::serve(int rank, const std::function<std::unique_ptr<Executor>()>& make) {
  rank_of_thread = rank;
  const std::unique_ptr<Executor> executor = make();
  std::unique_lock lock(mutex_);
  for (int done = 0;; done = turn_) {
    if (--unfinished_ == 0) changed_.notify_all();
    changed_.wait(lock, [&] { return ends_ || turn_ > done; });
    if (ends_) return;
    lock.unlock();
    std::string failure;
    try {
      (*work_)(rank, *executor);
    } catch (const std::exception& error) {
      failure = "rank " + std::to_string(rank) + ": " + error.what();
    }
    lock.lock();
    if (failure_.empty()) failure_ = failure;
    if (!failure.empty()) changed_.notify_all();
  }
}

}  // namespace baton
