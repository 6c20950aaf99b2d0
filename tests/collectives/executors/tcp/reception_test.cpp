// SPDX-License-Identifier: Apache-2.0
// Rank 0 among strangers, who know all that is public about the run.
#include "collectives/executors/tcp/reception.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "collectives/executors/tcp/arrival.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton;
using testing::HasSubstr;

constexpr double hang = 60;  // seconds after which a test has failed

/// What all ranks of a run know, at ports that are free now.
Launcher run_of(int size, const std::string& secret = {}) {
  Launcher known;
  known.bootstrap = "tcp";
  known.size = size;
  known.address = "127.0.0.1";
  known.port = Socket::listen_at(0).port();
  known.run = 77;
  known.secret = secret;
  return known;
}

Launcher as_rank(Launcher known, int rank) {
  known.rank = rank;
  return known;
}

/// A connection to rank 0, which has sent its challenge.
class Stranger {
 public:
  explicit Stranger(const Launcher& run)
      : run_(run), socket_(Socket::connect_to(run.address, run.port, Deadline(hang))) {
    EXPECT_TRUE(socket_.receive_all(&challenge_, sizeof challenge_, Deadline(hang)));
  }

  Hello hello(int rank, Purpose purpose, const Number& seat = {}) const {
    Hello made{.run = run_.run, .rank = rank, .size = run_.size, .purpose = purpose, .seat = seat};
    made.number = fresh_number();
    made.proof = proof_of(made, challenge_.number, run_.secret);
    return made;
  }
  Verdict say(const Hello& hello) const {
    Verdict verdict;
    EXPECT_TRUE(socket_.send_all(&hello, sizeof hello));
    EXPECT_TRUE(socket_.receive_all(&verdict, sizeof verdict, Deadline(hang)));
    return verdict;
  }
  Verdict ask(int rank, Purpose purpose, const Number& seat = {}) const {
    return say(hello(rank, purpose, seat));
  }
  /// Waits until rank 0 has closed the connection.
  bool is_sent_away() const {
    char word = 0;
    while (socket_.receive_all(&word, 1)) continue;
    return true;
  }

 private:
  const Launcher& run_;
  Socket socket_;
  Challenge challenge_;
};

/// Rank 0 of a run, which receives on a thread.
class Rank0 {
 public:
  explicit Rank0(const Launcher& run, double seconds = hang)
      : reception_(run),
        star_(std::async(std::launch::async, [this, seconds] { return reception_.receive_all(seconds); })) {}

  Star star() { return star_.get(); }
  std::string failure() {
    try {
      star_.get();
    } catch (const SystemError& error) {
      return error.what();
    }
    return "";
  }

 private:
  Reception reception_;
  std::future<Star> star_;
};

/// Has the ranks from 1 on meet, and rank 0 with them.
void expect_to_meet(const Launcher& run, Rank0& rank_0) {
  std::vector<std::future<Star>> others;
  for (int rank = 1; rank < run.size; ++rank)
    others.push_back(
        std::async(std::launch::async, [&run, rank] { return find_rank_0(as_rank(run, rank), hang); }));
  EXPECT_EQ(rank_0.star().calls.size(), static_cast<std::size_t>(run.size));
  for (auto& other : others) EXPECT_EQ(other.get().address, "127.0.0.1");
}

TEST(Reception, OfRanksThatComeAtOnce) {
  for (const char* secret : {"", "words that nobody knows"}) {
    const Launcher run = run_of(9, secret);
    Rank0 rank_0(run);
    expect_to_meet(run, rank_0);
  }
}

TEST(Reception, FindsAStrangerWhoIsSilentInASeat) {
  const Launcher run = run_of(3);
  Rank0 rank_0(run);
  const Stranger calls(run), beats(run);
  const Verdict verdict = calls.ask(2, Purpose::calls);
  EXPECT_EQ(verdict.answer, Answer::come_in);
  EXPECT_EQ(beats.ask(2, Purpose::beats, verdict.seat).answer, Answer::come_in);
  expect_to_meet(run, rank_0);
  EXPECT_TRUE(calls.is_sent_away());
  EXPECT_TRUE(beats.is_sent_away());
}

TEST(Reception, NamesARankForWhomOnlyAStrangerCame) {
  const Launcher run = run_of(2);
  Rank0 rank_0(run, 2);
  const Stranger calls(run), beats(run);
  beats.ask(1, Purpose::beats, calls.ask(1, Purpose::calls).seat);
  EXPECT_THAT(rank_0.failure(), HasSubstr("rank 1 of 2 did not come to 127.0.0.1:"));
}

TEST(Reception, RefusesWhatIsNoRankOfTheRun) {
  const Launcher run = run_of(3);
  Rank0 rank_0(run);
  EXPECT_EQ(Stranger(run).ask(1, static_cast<Purpose>(7)).answer, Answer::other_run) << "an unknown purpose";
  for (const int rank : {-1, 0, 3, 1 << 30})
    EXPECT_EQ(Stranger(run).ask(rank, Purpose::calls).answer, Answer::other_run) << rank;
  for (const auto change : {+[](Hello& said) { said.run = 78; }, +[](Hello& said) { said.size = 4; }}) {
    const Stranger other(run);
    Hello said = other.hello(1, Purpose::calls);
    change(said);
    EXPECT_EQ(other.say(said).answer, Answer::other_run);
  }
  expect_to_meet(run, rank_0);
}

TEST(Reception, RefusesWhoeverDoesNotProveTheSecret) {
  const Launcher run = run_of(2, "words that nobody knows"), other = [&run] {
    Launcher changed = run;
    changed.secret = "other words";
    return changed;
  }();
  Rank0 rank_0(run);
  EXPECT_EQ(Stranger(other).ask(1, Purpose::calls).answer, Answer::other_secret);
  const Stranger knows(run), repeats(run), alters(run);
  const Hello heard = knows.hello(1, Purpose::calls);
  EXPECT_EQ(repeats.say(heard).answer, Answer::other_secret)
      << "a proof that was made for another connection";
  Hello changed = alters.hello(1, Purpose::calls);
  changed.purpose = Purpose::beats;
  EXPECT_EQ(alters.say(changed).answer, Answer::other_secret) << "a proof of other words";
  expect_to_meet(run, rank_0);
}

TEST(Reception, GivesASeatToOneAtATime) {
  const Launcher run = run_of(2);
  Rank0 rank_0(run);
  {
    const Stranger first(run);
    const Number seat = first.ask(1, Purpose::calls).seat;
    EXPECT_EQ(Stranger(run).ask(1, Purpose::calls).answer, Answer::taken);
    EXPECT_EQ(Stranger(run).ask(1, Purpose::beats).answer, Answer::taken)
        << "beats of whom the calls are not";
    EXPECT_EQ(Stranger(run).ask(1, Purpose::beats, seat).answer, Answer::come_in);
  }
  EXPECT_EQ(Stranger(run).ask(1, Purpose::calls).answer, Answer::come_in) << "the connection has ended";
  expect_to_meet(run, rank_0);
}

}  // namespace
