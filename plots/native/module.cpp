// SPDX-License-Identifier: Apache-2.0
// The extension module of the Python package: the benches as a function, and collectives and
// methods whose bodies are Python functions.
//
//   add_native:  registers a collective with one step, the native, and its routine
//   add_method:  registers a method with one step, the native, and its routine
//   run:         the main function of a bench
//
// The global lock is free while the bench runs, and is held during a call of a body. It is a part of
// what a round of such a row takes, as everything is that the function does.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/layers/options.hpp"
#include "harness/options/collective.hpp"
#include "harness/options/options.hpp"
#include "harness/process/program_launcher.hpp"
#include "harness/process/world.hpp"
#include "harness/run/bench.hpp"
#include "plots/native/call.hpp"
#include "plots/native/methods.hpp"
#include "plots/native/routine.hpp"

namespace nb = nanobind;

namespace baton {
namespace {

/// Any one-dimensional or larger array of floats of the user's, on a processor and without gaps.
using Array = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Constant = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

using Count = std::function<std::int64_t(int ranks, std::int64_t state_bytes)>;

struct Claims {
  std::optional<Count> bytes, hops;
};

/// Registers an exclusive scan of maps whose routine `make` makes, with views by `converts`.
/// `bytes` and `hops` make its claim.
void add_native(const std::string& name, const nb::callable& make, const nb::object& converts,
                const std::string& summary, const std::optional<Count>& bytes,
                const std::optional<Count>& hops) {
  add_routine(name, make, converts);
  const auto* const claims = new Claims{bytes, hops};  // never given back, as the routine
  const Registered registered({
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "native: " + summary,
      .build = [name](Schedule& s, const Operands& x) { s.native_scan(name, x.blocks, x.into, x.own); },
      .claim = [claims](const Shape& shape, const Split& split) -> std::optional<Cost> {
        if (!claims->bytes || !claims->hops) return std::nullopt;
        const nb::gil_scoped_acquire lock;
        return Cost{(*claims->bytes)(split.ranks, shape.state_bytes()),
                    static_cast<int>((*claims->hops)(split.ranks, shape.state_bytes()))};
      },
      .native_takes_all_maps = true,
  });
}

/// Registers a method whose routine `make` makes, with views by `converts`.
void add_method_of(const nb::callable& make, const nb::object& converts, const std::string& name,
                   const std::string& summary, const std::vector<std::string>& attentions,
                   const std::string& layout, const std::string& lacks, int most_ranks, bool has_backward,
                   bool is_deterministic, const std::optional<PythonMethod::Count>& bytes,
                   const std::optional<PythonMethod::Count>& hops) {
  add_routine(name, make, converts);
  add_method(
      {name, summary, attentions, layout, lacks, most_ranks, has_backward, is_deterministic, bytes, hops});
}

/// Runs a bench with these words; the first one is the program's name. `launcher` has the words that
/// start the ranks of a launch: their number and the bench's words follow. Returns its exit code.
int run(const std::string& bench, std::vector<std::string> words, const std::vector<std::string>& launcher) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  program_launcher() = launcher;
  const ParseOptions parse = bench == "operator" ? parse_operator_options : parse_collective_options;
  const nb::gil_scoped_release others_may_run;
  return bench_main(static_cast<int>(words.size()), argv.data(), parse);
}

void define_call(nb::module_& m) {
  nb::class_<Call>(m, "Call", "One rank's part of a case.")
      .def_prop_ro("rank", &Call::rank, "This rank, counted in scan order.")
      .def_prop_ro("ranks", &Call::ranks)
      .def("home", &Call::home, nb::arg("place"), "The rank of the launcher that has a place in scan order.")
      .def_prop_ro("stream", &Call::stream, "The CUDA stream that takes the work; None on processors.")
      .def_prop_ro("tensors", &Call::tensors, "Views of all operands, by name.")
      .def_prop_ro("map", &Call::map, "The kind of the map: diagonal, scalar or affine.")
      .def_prop_ro("own", &Call::own, "This rank's map in one row: decays or matrices, then the state.")
      .def_prop_ro("decay", &Call::decay, "The decays, so that decay * into + state is the map after into.")
      .def_prop_ro("matrix", &Call::matrix,
                   "The matrices of an affine map, so that into @ matrix + state is the map after into.")
      .def_prop_ro("state", &Call::state, "The state of the map, of the shape of into.")
      .def_prop_ro("into", &Call::into, "The place of the result; rank 0 leaves it as it is.")
      .def(
          "send",
          [](const Call& call, const Constant& array, int to) {
            call.messages().send({array.data(), array.size()}, to);
          },
          nb::arg("array"), nb::arg("to"), "Sends an array of f32; waits until it is gone.")
      .def(
          "receive",
          [](const Call& call, const Array& array, int from) {
            call.messages().receive({array.data(), array.size()}, from);
          },
          nb::arg("array"), nb::arg("from_"), "Receives into an array of f32.");
}

}  // namespace
}  // namespace baton

NB_MODULE(_harness, m) {
  nb::set_leak_warnings(false);  // registries keep the bodies until the process ends
  baton::define_call(m);
  m.def("add_native", baton::add_native, nb::arg("name"), nb::arg("make"), nb::arg("converts").none(),
        nb::arg("summary"), nb::arg("bytes").none(), nb::arg("hops").none());
  m.def("add_method", baton::add_method_of, nb::arg("make"), nb::arg("converts").none(), nb::arg("name"),
        nb::arg("summary"), nb::arg("attentions"), nb::arg("layout"), nb::arg("lacks"), nb::arg("most_ranks"),
        nb::arg("has_backward"), nb::arg("is_deterministic"), nb::arg("bytes").none(),
        nb::arg("hops").none());
  m.def("measure_empty_calls", baton::measure_empty_calls, nb::arg("parts"));
  m.def("run", baton::run, nb::arg("bench"), nb::arg("words"), nb::arg("launcher"));
  m.def("is_launched", [] { return baton::is_launched(); });
}
