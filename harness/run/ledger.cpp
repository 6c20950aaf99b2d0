// SPDX-License-Identifier: Apache-2.0
// A line of the file is a JSON object: the run's name, a launch that starts or whose processes have
// met, a notice, or a case that begins or has ended with its record.
#include "harness/run/ledger.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

using Json = nlohmann::json;

/// What a record tells of how its case ended.
Outcome outcome_of(const Json& json) {
  using State = Outcome::State;
  const Record row = read_record(json);
  if (row.failure)
    return {row.failure->exit_code == ExitCode::schedule ? State::invalid : State::failed, row,
            row.failure->reason};
  if (!row.skipped.empty()) return {State::skipped, row, row.skipped};
  if (row.verified.wrong > 0)
    return {State::wrong, row,
            fmt::format("{} wrong elements, first {}", row.verified.wrong, row.verified.first_wrong)};
  static_cast<void>(json.at("seconds"));  // which it must have
  return {State::timed, row, {}};
}

/// The keys of a record that no table shows, and that may be large.
constexpr std::array unread{"rank_seconds", "machine", "device", "device_before", "device_after"};

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

Ledger::Ledger(std::string path) : path_(std::move(path)) { read_on(); }

void Ledger::read_on() {
  if (path_.empty()) return;
  std::ifstream file(path_);
  if (!file.seekg(static_cast<std::streamoff>(read_bytes_))) throw SystemError("cannot read '" + path_ + "'");
  for (std::string line; std::getline(file, line) && !file.eof(); read_bytes_ += line.size() + 1) read(line);
}

void Ledger::read(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return;  // a line that a crash cut off
  run_ = json.value("run", run_);
  if (json.contains("launch")) count_launch(json.at("launch"));
  have_met_ = json.contains("met") || have_met_;
  if (json.contains("text")) notices_.push_back({json.at("about"), json.at("text")});
  if (!json.contains("case")) return;
  Outcome& outcome = outcomes_[{launch_, json.at("case")}];
  outcome = json.contains("record") ? outcome_of(json.at("record")) : Outcome{};
  if (outcome.state != Outcome::State::begun && outcome.state != Outcome::State::timed)
    given_up_.insert(json.at("case").get<int>());
}

void Ledger::append(const std::string& line) {
  if (path_.empty()) return read(line);
  if (!file_) file_ = std::make_unique<Journal>(path_);
  file_->append(line);
  read_on();
}

const std::string& Ledger::run() {
  if (run_.empty()) append(Json{{"run", new_run_name()}}.dump());
  return run_;
}

void Ledger::count_launch(int launch) {
  starts_ = launch == launch_ ? starts_ + 1 : 1;
  launch_ = launch;
  have_met_ = false;
}

void Ledger::start_launch(int launch) { append(Json{{"launch", launch}}.dump()); }

void Ledger::meet() { append(Json{{"met", true}}.dump()); }

void Ledger::begin(int index) { append(Json{{"case", index}}.dump()); }

void Ledger::end(int index, const std::string& json_line) {
  Json record = Json::parse(json_line);
  for (const char* key : unread) record.erase(key);
  append(Json{{"case", index}, {"record", std::move(record)}}.dump());
}

void Ledger::announce(const Notice& notice) {
  append(Json{{"about", notice.about}, {"text", notice.text}}.dump(-1, ' ', false,
                                                                   Json::error_handler_t::replace));
}

const Outcome* Ledger::outcome(int launch, int index) const {
  const auto found = outcomes_.find({launch, index});
  return found == outcomes_.end() ? nullptr : &found->second;
}

bool Ledger::is_settled(int launch, int index) const {
  const Outcome* outcome = this->outcome(launch, index);
  return given_up_.contains(index) || (outcome != nullptr && outcome->state != Outcome::State::begun);
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

int Ledger::end_without_failures() const {
  const auto is_skipped = [](const auto& entry) { return entry.second.state == Outcome::State::skipped; };
  if (outcomes_.empty() || !std::all_of(outcomes_.begin(), outcomes_.end(), is_skipped)) return 0;
  fmt::print(stderr, "baton: nothing was timed, since all rows were skipped: {}\n",
             one_line(outcomes_.begin()->second.reason, 200));
  return ExitCode::skipped;
}

std::optional<int> Ledger::unfinished() const {
  for (auto entry = outcomes_.lower_bound({launch_, 0}); entry != outcomes_.end(); ++entry)
    if (entry->second.state == Outcome::State::begun) return entry->first.second;
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
      if (record.contains("failed")) continue;  // it has to run again
      if (run_.empty()) append(Json{{"run", record.at("run")}}.dump());
      if (record.value("launch", 1) != launch_) start_launch(record.value("launch", 1));
      end(static_cast<int>(found - cases.begin()), line);
    } catch (const Json::exception& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, number, error.what()));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, number, error.what()));
    }
  }
}

}  // namespace baton
