// SPDX-License-Identifier: Apache-2.0
#include "harness/run/record_files.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "harness/options/options.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"

namespace baton {

RecordFiles::RecordFiles(const Options& options, const std::string& run, int launch, bool writes)
    : writes_(writes),
      provenance_{.machine = this_machine(mpi_library()),
                  .commit = commit(),
                  .run = run,
                  .session = options.session,
                  .launch = launch,
                  .launches = options.launches,
                  .seed = options.seed,
                  .baseline = options.baseline},
      journal_(writes ? options.journal : ""),
      csv_(writes ? options.csv : "") {}

void RecordFiles::append(const Record& record) {
  if (!writes_) return;
  Provenance provenance = provenance_;
  for (auto& one : settings_of_messages(record.bench_case.executor))
    provenance.machine.settings.push_back(std::move(one));
  const nlohmann::ordered_json json = json_of(record, provenance);
  journal_.append(line_of(json));
  csv_.append(json);
}

Record failed_record(const Options& options, int index, Failure failure) {
  Record record;
  record.bench_case = options.cases[index];
  record.warmup = options.warmup;
  record.rounds = options.rounds;
  record.failure = std::move(failure);
  return record;
}

}  // namespace baton
