// SPDX-License-Identifier: Apache-2.0
// The extension module of the Python package: collective_bench as a function, and natives whose
// bodies are Python functions.
//
//   add_native:  registers a collective with one step, the native, and a body that calls the
//                function, with executor tcp
//   run:         the main function of collective_bench
//
// The global lock is free while the bench runs, and is held during a call of a body. It is a part of
// what a round of such a row takes, as everything is that the function does.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/cores.hpp"
#include "collectives/executors/tcp/native.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/options/collective.hpp"
#include "harness/options/options.hpp"
#include "harness/process/world.hpp"
#include "harness/run/bench.hpp"
#include "plots/native/call.hpp"

namespace nb = nanobind;

namespace baton {
namespace {

/// Any one-dimensional or larger array of floats of the user's, on a processor and without gaps.
using Array = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Constant = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

using Count = std::function<std::int64_t(int ranks, std::int64_t state_bytes)>;

struct Kept {
  nb::callable body;
  nb::object converts;
  std::optional<Count> bytes;
  std::optional<Count> hops;
};

/// Registers an exclusive scan of maps whose body is `body`, which gets its views by `converts`.
/// `bytes` and `hops` make its claim.
void add_native(const std::string& name, const nb::callable& body, const nb::object& converts,
                const std::string& summary, const std::optional<Count>& bytes,
                const std::optional<Count>& hops) {
  // Registries outlive the interpreter, so what they hold of it is never given back.
  const auto* const kept = new Kept{body, converts, bytes, hops};
  tcp::natives().add(name, [kept](tcp::Call& call) {
    const nb::gil_scoped_acquire lock;
    kept->body(Call(call, kept->converts));
  });
  const Registered registered({
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "native: " + summary,
      .build = [name](Schedule& s, const Operands& x) { s.native_scan(name, x.blocks, x.into, x.own); },
      .claim = [kept](const Shape& shape, const Split& split) -> std::optional<Claim> {
        if (!kept->bytes || !kept->hops) return std::nullopt;
        const nb::gil_scoped_acquire lock;
        return Claim{(*kept->bytes)(split.ranks, shape.state_bytes()),
                     static_cast<int>((*kept->hops)(split.ranks, shape.state_bytes()))};
      },
      .native_takes_all_maps = true,
  });
}

/// Runs collective_bench with these words; the first one is the program's name. Returns its exit code.
int run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const nb::gil_scoped_release others_may_run;
  return bench_main(static_cast<int>(words.size()), argv.data(), parse_collective_options);
}

void define_call(nb::module_& m) {
  nb::class_<Call>(m, "Call", "One execution of an exclusive scan on this rank.")
      .def_prop_ro("rank", &Call::rank, "This rank, counted in scan order.")
      .def_prop_ro("ranks", &Call::ranks)
      .def("home", &Call::home, nb::arg("place"), "The rank of the launcher that has a place in scan order.")
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
            call.send({array.data(), array.size()}, to);
          },
          nb::arg("array"), nb::arg("to"), "Sends an array of f32; waits until it is gone.")
      .def(
          "receive",
          [](const Call& call, const Array& array, int from) {
            call.receive({array.data(), array.size()}, from);
          },
          nb::arg("array"), nb::arg("from_"), "Receives into an array of f32.");
}

}  // namespace
}  // namespace baton

NB_MODULE(_harness, m) {
  nb::set_leak_warnings(false);  // registries keep the bodies until the process ends
  baton::define_call(m);
  m.def("add_native", baton::add_native, nb::arg("name"), nb::arg("body"), nb::arg("converts").none(),
        nb::arg("summary"), nb::arg("bytes").none(), nb::arg("hops").none());
  m.def("run", baton::run, nb::arg("words"));
  m.def("is_launched", [] { return baton::is_launched(); });
  m.def("usable_cores", [] { return baton::usable_cores().count(); });
}
