// SPDX-License-Identifier: Apache-2.0
// Whether the kernels on warp groups can run: the device has compute capability 9.0, and of this
// program it runs what was compiled for 90a.
//
//   a kernel that takes 128 threads where it is compiled for 90a, and 32 elsewhere
#pragma once

namespace baton {

/// True if this device has warp groups (wgmma) and the program is built for it as 90a. Kernels on
/// warp groups are used then.
bool has_warp_groups();

}  // namespace baton
