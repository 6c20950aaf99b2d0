// SPDX-License-Identifier: Apache-2.0
#include "plots/native/call.hpp"

#include <nanobind/ndarray.h>

#include <cstddef>

namespace nb = nanobind;

namespace baton {

nb::object Call::stream() const {
  if (given_.stream == nullptr) return nb::none();
  return nb::int_(reinterpret_cast<std::uintptr_t>(given_.stream));
}

nb::dict Call::tensors() const {
  nb::dict all;
  for (const auto* side : {&given_.reads, &given_.writes})
    for (const RoutineOperand& operand : *side) all[operand.name.c_str()] = view(operand, 0, operand.shape);
  return all;
}

nb::object Call::own() const { return view(map_and_state(), 0, {1, map_and_state().shape[0]}); }

nb::object Call::decay() const {
  switch (given_.form.kind) {
    case MapKind::diagonal: return view(map_and_state(), 0, {decays(), 1});
    case MapKind::scalar: return view(map_and_state(), 0, {decays(), 1, 1});
    case MapKind::affine: break;
  }
  throw nb::attribute_error("an affine map has a matrix and no decay");
}

nb::object Call::matrix() const {
  if (given_.form.kind != MapKind::affine) throw nb::attribute_error("only an affine map has a matrix");
  const std::int64_t row = given_.row, heads = decays() / (row * row);
  // The executor's matrices stand to the left of a column, or, transposed, to the right of a row.
  if (given_.form.transposed) return view(map_and_state(), 0, {heads, row, row});
  return view(map_and_state(), 0, {heads, row, row}, {row * row, 1, row});
}

nb::object Call::state() const { return state_view(map_and_state(), decays()); }
nb::object Call::into() const { return state_view(result(), 0); }

nb::object Call::state_view(const RoutineOperand& operand, std::int64_t first) const {
  const std::int64_t row = given_.row, rows = result().shape[0] / row, share = given_.form.share;
  if (given_.form.kind == MapKind::diagonal) return view(operand, first, {rows, row});
  return view(operand, first, {rows / share, share, row});
}

RoutineMessages& Call::messages() const {
  if (given_.messages == nullptr) throw nb::attribute_error("this executor leaves messages to your library");
  return *given_.messages;
}

nb::object Call::view(const RoutineOperand& operand, std::int64_t first, const Sizes& sizes,
                      const Sizes& strides) const {
  void* memory = static_cast<std::byte*>(operand.data) + first * bytes_of(operand.dtype);
  const std::vector<std::size_t> shape(sizes.begin(), sizes.end());
  const std::int64_t* steps = strides.empty() ? nullptr : strides.data();
  if (converts_.is_none() && given_.stream == nullptr) {
    const nb::ndarray<nb::numpy, float> array(memory, shape.size(), shape.data(), nb::handle(), steps);
    return nb::cast(array, nb::rv_policy::reference);
  }
  constexpr nb::dlpack::dtype bf16{4, 16, 1};  // kDLBfloat
  const nb::ndarray<> array(memory, shape.size(), shape.data(), nb::handle(), steps,
                            operand.dtype == Dtype::bf16 ? bf16 : nb::dtype<float>(),
                            given_.stream == nullptr ? nb::device::cpu::value : nb::device::cuda::value,
                            given_.device);
  const nb::object made = nb::cast(array, nb::rv_policy::reference);
  return converts_.is_none() ? made : nb::object(converts_(made));
}

}  // namespace baton
