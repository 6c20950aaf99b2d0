// SPDX-License-Identifier: Apache-2.0
// A rank that fails before a meeting of all does not leave the others waiting there.
#include "collectives/executors/agreement.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace baton;

/// What the threads of a team share.
struct Meeting {
  explicit Meeting(int ranks) : all(ranks), bytes(4096) {}
  std::barrier<> all;
  std::vector<char> bytes;
};

/// One thread of a team.
class ThreadTransport : public TeamTransport {
 public:
  ThreadTransport(std::shared_ptr<Meeting> meeting, int rank, int size)
      : meeting_(std::move(meeting)), rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void gather(void* all, const void* mine, std::size_t bytes) const override {
    std::memcpy(meeting_->bytes.data() + static_cast<std::size_t>(rank_) * bytes, mine, bytes);
    barrier();
    std::memcpy(all, meeting_->bytes.data(), static_cast<std::size_t>(size_) * bytes);
    barrier();
  }
  void broadcast(void* data, std::size_t bytes, int from) const override {
    if (rank_ == from) std::memcpy(meeting_->bytes.data(), data, bytes);
    barrier();
    std::memcpy(data, meeting_->bytes.data(), bytes);
    barrier();
  }
  void barrier() const override { meeting_->all.arrive_and_wait(); }
  void barrier_asleep() const override { barrier(); }

 private:
  std::shared_ptr<Meeting> meeting_;
  int rank_, size_;
};

/// What each of three ranks learns if those in `failing` fail.
std::vector<std::string> learnt(const std::vector<int>& failing) {
  constexpr int ranks = 3;
  const auto meeting = std::make_shared<Meeting>(ranks);
  std::vector<std::string> texts(ranks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const Team team(std::make_shared<ThreadTransport>(meeting, rank, ranks));
      texts[rank] = failure_of(team, [&] {
        for (const int one : failing)
          if (one == rank) throw SystemError("rank " + std::to_string(rank) + " has no memory");
      });
      team.barrier();  // all come here
    });
  threads.clear();
  return texts;
}

TEST(Agreement, AllRanksLearnTheFirstFailureAndMeetAgain) {
  EXPECT_EQ(learnt({}), std::vector<std::string>(3, ""));
  EXPECT_EQ(learnt({1}), std::vector<std::string>(3, "rank 1 has no memory"));
  EXPECT_EQ(learnt({2, 1}), std::vector<std::string>(3, "rank 1 has no memory"));
  EXPECT_EQ(learnt({0, 1, 2}), std::vector<std::string>(3, "rank 0 has no memory"));
}

TEST(Agreement, APartyOfOneAgreesWithItself) {
  EXPECT_EQ(failure_of(Team{}, [] { throw SystemError("alone"); }), "alone");
  EXPECT_EQ(failure_of(Team{}, [] {}), "");
}

}  // namespace
