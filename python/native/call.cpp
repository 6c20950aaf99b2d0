// SPDX-License-Identifier: Apache-2.0
#include "python/native/call.hpp"

#include <nanobind/ndarray.h>

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace nb = nanobind;

namespace baton {

nb::object Call::stream() const {
  if (given_.stream == nullptr) return nb::none();
  return nb::int_(reinterpret_cast<std::uintptr_t>(given_.stream));
}

nb::object Call::own() const {
  return view(given_.own.data(), {1, static_cast<std::int64_t>(given_.own.size())});
}

nb::object Call::decay() const {
  switch (given_.form.kind) {
    case MapKind::diagonal: return view(given_.own.data(), {decays(), 1});
    case MapKind::scalar: return view(given_.own.data(), {decays(), 1, 1});
    case MapKind::affine: break;
  }
  throw nb::attribute_error("an affine map has a matrix and no decay");
}

nb::object Call::matrix() const {
  if (given_.form.kind != MapKind::affine) throw nb::attribute_error("only an affine map has a matrix");
  const std::int64_t row = given_.row, heads = decays() / (row * row);
  // The executor's matrices stand to the left of a column, or, transposed, to the right of a row.
  if (given_.form.transposed) return view(given_.own.data(), {heads, row, row});
  return view(given_.own.data(), {heads, row, row}, {row * row, 1, row});
}

nb::object Call::state() const { return state_view(given_.own.data() + decays()); }
nb::object Call::into() const { return state_view(given_.into.data()); }

nb::object Call::state_view(const float* first) const {
  const auto count = static_cast<std::int64_t>(given_.into.size());
  const std::int64_t row = given_.row, rows = count / row, share = given_.form.share;
  if (given_.form.kind == MapKind::diagonal) return view(first, {rows, row});
  return view(first, {rows / share, share, row});
}

nb::object Call::view(const float* first, Sizes sizes, Sizes strides) const {
  auto* memory = const_cast<float*>(first);  // NumPy has no views of constants that DLPack takes
  const std::vector<std::size_t> shape(sizes.begin(), sizes.end());
  const std::int64_t* steps = strides.size() == 0 ? nullptr : strides.begin();
  if (given_.gpu < 0 && converts_.is_none()) {
    const nb::ndarray<nb::numpy, float> array(memory, shape.size(), shape.data(), nb::handle(), steps);
    return nb::cast(array, nb::rv_policy::reference);
  }
  const int device = given_.gpu < 0 ? nb::device::cpu::value : nb::device::cuda::value;
  const nb::ndarray<float> array(memory, shape.size(), shape.data(), nb::handle(), steps, nb::dtype<float>(),
                                 device, given_.gpu < 0 ? 0 : given_.gpu);
  nb::object any = nb::cast(array, nb::rv_policy::reference);
  return converts_.is_none() ? any : converts_(any);
}

TcpCall& Call::messages() const {
  if (given_.messages != nullptr) return *given_.messages;
  throw std::runtime_error("send and receive are there on executor tcp alone");
}

void Call::send(std::span<const float> from, int to) const { messages().send(from, to); }
void Call::receive(std::span<float> into, int from) const { messages().receive(into, from); }

}  // namespace baton
