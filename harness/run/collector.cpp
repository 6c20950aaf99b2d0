// SPDX-License-Identifier: Apache-2.0
#include "harness/run/collector.hpp"

#include <fmt/format.h>

#include <random>

#include "harness/cases/proof.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/record/facts.hpp"
#include "harness/run/resume.hpp"
#include "harness/run/rows.hpp"

namespace baton {
namespace {

std::string new_run_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}", utc_now(), random());
}

/// What is called for each kind of message.
template <class... Calls>
struct Overloaded : Calls... {
  using Calls::operator()...;
};
template <class... Calls>
Overloaded(Calls...) -> Overloaded<Calls...>;

}  // namespace

Collector::Collector(const Options& options, int most_launches)
    : options_(options),
      comparisons_(options.cases, options.baseline),
      run_(new_run_name()),
      journal_(options.journal),
      csv_(options.csv),
      display_(options, results_, comparisons_, most_launches) {
  if (!options.resume.empty()) resume(most_launches);
}

void Collector::resume(int most_launches) {
  for (KnownResult& known :
       known_results(options_.resume, options_.cases, most_launches, this_origin(options_))) {
    run_ = known.result.text("run");
    if (known.launch != results_.launch()) results_.start_launch(known.launch);
    compare(known.launch, known.index, known.result);
    results_.end(known.index, std::move(known.result));
  }
}

Plan Collector::start_launch(int launch, int launches) {
  launches_ = launches;
  results_.start_launch(launch);
  if (launch == 1 && !is_proved_) prove_cases();
  return {launch == launches, results_.unsettled(static_cast<int>(options_.cases.size()))};
}

/// Proves all cases before any of them is timed.
void Collector::prove_cases() {
  is_proved_ = true;
  int index = 0;
  for (const std::string& error : prove(options_.cases)) {
    if (!error.empty() && !results_.is_settled(index))
      fail(index, {.reason = error, .exit_code = ExitCode::schedule});
    ++index;
  }
}

void Collector::take(const Message& message) {
  std::visit(Overloaded{[&](const RanksMet&) { results_.meet(); },
                        [&](const CaseBegins& begins) { results_.begin(begins.index); },
                        [&](const CaseEnds& ends) { end(ends.index, ends.result); },
                        [&](const Notice& notice) { results_.announce(notice); }},
             message);
}

void Collector::fail(int index, const Failure& failure) {
  Result result;
  add_case(result, options_.cases[index], options_.warmup, options_.rounds);
  add_failure(result, failure);
  add_machine(result, this_machine(mpi_library()));
  end(index, std::move(result));
}

/// Keeps a result, compares it with those before it and appends its record.
void Collector::end(int index, Result result) {
  compare(results_.launch(), index, result);
  add_comparisons(result, comparisons_, results_.launch(), index);
  add_provenance(result);
  Result kept = result;
  kept.remove("rank_seconds");  // no row shows it
  results_.end(index, std::move(kept));
  round_times(result);
  const Result::Json record = result.json();
  journal_.append(record.dump(-1, ' ', false, Result::Json::error_handler_t::replace));
  csv_.append(record);
}

void Collector::compare(int launch, int index, const Result& result) {
  if (result.is_timed())
    comparisons_.add(launch, index, result.value<std::vector<double>>("seconds"),
                     result.known<double>("bound_seconds"));
}

void Collector::add_provenance(Result& result) const {
  result.set("baseline", options_.baseline);
  result.set("seed", options_.seed);
  result.set("commit", commit());
  result.set("time", utc_now());
  result.set("run", run_);
  result.set("session", options_.session);
  result.set("launch", results_.launch());
  result.set("launches", launches_);
}

}  // namespace baton
