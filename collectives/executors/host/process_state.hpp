// SPDX-License-Identifier: Apache-2.0
// Whether another process of this host is still at work.
#pragma once

#include <sys/types.h>

namespace baton {

enum class ProcessState { runs, stopped, gone };

/// What `process` does, as the kernel tells; also from a signal handler. One that has ended and that nobody has waited
/// for is gone.
ProcessState state_of(pid_t process);

}  // namespace baton
