// SPDX-License-Identifier: Apache-2.0
// A line of the file is a JSON object: the run's name, a launch that starts or whose processes have
// met, a notice, or a case that begins or has ended with its record.
#include "harness/run/outcomes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "collectives/schedule/errors.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"
#include "harness/record/json.hpp"
#include "harness/record/read_record.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

/// How the case of a record ended.
Outcome outcome_of(Record row) {
  using State = Outcome::State;
  State state = State::timed;
  std::string reason;
  if (row.failure) {
    state = row.failure->exit_code == ExitCode::schedule ? State::invalid : State::failed;
    reason = row.failure->reason;
  } else if (!row.skipped.empty()) {
    state = State::skipped;
    reason = row.skipped;
  } else if (row.verified.wrong > 0) {
    state = State::wrong;
    reason = fmt::format("{} wrong elements, first {}", row.verified.wrong, row.verified.first_wrong);
  }
  return {state, std::move(row), reason};
}

/// The text of a key; empty if it has none.
std::string text_in(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

void require_same(const char* what, const std::string& theirs, const std::string& ours) {
  if (theirs != ours)
    throw UsageError(fmt::format("its {} is '{}', and that of this run is '{}'", what, theirs, ours));
}

void require_same_number(const char* what, int theirs, std::optional<int> ours) {
  if (ours) require_same(what, std::to_string(theirs), std::to_string(*ours));
}

/// A line of a file of records that is of a case.
struct Found {
  int line = 0;
  int index = 0;  // of its case
  nlohmann::json json;
};

/// The lines of a file of records that are of `cases`, of the run that wrote the last of them.
std::vector<Found> last_run(std::istream& file, const std::vector<Case>& cases) {
  std::map<std::pair<std::string, int>, int> indices;
  for (int index = 0; index < static_cast<int>(cases.size()); ++index)
    indices.try_emplace({cases[index].key(), cases[index].cycle}, index);
  std::vector<Found> all;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;  // a line that a crash cut off
    const auto cycle = json.find("cycle");
    const bool has_cycle = cycle != json.end() && cycle->is_number_integer();
    const auto found = indices.find({text_in(json, "case"), has_cycle ? cycle->get<int>() : 0});
    if (found != indices.end()) all.push_back({number, found->second, std::move(json)});
  }
  if (all.empty()) return all;
  const std::string last = text_in(all.back().json, "run");
  std::erase_if(all, [&](const Found& one) { return text_in(one.json, "run") != last; });
  return all;
}

/// Refuses records of another build. Two unknown commits may be any two.
void require_same_commit(const std::string& theirs, const std::string& ours) {
  require_same("commit", theirs, ours);
  if (ours == unknown_commit)
    throw UsageError(
        "its commit is unknown, and so is that of this run, so nobody can tell whether they are one");
}

}  // namespace

Outcomes::Outcomes(std::string path) : path_(std::move(path)) { read_on(); }

void Outcomes::read_on() {
  if (path_.empty()) return;
  std::ifstream file(path_);
  if (!file.seekg(static_cast<std::streamoff>(read_bytes_))) throw SystemError("cannot read '" + path_ + "'");
  for (std::string line; std::getline(file, line) && !file.eof(); read_bytes_ += line.size() + 1) read(line);
}

/// Takes over a line that another process wrote.
void Outcomes::read(const std::string& line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) return;  // a line that a crash cut off
  run_ = json.value("run", run_);
  if (json.contains("launch")) note_launch(json.at("launch"));
  have_met_ = json.contains("met") || have_met_;
  if (json.contains("text")) notices_.push_back({json.at("about"), json.at("text")});
  if (!json.contains("case")) return;
  const int index = json.at("case");
  if (json.contains("record"))
    note_end(index, read_record(json.at("record")));
  else
    outcomes_[{launch_, index}] = {};
}

/// Appends a line that this process has noted, for others to read.
void Outcomes::write(const Json& line) {
  if (path_.empty()) return;
  read_on();
  if (!file_) file_ = std::make_unique<Journal>(path_);
  file_->append(line_of(line));
  read_bytes_ = std::filesystem::file_size(path_);
}

const std::string& Outcomes::run() {
  if (run_.empty()) name_run(new_run_name());
  return run_;
}

void Outcomes::name_run(const std::string& name) {
  write({{"run", name}});
  run_ = name;
}

void Outcomes::note_launch(int launch) {
  starts_ = launch == launch_ ? starts_ + 1 : 1;
  launch_ = launch;
  have_met_ = false;
}

void Outcomes::start_launch(int launch) {
  write({{"launch", launch}});
  note_launch(launch);
}

void Outcomes::meet() {
  write({{"met", true}});
  have_met_ = true;
}

void Outcomes::begin(int index) {
  write({{"case", index}});
  outcomes_[{launch_, index}] = {};
}

/// Keeps the outcome of a case, with the part of its record that a row shows.
void Outcomes::note_end(int index, Record record) {
  record.known_rounds_as_last = record.rounds_as_last();
  record.samples.rank_seconds.clear();
  Outcome& outcome = outcomes_[{launch_, index}];
  outcome = outcome_of(std::move(record));
  if (outcome.state != Outcome::State::timed) given_up_.insert(index);
}

void Outcomes::end(int index, Record record) {
  if (!path_.empty()) write({{"case", index}, {"record", row_json(record)}});
  note_end(index, std::move(record));
}

void Outcomes::announce(const Notice& notice) {
  write({{"about", notice.about}, {"text", notice.text}});
  notices_.push_back(notice);
}

const Outcome* Outcomes::outcome(int launch, int index) const {
  const auto found = outcomes_.find({launch, index});
  return found == outcomes_.end() ? nullptr : &found->second;
}

bool Outcomes::is_settled(int launch, int index) const {
  const Outcome* outcome = this->outcome(launch, index);
  return given_up_.contains(index) || (outcome != nullptr && outcome->state != Outcome::State::begun);
}

bool Outcomes::is_complete(int launch, int cases) const {
  for (int index = 0; index < cases; ++index)
    if (!is_settled(launch, index)) return false;
  return true;
}

void Outcomes::require_good(const std::vector<Case>& cases) const {
  for (const auto& [where, outcome] : outcomes_) {
    if (where.first != launch_) continue;
    const std::string text = cases[where.second].name() + ": " + outcome.reason;
    if (outcome.state == Outcome::State::wrong) throw WrongResult(text);
    if (outcome.state == Outcome::State::invalid) throw ScheduleError(text);
  }
}

int Outcomes::end_without_failures() const {
  const auto is_skipped = [](const auto& entry) { return entry.second.state == Outcome::State::skipped; };
  if (outcomes_.empty() || !std::all_of(outcomes_.begin(), outcomes_.end(), is_skipped)) return 0;
  fmt::print(stderr, "baton: nothing was timed, since all rows were skipped: {}\n",
             one_line(outcomes_.begin()->second.reason, 200));
  return ExitCode::skipped;
}

std::optional<int> Outcomes::unfinished() const {
  for (auto entry = outcomes_.lower_bound({launch_, 0}); entry != outcomes_.end(); ++entry)
    if (entry->second.state == Outcome::State::begun) return entry->first.second;
  return std::nullopt;
}

std::size_t Outcomes::ended() const {
  return static_cast<std::size_t>(std::count_if(outcomes_.begin(), outcomes_.end(), [](const auto& entry) {
    return entry.second.state != Outcome::State::begun;
  }));
}

Origin this_origin(const Options& options) {
  return {this_machine("").host, commit(), options.warmup, options.rounds};
}

void Outcomes::resume(const std::string& journal, const std::vector<Case>& cases, int launches,
                      const Origin& here) {
  std::error_code none;
  if (std::filesystem::exists(journal, none) && !std::filesystem::is_regular_file(journal, none))
    throw UsageError("--resume " + journal + ": it is no file of records");  // a device may have no end
  std::ifstream file(journal);
  if (!file) throw UsageError("--resume " + journal + ": " + std::strerror(errno));
  for (const Found& found : last_run(file, cases)) {
    try {
      const Case& bench_case = cases[found.index];
      require_same_commit(found.json.at("commit"), here.commit);
      require_same("host", found.json.at("machine").at("host"), here.host);
      if (find_backend(bench_case.executor).is_measured) {
        require_same_number("number of warm-up rounds", found.json.value("warmup", 0), here.warmup);
        require_same_number("number of measured rounds", found.json.value("rounds", 0), here.rounds);
      }
      resume_record(found.json, found.index, bench_case, launches);
    } catch (const nlohmann::json::exception& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, found.line, error.what()));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, found.line, error.what()));
    }
  }
}

void Outcomes::resume_record(const nlohmann::json& json, int index, const Case& bench_case, int launches) {
  const int launch = json.value("launch", 1);
  if (launch > launches) throw UsageError("it is of a launch beyond --launches");
  if (json.contains("failed")) return;  // it has to run again
  if (run_.empty()) name_run(json.at("run"));
  if (launch != launch_) start_launch(launch);
  Record record = read_record(json);
  record.bench_case = bench_case;
  if (record.skipped.empty() && record.verified.wrong == 0) static_cast<void>(json.at("seconds"));
  end(index, std::move(record));
}

}  // namespace baton
