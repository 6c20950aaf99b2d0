// SPDX-License-Identifier: Apache-2.0
// Text of MPI's errors.
#include "collectives/executors/mpi/error.hpp"

#include <mpi.h>

#include <string>

#include "collectives/schedule/errors.hpp"

namespace baton {

void mpi(int code, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw SystemError("MPI error " + std::to_string(code) + ": " + std::string(text, length) + " (" +
                    where.file_name() + ":" + std::to_string(where.line()) + ")");
}

}  // namespace baton
