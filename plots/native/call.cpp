// SPDX-License-Identifier: Apache-2.0
#include "plots/native/call.hpp"

#include <nanobind/ndarray.h>

#include <cstddef>
#include <vector>

namespace nb = nanobind;

namespace baton {

nb::object Call::own() const {
  return view(map_and_state().data(), {1, static_cast<std::int64_t>(map_and_state().size())});
}

nb::object Call::decay() const {
  switch (given_.form.kind) {
    case MapKind::diagonal: return view(map_and_state().data(), {decays(), 1});
    case MapKind::scalar: return view(map_and_state().data(), {decays(), 1, 1});
    case MapKind::affine: break;
  }
  throw nb::attribute_error("an affine map has a matrix and no decay");
}

nb::object Call::matrix() const {
  if (given_.form.kind != MapKind::affine) throw nb::attribute_error("only an affine map has a matrix");
  const std::int64_t row = given_.row, heads = decays() / (row * row);
  // The executor's matrices stand to the left of a column, or, transposed, to the right of a row.
  if (given_.form.transposed) return view(map_and_state().data(), {heads, row, row});
  return view(map_and_state().data(), {heads, row, row}, {row * row, 1, row});
}

nb::object Call::state() const { return state_view(map_and_state().data() + decays()); }
nb::object Call::into() const { return state_view(result().data()); }

nb::object Call::state_view(const float* first) const {
  const auto count = static_cast<std::int64_t>(result().size());
  const std::int64_t row = given_.row, rows = count / row, share = given_.form.share;
  if (given_.form.kind == MapKind::diagonal) return view(first, {rows, row});
  return view(first, {rows / share, share, row});
}

nb::object Call::view(const float* first, Sizes sizes, Sizes strides) const {
  auto* memory = const_cast<float*>(first);  // NumPy has no views of constants that DLPack takes
  const std::vector<std::size_t> shape(sizes.begin(), sizes.end());
  const std::int64_t* steps = strides.size() == 0 ? nullptr : strides.begin();
  if (converts_.is_none()) {
    const nb::ndarray<nb::numpy, float> array(memory, shape.size(), shape.data(), nb::handle(), steps);
    return nb::cast(array, nb::rv_policy::reference);
  }
  const nb::ndarray<float> array(memory, shape.size(), shape.data(), nb::handle(), steps, nb::dtype<float>(),
                                 nb::device::cpu::value, 0);
  return converts_(nb::cast(array, nb::rv_policy::reference));
}

}  // namespace baton
