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

/// The first difference of two ranks' elements, where NaN equals NaN.
std::string difference(const Elements& wanted, const Elements& found) {
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  const auto [at, other] = std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end(), same);
  if (at == wanted.end()) return {};
  return "element " + std::to_string(at - wanted.begin()) + " is " + std::to_string(*other) + " and not " +
         std::to_string(*at);
}

/// What rank `rank` of an executor leaves that the model does not.
std::string difference(Executor& executor, const Schedule& schedule, const Elements& wanted) {
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

/// Threads a rank is 1 or 2.
std::string wrong_on_tcp(const DrawnSchedules& drawn, const Played& wanted, int threads,
                         const std::string& text) {
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
  started.try_emplace(ranks, "tcp", ranks).first->second.run(work, text + "tcp");
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

std::string wrong_with_accepted(const DrawnSchedules& drawn, const Model& model, const std::string& text,
                                std::mt19937_64& random) {
  if (const std::string fault = model.fault(random); !fault.empty())
    return "check accepts these schedules, but " + fault;
  const Refusal refusal = find_executor("local").make(1)->unsupported(drawn.schedules);
  if (has_native(drawn)) return refusal ? "" : "local takes a native that it does not have";
  if (const auto wrong = wrong_in_simulator(drawn, random); !wrong.empty()) return wrong;
  if (refusal) return {};
  const Played wanted = model.play(Passing::eager, rounds, random);
  for (const Passing passing : {Passing::eager, Passing::rendezvous, Passing::grouped}) {
    const Played again = model.play(passing, rounds, random);
    for (int round = 0; round < rounds; ++round)
      for (std::size_t rank = 0; rank < drawn.schedules.size(); ++rank)
        if (const auto wrong = difference(wanted.rounds[round][rank], again.rounds[round][rank]);
            !wrong.empty())
          return "check accepts these schedules, but with another order " + wrong;
  }
  if (const auto wrong = wrong_on_local(drawn, wanted); !wrong.empty()) return wrong;
  return wrong_on_tcp(drawn, wanted, 1 + static_cast<int>(random() % 2), text);
}

std::string wrong_with_rejected(const DrawnSchedules& drawn, const Model& model,
                                const std::string& rejection_text, std::mt19937_64& random) {
  if (model.fault(random).empty()) return "check rejects schedules that always end well: " + rejection_text;
  if (has_native(drawn)) return {};
  const bool ends = model.play(Passing::rendezvous, 1, random).trouble.empty();
  const auto local = find_executor("local").make(static_cast<int>(drawn.schedules.size()));
  const std::string local_says = rejection([&] { local->prepare(drawn.schedules); });
  if (ends != local_says.empty())
    return "local " + (ends ? "refuses: " + local_says : "takes what cannot end");
  const Topology machine = drawn_machine(static_cast<int>(drawn.schedules.size()), random);
  const std::string simulator_says = rejection([&] { simulate(source_of(drawn.schedules), machine); });
  if (ends != simulator_says.empty())
    return "the simulator " + (ends ? "refuses: " + simulator_says : "takes what cannot end");
  return {};
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
  const Model model(drawn);
  std::string shown;
  for (const Schedule& schedule : drawn.schedules) shown += text(schedule);
  const std::string rejected = rejection([&] { checker(drawn.schedules); });
  const std::string wrong = rejected.empty() ? wrong_with_accepted(drawn, model, shown, random)
                                             : wrong_with_rejected(drawn, model, rejected, random);
  return wrong.empty() ? "" : wrong + "\n" + shown;
}

}  // namespace baton
