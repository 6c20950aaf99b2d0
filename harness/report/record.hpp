// SPDX-License-Identifier: Apache-2.0
// The answer to one case, with where it comes from; and the file of such answers.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/measure/link.hpp"
#include "harness/measure/rounds.hpp"
#include "harness/measure/statistics.hpp"

namespace baton {

struct Record {
  Case question;
  /// "schedule", or the native's name.
  std::string implementation = "schedule";
  /// The number of blocks that ran: the model's, or what was asked for and was possible.
  int blocks = 1;
  /// Ranks on a full node as it ran, 0 for all on one: what was asked for, or what the simulated machine has.
  int ranks_a_node = 0;
  int warmup = 0;
  int rounds = 0;
  /// Why the case did not run; then there are no timings.
  std::string skipped;
  /// What the schedules cost; empty where a native keeps it to itself.
  std::optional<Claim> traffic;
  /// Messages of all ranks together; empty where nobody counted them.
  std::optional<std::int64_t> messages;
  Link link;
  /// Names and versions of the accelerators that ran it; empty where there were none.
  std::vector<std::pair<std::string, std::string>> device_facts;
  std::int64_t wrong = 0;
  double relative_error = 0;
  /// The largest relative error that would have passed; 0 where the comparison was exact.
  double tolerance = 0;
  /// What f32 elements were on their way between ranks.
  Dtype wire = Dtype::f32;
  /// Where the first wrong element was.
  std::string first_wrong;
  Samples samples;
  Summary summary;
  /// Time over the baseline's.
  std::optional<Ratio> ratio;

  /// The machine that was simulated: of a row that did not run, or for what was predicted of one that did.
  std::string topology;
  /// What was verified in its place, the same text on fewer ranks and smaller tensors; empty where it was itself.
  std::optional<Case> stand_in;
  /// What the simulator says that a row takes which did run.
  std::optional<double> predicted_seconds;
  /// Why a predicted or simulated time reaches beyond what its topology was calibrated with; empty where it does not.
  std::string extrapolated;

  /// The share of the exchange that local work hid, of a method's overlapped row; docs/metrics.md.
  std::optional<double> hidden;

  bool is_timed() const { return !samples.seconds.empty(); }
  /// The sizes at which it was compared with the oracle, where these are not its own: keys that begin with "verified_".
  nlohmann::ordered_json verification() const;
  std::optional<double> bound_seconds() const;
};

/// What all records of one launch share.
struct Provenance {
  nlohmann::ordered_json machine;
  std::string commit;
  /// Tells the records of one launch from those of another.
  std::string run;
  std::uint64_t seed = 1;
  std::string baseline;
  double start_skew_seconds = 0;
};

/// One record as a line of JSON, keys as in docs/metrics.md.
nlohmann::ordered_json to_json(const Record& record, const Provenance& provenance);

/// A file of JSON lines that only grows.
class Journal {
 public:
  /// An empty path stands for no file. Throws UsageError if the file cannot be appended to.
  explicit Journal(const std::string& path);

  /// Appends one line and flushes it: a crash loses nothing that was measured before. Throws SystemError if
  /// it fails.
  void append(const nlohmann::ordered_json& line);

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace baton
