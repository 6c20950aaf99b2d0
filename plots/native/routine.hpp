// SPDX-License-Identifier: Apache-2.0
// Routines whose parts are functions in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace baton {

/// Adds the routine `name`. `make` gets a Call and returns an object with the functions `prepare`,
/// `run` and `finish`. `converts` makes its views, or is none. Throws UsageError if the name is taken.
void add_routine(const std::string& name, const nanobind::callable& make, const nanobind::object& converts);

/// Measures calls of the `run` of `parts`, which does nothing, for `empty_call_seconds`.
void measure_empty_calls(const nanobind::object& parts);

}  // namespace baton
