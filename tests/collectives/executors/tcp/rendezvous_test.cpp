// SPDX-License-Identifier: Apache-2.0
// Rank 0 among strangers, who know all that is public about the run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <string>

#include "collectives/executors/tcp/rendezvous_client.hpp"
#include "collectives/executors/tcp/rendezvous_server.hpp"
#include "collectives/schedule/errors.hpp"

namespace {

using namespace baton::tcp;
using baton::Launcher;
using baton::SystemError;
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

  Hello hello(int rank, Channel channel, const Nonce& slot = {}) const {
    Hello made{.run = run_.run, .rank = rank, .size = run_.size, .channel = channel, .slot = slot};
    made.nonce = fresh_nonce();
    made.proof = proof_of(made, challenge_.nonce, run_.secret);
    return made;
  }
  Reply say(const Hello& hello) const {
    Reply reply;
    EXPECT_TRUE(socket_.send_all(&hello, sizeof hello));
    EXPECT_TRUE(socket_.receive_all(&reply, sizeof reply, Deadline(hang)));
    return reply;
  }
  Reply ask(int rank, Channel channel, const Nonce& slot = {}) const {
    return say(hello(rank, channel, slot));
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

/// Rank 0 of a run, which accepts on a thread.
class Rank0 {
 public:
  explicit Rank0(const Launcher& run, double seconds = hang)
      : server_(run),
        connections_(
            std::async(std::launch::async, [this, seconds] { return server_.accept_all(seconds); })) {}

  RankConnections connections() { return connections_.get(); }
  std::string failure() {
    try {
      connections_.get();
    } catch (const SystemError& error) {
      return error.what();
    }
    return "";
  }

 private:
  RendezvousServer server_;
  std::future<RankConnections> connections_;
};

/// Has the ranks from 1 on meet, and rank 0 with them.
void expect_to_meet(const Launcher& run, Rank0& rank_0) {
  std::vector<std::future<RankConnections>> others;
  for (int rank = 1; rank < run.size; ++rank)
    others.push_back(
        std::async(std::launch::async, [&run, rank] { return join_rank_0(as_rank(run, rank), hang); }));
  EXPECT_EQ(rank_0.connections().control.size(), static_cast<std::size_t>(run.size));
  for (auto& other : others) EXPECT_EQ(other.get().address, "127.0.0.1");
}

TEST(Rendezvous, OfRanksThatComeAtOnce) {
  for (const char* secret : {"", "words that nobody knows"}) {
    const Launcher run = run_of(9, secret);
    Rank0 rank_0(run);
    expect_to_meet(run, rank_0);
  }
}

TEST(Rendezvous, FindsAStrangerWhoIsSilentInASlot) {
  const Launcher run = run_of(3);
  Rank0 rank_0(run);
  const Stranger control(run), heartbeat(run);
  const Reply reply = control.ask(2, Channel::control);
  EXPECT_EQ(reply.status, Status::accepted);
  EXPECT_EQ(heartbeat.ask(2, Channel::heartbeat, reply.slot).status, Status::accepted);
  expect_to_meet(run, rank_0);
  EXPECT_TRUE(control.is_sent_away());
  EXPECT_TRUE(heartbeat.is_sent_away());
}

TEST(Rendezvous, NamesARankForWhomOnlyAStrangerCame) {
  const Launcher run = run_of(2);
  Rank0 rank_0(run, 2);
  const Stranger control(run), heartbeat(run);
  heartbeat.ask(1, Channel::heartbeat, control.ask(1, Channel::control).slot);
  EXPECT_THAT(rank_0.failure(), HasSubstr("rank 1 of 2 did not come to 127.0.0.1:"));
}

TEST(Rendezvous, RefusesWhatIsNoRankOfTheRun) {
  const Launcher run = run_of(3);
  Rank0 rank_0(run);
  EXPECT_EQ(Stranger(run).ask(1, static_cast<Channel>(7)).status, Status::wrong_run) << "an unknown channel";
  for (const int rank : {-1, 0, 3, 1 << 30})
    EXPECT_EQ(Stranger(run).ask(rank, Channel::control).status, Status::wrong_run) << rank;
  for (const auto change : {+[](Hello& said) { said.run = 78; }, +[](Hello& said) { said.size = 4; }}) {
    const Stranger other(run);
    Hello said = other.hello(1, Channel::control);
    change(said);
    EXPECT_EQ(other.say(said).status, Status::wrong_run);
  }
  expect_to_meet(run, rank_0);
}

TEST(Rendezvous, RefusesWhoeverDoesNotProveTheSecret) {
  const Launcher run = run_of(2, "words that nobody knows"), other = [&run] {
    Launcher changed = run;
    changed.secret = "other words";
    return changed;
  }();
  Rank0 rank_0(run);
  EXPECT_EQ(Stranger(other).ask(1, Channel::control).status, Status::wrong_secret);
  const Stranger knows(run), repeats(run), alters(run);
  const Hello heard = knows.hello(1, Channel::control);
  EXPECT_EQ(repeats.say(heard).status, Status::wrong_secret)
      << "a proof that was made for another connection";
  Hello changed = alters.hello(1, Channel::control);
  changed.channel = Channel::heartbeat;
  EXPECT_EQ(alters.say(changed).status, Status::wrong_secret) << "a proof of other words";
  expect_to_meet(run, rank_0);
}

TEST(Rendezvous, GivesASlotToOneAtATime) {
  const Launcher run = run_of(2);
  Rank0 rank_0(run);
  {
    const Stranger first(run);
    const Nonce slot = first.ask(1, Channel::control).slot;
    EXPECT_EQ(Stranger(run).ask(1, Channel::control).status, Status::rank_taken);
    EXPECT_EQ(Stranger(run).ask(1, Channel::heartbeat).status, Status::rank_taken)
        << "heartbeats of a rank whose control channel is another's";
    EXPECT_EQ(Stranger(run).ask(1, Channel::heartbeat, slot).status, Status::accepted);
  }
  EXPECT_EQ(Stranger(run).ask(1, Channel::control).status, Status::accepted) << "the connection has ended";
  expect_to_meet(run, rank_0);
}

}  // namespace
