// SPDX-License-Identifier: Apache-2.0
#include "harness/run/resume.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"

namespace baton {
namespace {

/// A line of a file of records that is of a case.
struct Found {
  int line = 0;
  int index = 0;  // of its case
  Result result;
};

void require_same(const char* what, const std::string& theirs, const std::string& ours) {
  if (theirs != ours)
    throw UsageError(fmt::format("its {} is '{}', and that of this run is '{}'", what, theirs, ours));
}

void require_same_number(const char* what, std::int64_t theirs, std::optional<int> ours) {
  if (ours) require_same(what, std::to_string(theirs), std::to_string(*ours));
}

/// Refuses records of another build. Two unknown commits may be any two.
void require_same_commit(const std::string& theirs, const std::string& ours) {
  require_same("commit", theirs, ours);
  if (ours == unknown_commit)
    throw UsageError(
        "its commit is unknown, and so is that of this run, so nobody can tell whether they are one");
}

/// The lines of a file of records that are of `cases`, of the run that wrote the last of them.
std::vector<Found> last_run(std::istream& file, const std::vector<Case>& cases) {
  std::map<std::pair<std::string, std::int64_t>, int> indices;
  for (int index = 0; index < static_cast<int>(cases.size()); ++index)
    indices.try_emplace({cases[index].key(), cases[index].cycle}, index);
  std::vector<Found> all;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const Result::Json json = Result::Json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("case") || !json["case"].is_string()) continue;
    Result result(json);
    const bool has_cycle = json.contains("cycle") && json["cycle"].is_number_integer();
    const auto found = indices.find({result.text("case"), has_cycle ? result.whole("cycle") : 0});
    if (found != indices.end()) all.push_back({number, found->second, std::move(result)});
  }
  if (all.empty()) return all;
  const auto run_of = [](const Found& one) { return one.result.text("run"); };
  const std::string last = run_of(all.back());
  std::erase_if(all, [&](const Found& one) { return run_of(one) != last; });
  return all;
}

/// Throws UsageError, or nlohmann::json::exception for a value of another type, if the result
/// cannot be taken over.
void require_fit(const Result& result, const Case& bench_case, int launches, const Origin& here) {
  require_same_commit(result.text("commit"), here.commit);
  require_same("host", result.text("machine.host"), here.host);
  if (bench_case.backend->is_measured) {
    require_same_number("number of warm-up rounds", result.whole("warmup"), here.warmup);
    require_same_number("number of measured rounds", result.whole("rounds"), here.rounds);
  }
  if (result.whole("launch") > launches) throw UsageError("it is of a launch beyond --launches");
  const bool must_be_timed = !result.has("failed") && !result.has("skipped") && result.whole("wrong") == 0;
  if (must_be_timed && result.value<std::vector<double>>("seconds").empty())
    throw UsageError("it has no key 'seconds'");
}

}  // namespace

Origin this_origin(const Options& options) {
  return {this_machine("").host, commit(), options.warmup, options.rounds};
}

std::vector<KnownResult> known_results(const std::string& journal, const std::vector<Case>& cases,
                                       int launches, const Origin& here) {
  std::error_code none;
  if (std::filesystem::exists(journal, none) && !std::filesystem::is_regular_file(journal, none))
    throw UsageError("--resume " + journal + ": it is no file of records");  // a device may have no end
  std::ifstream file(journal);
  if (!file) throw UsageError("--resume " + journal + ": " + std::strerror(errno));
  std::vector<KnownResult> known;
  for (Found& found : last_run(file, cases)) {
    const auto refuse = [&](const char* why) {
      throw UsageError(fmt::format("--resume {}, line {}: {}", journal, found.line, why));
    };
    try {
      require_fit(found.result, cases[found.index], launches, here);
    } catch (const nlohmann::json::exception& error) {
      refuse(error.what());
    } catch (const UsageError& error) {
      refuse(error.what());
    }
    if (found.result.has("failed")) continue;  // it has to run again
    known.push_back({static_cast<int>(found.result.whole("launch")), found.index, std::move(found.result)});
  }
  return known;
}

}  // namespace baton
