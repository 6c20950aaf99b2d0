// SPDX-License-Identifier: Apache-2.0
// A line of the file is a JSON object: the run's name, a launch that starts, or an outcome.
#include "harness/run/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/process/system.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr std::array states{"begun", "timed", "skipped", "invalid", "wrong", "failed"};

Outcome::State state_of(const std::string& word) {
  const auto found = std::find(states.begin(), states.end(), word);
  return static_cast<Outcome::State>(found - states.begin());
}

/// The outcome that a record tells of; `begun` if it has to run again.
Outcome outcome_of(const Json& record) {
  if (record.contains("failed")) return {};
  if (record.contains("skipped")) return {Outcome::State::skipped, {}, record.at("skipped")};
  if (record.value("wrong", 0) > 0) return {Outcome::State::wrong, {}, "wrong result"};
  return {Outcome::State::timed, record.at("seconds").get<std::vector<double>>(), {}};
}

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

bool is_of(const Json& record, const Case& bench_case) {
  return record.value("case", "") == bench_case.key() && record.value("cycle", 0) == bench_case.cycle;
}

void require_same(const char* what, const std::string& theirs, const std::string& ours) {
  if (theirs != ours)
    throw UsageError(fmt::format("its {} is '{}', and that of this run is '{}'", what, theirs, ours));
}

}  // namespace

Ledger::Ledger(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  if (!file) throw SystemError("cannot read '" + path_ + "'");
  for (std::string line; std::getline(file, line);) read(line);
}

void Ledger::read(const std::string& line) {
  const Json json = Json::parse(line);
  run_ = json.value("run", run_);
  if (json.contains("launch")) count_launch(json.at("launch"));
  if (json.contains("case"))
    outcomes_[{launch_, json.at("case")}] = {
        state_of(json.at("state")), json.value("seconds", std::vector<double>{}), json.value("reason", "")};
}

void Ledger::append(const std::string& line) const {
  if (path_.empty()) return;
  std::ofstream file(path_, std::ios::app);
  file << line << std::endl;
  if (!file) throw SystemError("cannot write '" + path_ + "'");
}

const std::string& Ledger::run() {
  if (run_.empty()) {
    run_ = new_run_name();
    append(Json{{"run", run_}}.dump());
  }
  return run_;
}

void Ledger::count_launch(int launch) {
  starts_ = launch == launch_ ? starts_ + 1 : 1;
  launch_ = launch;
}

void Ledger::start_launch(int launch) {
  count_launch(launch);
  append(Json{{"launch", launch}}.dump());
}

void Ledger::note(int index, const Outcome& outcome) {
  outcomes_[{launch_, index}] = outcome;
  Json json{{"case", index}, {"state", states[static_cast<std::size_t>(outcome.state)]}};
  if (!outcome.seconds.empty()) json["seconds"] = outcome.seconds;
  if (!outcome.reason.empty()) json["reason"] = outcome.reason;
  append(json.dump());
}

const Outcome* Ledger::outcome(int launch, int index) const {
  const auto found = outcomes_.find({launch, index});
  return found == outcomes_.end() ? nullptr : &found->second;
}

bool Ledger::is_settled(int launch, int index) const {
  return std::any_of(outcomes_.begin(), outcomes_.end(), [&](const auto& entry) {
    const auto& [where, outcome] = entry;
    if (where.second != index || outcome.state == Outcome::State::begun) return false;
    return where.first == launch || outcome.state != Outcome::State::timed;
  });
}

bool Ledger::is_complete(int launch, int cases) const {
  for (int index = 0; index < cases; ++index)
    if (!is_settled(launch, index)) return false;
  return true;
}

void Ledger::require_good(const std::vector<Case>& cases) const {
  for (const auto& [where, outcome] : outcomes_) {
    if (where.first != launch_) continue;
    const std::string text = cases[where.second].name() + ": " + outcome.reason;
    if (outcome.state == Outcome::State::wrong) throw WrongResult(text);
    if (outcome.state == Outcome::State::invalid) throw ScheduleError(text);
  }
}

std::optional<int> Ledger::unfinished() const {
  for (const auto& [where, outcome] : outcomes_)
    if (where.first == launch_ && outcome.state == Outcome::State::begun) return where.second;
  return std::nullopt;
}

std::size_t Ledger::ended() const {
  return static_cast<std::size_t>(std::count_if(outcomes_.begin(), outcomes_.end(), [](const auto& entry) {
    return entry.second.state != Outcome::State::begun;
  }));
}

void Ledger::resume(const std::string& journal, const std::vector<Case>& cases, const std::string& host,
                    int launches) {
  std::ifstream file(journal);
  if (!file) throw UsageError("--resume " + journal + ": cannot read it");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Json record = Json::parse(line, nullptr, false);
    if (!record.is_object()) continue;  // a line that a crash cut off
    try {
      const auto found =
          std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return is_of(record, c); });
      if (found == cases.end()) continue;
      require_same("commit", record.at("commit"), commit());
      require_same("host", record.at("machine").at("host"), host);
      if (record.value("launch", 1) > launches) throw UsageError("it is of a launch beyond --launches");
      take_over(record.value("launch", 1), static_cast<int>(found - cases.begin()), outcome_of(record));
      run_ = record.at("run");
    } catch (const Json::exception& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, number, error.what()));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, number, error.what()));
    }
  }
  append(Json{{"run", run()}}.dump());
}

void Ledger::take_over(int launch, int index, const Outcome& outcome) {
  if (outcome.state == Outcome::State::begun) return;
  if (launch != launch_) start_launch(launch);
  note(index, outcome);
}

}  // namespace baton
