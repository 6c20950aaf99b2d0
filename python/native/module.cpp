// SPDX-License-Identifier: Apache-2.0
// The extension module of the Python package: collective_bench as a function, and natives of executor
// `tcp` whose bodies are Python functions.
//
//   add_native:  registers a collective with one step, the native, and a body that calls the function
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
#include <span>
#include <string>
#include <vector>

#include "collectives/collective.hpp"
#include "collectives/executors/tcp/native.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/run/experiment.hpp"

namespace nb = nanobind;

namespace {

using namespace baton;

using Array = nb::ndarray<nb::numpy, float, nb::c_contig>;
/// Any one-dimensional or larger array of floats of the user's, on a processor and without gaps.
using Given = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Constant = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;

/// The memory of `values` as an array of rows. It is the executor's, and valid during the call.
Array rows_of(std::span<float> values, std::size_t rows) {
  const std::size_t shape[]{rows, values.size() / rows};
  return Array(values.data(), 2, shape);
}

/// What a body sees: views of its rank's map and of the place for the result.
class Call {
 public:
  explicit Call(TcpCall& call) : call_(call) {}

  int rank() const { return call_.rank; }
  int ranks() const { return call_.ranks; }
  Array into() const { return rows_of(result(), rows()); }
  Array own() const { return rows_of(map(), 1); }
  Array decay() const { return rows_of(map().first(rows()), rows()); }
  Array state() const { return rows_of(map().subspan(rows()), rows()); }
  void send(const Constant& from, int to) { call_.send({from.data(), from.size()}, to); }
  void receive(const Given& into, int from) { call_.receive({into.data(), into.size()}, from); }

 private:
  std::span<float> result() const { return call_.operands.writes[0]; }
  std::span<float> map() const {
    const auto own = call_.operands.reads[0];
    return {const_cast<float*>(own.data()), own.size()};  // NumPy has no views of constants that DLPack takes
  }
  std::size_t rows() const { return map().size() - result().size(); }

  TcpCall& call_;
};

using Count = std::function<std::int64_t(int ranks, std::int64_t state_bytes)>;

struct Kept {
  nb::callable body;
  std::optional<Count> bytes;
  std::optional<Count> hops;
};

/// Registers an exclusive scan of maps whose body is `body`. `bytes` and `hops` make its claim.
void add_native(const std::string& name, const nb::callable& body, const std::string& summary,
                const std::optional<Count>& bytes, const std::optional<Count>& hops) {
  // Registries outlive the interpreter, so what they hold of it is never given back.
  const auto* const kept = new Kept{body, bytes, hops};
  tcp_natives().add(name, [kept](TcpCall& call) {
    const nb::gil_scoped_acquire lock;
    kept->body(Call(call));
  });
  const Registered registered({
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "native: " + summary,
      .build = [name](Schedule& s,
                      const Operands& x) { s.native(name, x.blocks, {x.into}, {x.own.packed()}); },
      .claim = [kept](const Shape& shape, const Split& split) -> std::optional<Claim> {
        if (!kept->bytes || !kept->hops) return std::nullopt;
        const nb::gil_scoped_acquire lock;
        return Claim{(*kept->bytes)(split.ranks, shape.state_bytes()),
                     static_cast<int>((*kept->hops)(split.ranks, shape.state_bytes()))};
      },
  });
}

/// Runs collective_bench with these words; the first one is the program's name. Returns its exit code.
int run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const nb::gil_scoped_release others_may_run;
  return bench_main(static_cast<int>(words.size()), argv.data(), parse_collective_options,
                    collective_table());
}

}  // namespace

NB_MODULE(_harness, m) {
  nb::set_leak_warnings(false);  // registries keep the bodies until the process ends
  nb::class_<Call>(m, "Call", "One execution of an exclusive scan on this rank.")
      .def_prop_ro("rank", &Call::rank, "This rank, counted in scan order.")
      .def_prop_ro("ranks", &Call::ranks)
      .def_prop_ro("own", &Call::own, nb::rv_policy::reference,
                   "This rank's map, [1, rows + rows * d_v]: the decays, then the state.")
      .def_prop_ro("decay", &Call::decay, nb::rv_policy::reference, "The decays of the map, [rows, 1].")
      .def_prop_ro("state", &Call::state, nb::rv_policy::reference, "The state of the map, [rows, d_v].")
      .def_prop_ro("into", &Call::into, nb::rv_policy::reference,
                   "The place of the result, [rows, d_v]; rank 0 leaves it as it is.")
      .def("send", &Call::send, nb::arg("array"), nb::arg("to"),
           "Sends an array of f32; waits until it is gone.")
      .def("receive", &Call::receive, nb::arg("array"), nb::arg("from_"), "Receives into an array of f32.");
  m.def("add_native", add_native, nb::arg("name"), nb::arg("body"), nb::arg("summary"),
        nb::arg("bytes").none(), nb::arg("hops").none());
  m.def("run", run, nb::arg("words"));
  m.def("is_launched", [] { return is_launched(); });
}
