// SPDX-License-Identifier: Apache-2.0
// The schema of records: every key, in the order in which a record has them, as the other files of
// this folder list them. All that writes, reads, names or describes records takes keys from here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "harness/schema/case.hpp"
#include "harness/schema/machine.hpp"
#include "harness/schema/names.hpp"
#include "harness/schema/sizes.hpp"
#include "harness/schema/times.hpp"
#include "harness/schema/verdict.hpp"
#include "harness/schema/workload.hpp"

namespace baton::schema {

namespace part {

/// The elements of some arrays, one array after the other.
template <std::size_t... sizes>
constexpr auto joined(const std::array<Field, sizes>&... parts) {
  std::array<Field, (sizes + ...)> all{};
  auto at = all.begin();
  ((at = std::copy(parts.begin(), parts.end(), at)), ...);
  return all;
}

}  // namespace part

inline constexpr auto fields = part::joined(part::of_names, part::of_workload, part::of_sizes, part::of_case,
                                            part::of_verdict, part::of_times, part::of_machine);

/// A key of the schema. Does not compile for a text that is none.
class Key {
 public:
  consteval Key(const char* key) {
    while (fields.at(place_).key != key) ++place_;
  }

  /// The key at a place of `fields`.
  static constexpr Key at(std::size_t place) {
    Key key("schema");
    key.place_ = place;
    return key;
  }

  constexpr std::size_t place() const { return place_; }
  constexpr const Field& field() const { return fields[place_]; }

  bool operator==(const Key&) const = default;

 private:
  std::size_t place_ = 0;
};

/// The version of the schema, which records have under the key "schema".
inline constexpr int version = 1;

/// The margin of ratios below which nothing is a difference.
inline constexpr double ratio_margin = 0.02;
/// How far beyond a time of one launch its bound must be for the time to be impossible: three times
/// what bounds on processors differ by between launches (9 %, results/two-cores).
inline constexpr double bound_margin_in_one_launch = 0.3;

/// The help of a key's flag: the first sentence of the key's help without its article and its full
/// stop, and what the help of the flag says besides.
std::string help_of_flag(const Field& field);

/// The schema as JSON, a line for each key.
std::string as_json();

}  // namespace baton::schema
