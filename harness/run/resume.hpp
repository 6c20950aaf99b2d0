// SPDX-License-Identifier: Apache-2.0
// --resume: the results that a file of records already has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/cases/case.hpp"
#include "harness/record/result.hpp"

namespace baton {

struct Options;

/// What records must share with a run that takes them over.
struct Origin {
  std::string host;
  std::string commit;
  /// The rounds that a row is measured in; any number if not given.
  std::optional<int> warmup = {}, rounds = {};
};

/// This host, this build, and the rounds of `options`.
Origin this_origin(const Options& options);

/// A result that a file of records has of a case.
struct KnownResult {
  int launch = 1;
  int index = 0;
  Result result;
};

/// The results that the records of `journal` hold for `cases`, in their order: of several runs in
/// the file those of the one that wrote last. Failed cases are left out, so that they run again.
/// Throws UsageError if a record of that run was made by another commit, on another host or in
/// other rounds than `here`, is of a launch beyond `launches`, or lacks a key. An unknown commit is
/// another one.
std::vector<KnownResult> known_results(const std::string& journal, const std::vector<Case>& cases,
                                       int launches, const Origin& here);

}  // namespace baton
