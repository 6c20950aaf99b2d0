// SPDX-License-Identifier: Apache-2.0
// MPI's return codes as exceptions.
#pragma once

#include <source_location>

namespace baton {

/// Throws SystemError with MPI's own text and the caller's line unless `code` is MPI_SUCCESS.
void mpi(int code, std::source_location where = std::source_location::current());

}  // namespace baton
