// SPDX-License-Identifier: Apache-2.0
#include "tests/collectives/fuzz/finding.hpp"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/listing.hpp"
#include "tests/collectives/fuzz/model.hpp"
#include "tests/collectives/fuzz/thread_ranks.hpp"
#include "tests/collectives/simulator/proof_check.hpp"

namespace baton {
namespace {

constexpr int rounds = 2;

/// The text of the error that `action` throws; empty if it throws none.
template <class Action>
std::string rejection(const Action& action) {
  try {
    action();
    return {};
  } catch (const ScheduleError& error) {
    return error.what();
  }
}

std::string shown(const DrawnSchedules& drawn) {
  std::string all;
  for (const Schedule& schedule : drawn.schedules) all += text(schedule);
  return all;
}

/// The first difference of two ranks' elements, where NaN equals NaN.
std::string difference(const BufferElements& wanted, const BufferElements& found) {
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const auto [at, other] = std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end(), same);
  if (at == wanted.end()) return {};
  return "element " + std::to_string(at - wanted.begin()) + " is " + std::to_string(*other) + " and not " +
         std::to_string(*at);
}

/// What rank `rank` of an executor leaves that the model does not.
std::string difference(Executor& executor, const Schedule& schedule, const BufferElements& wanted) {
  return difference(wanted, elements(schedule, [&](std::span<float> into, const Slice& from) {
                      executor.read(into, schedule.home_rank(), from);
                    }));
}

std::string wrong_on_local(const DrawnSchedules& drawn, const Played& wanted) {
  const auto executor = find_executor("local").make(static_cast<int>(drawn.schedules.size()));
  executor->prepare(drawn.schedules);
  for (const Schedule& schedule : drawn.schedules)
    executor->write(schedule.home_rank(), schedule.buffer("own"), drawn_input(schedule));
  for (const auto& round : wanted.rounds) {
    executor->run();
    for (const Schedule& schedule : drawn.schedules)
      if (const auto wrong = difference(*executor, schedule, round[schedule.home_rank()]); !wrong.empty())
        return "local, rank " + std::to_string(schedule.home_rank()) + ": " + wrong;
  }
  return {};
}

std::string wrong_on_tcp(const DrawnSchedules& drawn, const Played& wanted, int threads) {
  static std::map<int, ThreadRanks> started;
  const int ranks = static_cast<int>(drawn.schedules.size());
  std::vector<std::string> wrong(ranks);
  const auto work = [&](int rank, Executor& executor) {
    const Schedule& schedule = drawn.schedules[rank];
    executor.use_threads(threads);
    executor.prepare(drawn.schedules);
    executor.write(rank, schedule.buffer("own"), drawn_input(schedule));
    executor.synchronise();
    for (const auto& round : wanted.rounds) {
      executor.run();
      if (wrong[rank].empty()) wrong[rank] = difference(executor, schedule, round[rank]);
    }
  };
  started.try_emplace(ranks, "tcp", ranks).first->second.run(work, [&] { return shown(drawn) + "tcp"; });
  for (int rank = 0; rank < ranks; ++rank)
    if (!wrong[rank].empty()) return "tcp, rank " + std::to_string(rank) + ": " + wrong[rank];
  return {};
}

Topology drawn_machine(int ranks, std::mt19937_64& random) {
  const int on_a_node = 1 + static_cast<int>(random() % 3);
  Topology machine = two_levels(on_a_node, (ranks + on_a_node - 1) / on_a_node);
  if (random() % 2 == 0) machine.intra_node.moved_by = Transport::wire;
  return machine;
}

std::string wrong_in_simulator(const DrawnSchedules& drawn, std::mt19937_64& random) {
  const Topology machine = drawn_machine(static_cast<int>(drawn.schedules.size()), random);
  testing::TestPartResultArray failures;
  {
    const testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    expect_simulates(drawn.schedules, machine);
  }
  return failures.size() == 0 ? "" : std::string("the simulator: ") + failures.GetTestPartResult(0).message();
}

bool has_native(const DrawnSchedules& drawn) {
  return std::any_of(drawn.schedules.begin(), drawn.schedules.end(),
                     [](const Schedule& schedule) { return !schedule.natives().empty(); });
}

/// A play of each way of passing messages.
std::vector<Played> plays_of(const Model& model, int rounds, std::mt19937_64& random) {
  std::vector<Played> plays;
  for (const Passing passing : {Passing::eager, Passing::rendezvous, Passing::grouped})
    plays.push_back(model.play(passing, rounds, random));
  return plays;
}

/// Why schedules must not run: what goes wrong in a play, or an output that nothing writes.
std::string fault(const Model& model, const std::vector<Played>& plays) {
  for (const Played& play : plays)
    if (!play.trouble.empty()) return play.trouble;
  return model.uncovered();
}

std::string wrong_with_accepted(const DrawnSchedules& drawn, std::mt19937_64& random) {
  const Model model(drawn);
  const auto plays = plays_of(model, rounds, random);
  if (const std::string found = fault(model, plays); !found.empty())
    return "check accepts these schedules, but " + found;
  for (const Played& play : plays)
    for (std::size_t round = 0; round < play.rounds.size(); ++round)
      for (std::size_t rank = 0; rank < drawn.schedules.size(); ++rank)
        if (const auto wrong = difference(plays[0].rounds[round][rank], play.rounds[round][rank]);
            !wrong.empty())
          return "check accepts these schedules, but in another order " + wrong;
  const Refusal refusal = find_executor("local").make(1)->unsupported(drawn.schedules);
  if (has_native(drawn)) return refusal ? "" : "local takes a native that it does not have";
  if (const auto wrong = wrong_in_simulator(drawn, random); !wrong.empty()) return wrong;
  if (refusal) return {};
  if (const auto wrong = wrong_on_local(drawn, plays[0]); !wrong.empty()) return wrong;
  return wrong_on_tcp(drawn, plays[0], 1 + static_cast<int>(random() % 2));
}

std::string wrong_with_rejected(const DrawnSchedules& drawn, const std::string& reason,
                                std::mt19937_64& random) {
  const Model model(drawn);
  const auto plays = plays_of(model, 1, random);
  if (fault(model, plays).empty()) return "check rejects schedules that always end well: " + reason;
  if (has_native(drawn)) return {};
  const bool ends = plays[1].trouble.empty();
  const auto refused = [ends](const std::string& who, const std::string& says) {
    return ends == says.empty() ? "" : who + (ends ? " refuses: " + says : " takes what cannot end");
  };
  const int ranks = static_cast<int>(drawn.schedules.size());
  const auto local = find_executor("local").make(ranks);
  const auto wrong = refused("local", rejection([&] { local->prepare(drawn.schedules); }));
  if (!wrong.empty()) return wrong;
  const Topology machine = drawn_machine(ranks, random);
  return refused("the simulator", rejection([&] { simulate(source_of(drawn.schedules), machine); }));
}

}  // namespace

void product_check(std::span<const Schedule> schedules) { check("drawn", schedules); }

std::vector<std::uint8_t> bytes_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> bytes(256);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random() >> 56); });
  return bytes;
}

std::string finding(std::span<const std::uint8_t> bytes, const Checker& checker) {
  std::uint64_t seed = 1;
  for (const std::uint8_t byte : bytes) seed = (seed ^ byte) * 1099511628211U;
  std::mt19937_64 random(seed);
  const DrawnSchedules drawn = draw_schedules(Bytes(bytes));
  const std::string rejected = rejection([&] { checker(drawn.schedules); });
  const std::string wrong =
      rejected.empty() ? wrong_with_accepted(drawn, random) : wrong_with_rejected(drawn, rejected, random);
  return wrong.empty() ? "" : wrong + "\n" + shown(drawn);
}

}  // namespace baton
