// SPDX-License-Identifier: Apache-2.0
// Where and when a case ran: the machine, its state, the baseline and the run.
#pragma once

#include <array>

#include "harness/record/fields/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

// key, role, type, written, unit, title, flag, absent, help, is named
inline constexpr std::array of_machine = std::to_array<Field>({
    {"topology", machine, text, if_any, "", "", "--topology", "\"\"",
     "The simulated machine, or the machine of the prediction."},
    {"stands_on", machine, text, if_any, "", "", "", "\"\"",
     "What the machine of a simulated row was calibrated with."},
    {"predicted_seconds", result, real, or_null, "seconds", "predicted", "", "null",
     "The simulator's time for a measured row."},
    {"extrapolated", result, text, if_any, "", "", "", "\"\"",
     "Why a predicted or simulated time goes beyond what its topology was calibrated with."},
    {"conditions", machine, object, if_any, "", "", "", "null", "What the host had to do beside the case."},
    {"conditions.cores", machine, whole, always, "", "", "", "",
     "The physical cores that the launch may use."},
    {"conditions.busy_threads", machine, whole, always, "", "", "", "",
     "The busy threads of the case at once on the fullest host."},
    {"conditions.oversubscribed", machine, truth, always, "", "", "", "",
     "True if these are more than the cores, or than the quota allows."},
    {"conditions.other_load", machine, real, or_null, "cores", "", "", "null",
     "The cores that other processes used on average over about the last second."},
    {"conditions.quota", machine, real, if_any, "cores", "", "", "null",
     "The cores whose whole time a quota of the launch's control groups allows."},
    {"conditions.throttled", machine, whole, if_any, "", "", "", "0",
     "How often that quota held processes of the groups back while the case was timed."},
    {"device", machine, object, if_any, "", "", "", "null",
     "The GPU, its driver and the libraries, by name."},
    {"device.gpu", machine, text, always, "", "", "", "", "The name of the GPU."},
    {"device_before", machine, object, if_any, "", "", "", "null",
     "Readings of each rank's GPU before the warm-up."},
    {"device_after", machine, object, if_any, "", "", "", "null", "The same right after the last round."},
    {"baseline", axis, text, always, "", "", "--baseline", "", "The row that ratios refer to; may be empty."},
    {"seed", axis, whole, always, "", "", "--seed", "", "The seed of the inputs."},
    {"transport", machine, text, if_any, "", "", "", "\"\"",
     "What carries messages between ranks of one host: shared memory and how it is copied, sockets, or an "
     "interface."},
    {"start_skew_seconds", machine, real, or_null, "seconds", "", "", "null",
     "How far apart ranks start a round."},
    {"hosts", machine, object, if_any, "", "", "", "null", "Present if the ranks ran on several hosts."},
    {"hosts.count", machine, whole, always, "", "", "", "", "The number of hosts."},
    {"hosts.placement", machine, text, always, "", "", "", "", "Which ranks ran on which host, in words."},
    {"hosts.within_by", machine, text, always, "", "", "", "", "What carries messages within a host."},
    {"hosts.between_by", machine, text, always, "", "", "", "", "What carries messages between hosts."},
    {"hosts.between_alpha_seconds", machine, real, always, "seconds", "", "", "",
     "The time of an empty message between hosts."},
    {"hosts.between_beta_bytes_per_second", machine, real, always, "bytes per second", "", "", "",
     "The rate of large messages between hosts."},
    {"hosts.clock_error_seconds", machine, real, or_null, "seconds", "", "", "null",
     "How well the clocks of the hosts could be compared."},
    {"machine", machine, object, always, "", "", "", "",
     "The machine of rank 0: what is below, and the versions of libraries by name."},
    {"machine.host", machine, text, always, "", "", "", "", "The host's name as a hash."},
    {"machine.cpu", machine, text, always, "", "", "", "", "The processor."},
    {"machine.cores", machine, whole, always, "", "", "", "", "Its cores."},
    {"machine.memory_gib", machine, real, always, "GiB", "", "", "", "Its memory."},
    {"machine.system", machine, text, always, "", "", "", "", "The operating system."},
    {"machine.kernel", machine, text, always, "", "", "", "", "The version of its kernel."},
    {"machine.compiler", machine, text, always, "", "", "", "", "The compiler that built the bench."},
    {"machine.build", machine, text, always, "", "", "", "", "The kind of build."},
    {"machine.mpi", machine, text, always, "", "", "", "", "The MPI library."},
    {"machine.environment", machine, object, always, "", "", "", "",
     "The environment variables that steer MPI and its like."},
    {"machine.settings", machine, object, if_any, "", "", "", "null",
     "What was in force beside: of the system, of files of libraries, and as MPI reports it."},
    {"commit", identity, text, always, "", "", "", "",
     "The commit of the bench, with -dirty and a digest of the difference where files had changed; unknown "
     "where nothing told it."},
    {"time", identity, text, always, "", "", "", "", "When the record was written, in UTC."},
    {"run", identity, text, always, "", "", "", "", "The same for all records of one command."},
    {"session", identity, text, if_any, "", "", "--session", "\"\"",
     "A name that records of several commands share."},
    {"launch", identity, whole, always, "", "", "", "1", "The launch of the run that this is, from 1."},
    {"launches", identity, whole, always, "", "", "--launches", "1", "The number of launches of the run."},
});

}  // namespace baton::schema::part
