// SPDX-License-Identifier: Apache-2.0
// What became of the cases of a run, launch by launch. It is kept in a file, because a launch that
// crashes takes its memory with it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/options/options.hpp"
#include "harness/process/output.hpp"
#include "harness/record/record.hpp"

namespace baton {

/// How a case ended in one launch.
struct Outcome {
  /// State of a case. `begun` remains if its processes did not survive the case; `invalid` means a
  /// wrong schedule, and `wrong` a wrong result.
  enum class State { begun, timed, skipped, invalid, wrong, failed };

  State state = State::begun;
  /// The record as far as a table shows it, without the case; empty where the case has only begun.
  Record row;
  /// The reason why the case was skipped, is wrong, or failed.
  std::string reason;

  /// Seconds of each round, the maximum over ranks; empty unless the case was timed.
  const std::vector<double>& seconds() const { return row.samples.seconds; }
};

/// What records must share with a run that takes them over.
struct Origin {
  std::string host;
  std::string commit;
  /// The rounds that a row is measured in; any number if not given.
  std::optional<int> warmup = {}, rounds = {};
};

/// This host, this build, and the rounds of `options`.
Origin this_origin(const Options& options);

/// A text that a launch has to say of the machine, or of files that it left.
struct Notice {
  /// The subject. Above the table only the first notice of a subject is printed.
  std::string about;
  std::string text;
};

/// The outcomes of all cases in all launches of a run. One process writes at a time: rank 0 of a
/// launch while it runs, and between launches the process that starts them.
class Outcomes {
 public:
  /// Reads what `path` already holds; an empty path stands for no file. Throws SystemError if the
  /// file cannot be read.
  explicit Outcomes(std::string path = {});

  /// The name of the run, which all its records share. Made at the first call.
  const std::string& run();

  /// The launch that was started last, from 1; 0 before the first.
  int launch() const { return launch_; }
  /// True if the present launch runs its cases in reverse order: every other one, so that what
  /// drifts within a launch cancels. It does not depend on how many launches there will be.
  bool is_reversed() const { return launch_ % 2 == 0; }
  /// How often the present launch was started: again after a case that its processes did not
  /// survive.
  int starts() const { return starts_; }
  void start_launch(int launch);

  /// Notes that all processes of the present launch have found one another.
  void meet();
  bool have_met() const { return have_met_; }

  /// The bytes of the file that were read, which grow with every note.
  std::size_t bytes() const { return read_bytes_; }

  /// Notes that case `index` begins in the present launch.
  void begin(int index);
  /// Notes that case `index` ended with `record` in the present launch.
  void end(int index, Record record);
  /// Keeps a text for the process that prints the rows.
  void announce(const Notice& notice);

  /// Takes over what other processes have written since the last call.
  void read_on();

  /// The notices of the run, in their order.
  const std::vector<Notice>& notices() const { return notices_; }

  /// How case `index` ended in `launch`; null if it has not begun.
  const Outcome* outcome(int launch, int index) const;

  /// True if case `index` need not run in the present launch, or in the given one: it has ended
  /// there, or it ended without a time in any launch.
  bool is_settled(int index) const { return is_settled(launch_, index); }
  bool is_settled(int launch, int index) const;

  /// True if all of `cases` cases need not run in `launch`.
  bool is_complete(int launch, int cases) const;

  /// Throws WrongResult if a result of the present launch was wrong, and ScheduleError if a
  /// schedule was.
  void require_good(const std::vector<Case>& cases) const;

  /// The exit code of a run in which nothing failed: 0, or ExitCode::skipped if all outcomes are
  /// skipped rows. A line then says why the first of them is.
  int end_without_failures() const;

  /// The case that began in the present launch and did not end, if there is one.
  std::optional<int> unfinished() const;

  /// The number of outcomes of all launches, but for cases that only began.
  std::size_t ended() const;

  /// Takes over the outcomes that the records of `journal` hold for `cases`, and the name of their
  /// run: of several runs in the file, the one that wrote last. Failed cases are left out, so that
  /// they run again. Throws UsageError if a record of that run was made by another commit, on
  /// another host or in other rounds than `here`, is of a launch beyond `launches`, or lacks a key.
  /// An unknown commit is another one.
  void resume(const std::string& journal, const std::vector<Case>& cases, int launches, const Origin& here);

 private:
  void write(const nlohmann::ordered_json& line);
  void read(const std::string& line);
  void note_launch(int launch);
  void note_end(int index, Record record);
  void name_run(const std::string& name);
  void resume_record(const nlohmann::json& json, int index, const Case& bench_case, int launches);

  std::string path_;
  std::unique_ptr<Journal> file_;  // opened by the first line
  std::size_t read_bytes_ = 0;     // of the file, whole lines
  std::string run_;
  std::vector<Notice> notices_;
  int launch_ = 0;
  int starts_ = 0;
  bool have_met_ = false;
  std::map<std::pair<int, int>, Outcome> outcomes_;  // by launch and case
  std::set<int> given_up_;                           // cases that ended without a time
};

}  // namespace baton
