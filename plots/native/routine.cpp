// SPDX-License-Identifier: Apache-2.0
// The global lock is held during a call, and is free between calls. An exception in Python becomes
// one line that names its place in the user's program.
#include "plots/native/routine.hpp"

#include <nanobind/stl/string.h>

#include <memory>
#include <utility>
#include <vector>

#include "collectives/executors/routine.hpp"
#include "collectives/executors/timing.hpp"
#include "collectives/schedule/errors.hpp"
#include "plots/native/call.hpp"

namespace nb = nanobind;

namespace baton {
namespace {

/// The innermost place of a traceback that is in no library, such as "mine.py:12: "; empty if there
/// is none.
std::string place_of(nb::handle traceback) {
  const nb::object folders = nb::module_::import_("baton").attr("__path__");
  const std::string package = nb::cast<std::string>(folders[nb::int_(0)]) + "/";
  std::string place;
  for (nb::object at = nb::borrow(traceback); at.is_valid() && !at.is_none(); at = at.attr("tb_next")) {
    const auto file = nb::cast<std::string>(at.attr("tb_frame").attr("f_code").attr("co_filename"));
    if (file.find("/site-packages/") != std::string::npos || file.starts_with(package)) continue;
    place =
        file.substr(file.rfind('/') + 1) + ":" + std::to_string(nb::cast<int>(at.attr("tb_lineno"))) + ": ";
  }
  return place;
}

/// Throws SystemError with the exception's place, type and text. Needs the lock.
[[noreturn]] void rethrow(const nb::python_error& error) {
  const auto word = [&](const char* name) { return nb::cast<std::string>(error.type().attr(name)); };
  const std::string text = nb::cast<std::string>(nb::str(error.value()));
  if (word("__module__").starts_with("baton")) throw SystemError(text);
  throw SystemError(place_of(error.traceback()) + word("__name__") + (text.empty() ? "" : ": " + text));
}

class PythonRoutine : public Routine {
 public:
  PythonRoutine(const nb::callable& make, const nb::object& converts, const RoutineCall& call) {
    const nb::gil_scoped_acquire lock;
    try {
      const nb::object parts = make(Call(call, converts));
      prepare_ = parts.attr("prepare");
      run_ = parts.attr("run");
      finish_ = parts.attr("finish");
    } catch (const nb::python_error& error) {
      rethrow(error);
    }
  }
  ~PythonRoutine() override {
    const nb::gil_scoped_acquire lock;
    for (nb::object* part : {&prepare_, &run_, &finish_}) part->reset();
  }
  PythonRoutine(const PythonRoutine&) = delete;
  PythonRoutine& operator=(const PythonRoutine&) = delete;

  void prepare() override { call(prepare_); }
  void run() override { call(run_); }
  void finish() override { call(finish_); }

  /// Calls a part. Throws SystemError with what it raised.
  static void call(const nb::object& part) {
    const nb::gil_scoped_acquire lock;
    try {
      part();
    } catch (const nb::python_error& error) {
      rethrow(error);
    }
  }

 private:
  nb::object prepare_, run_, finish_;
};

}  // namespace

void add_routine(const std::string& name, const nb::callable& make, const nb::object& converts) {
  // Registries outlive the interpreter, so what they hold of it is never given back.
  using Kept = std::pair<nb::callable, nb::object>;
  const auto* const kept = new Kept{make, converts};
  routines().add(name, [kept](const RoutineCall& call) {
    return std::make_unique<PythonRoutine>(kept->first, kept->second, call);
  });
}

void measure_empty_calls(const nb::object& parts) {
  const auto* const kept = new nb::object(parts.attr("run"));  // never given back, as the others
  empty_call_seconds() = [kept] {
    constexpr int calls = 501;
    std::vector<double> seconds(calls);
    for (double& one : seconds) {
      const double start = monotonic_seconds();
      PythonRoutine::call(*kept);
      one = monotonic_seconds() - start;
    }
    return median(seconds);
  };
}

}  // namespace baton
