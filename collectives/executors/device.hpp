// SPDX-License-Identifier: Apache-2.0
// What an executor whose ranks are accelerators tells and does beyond running rounds.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collectives/schedule/refusal.hpp"

namespace baton {

/// What the hardware allows between two ranks whatever the library: the terms of a bound.
struct HardwareLimits {
  /// What an empty round reads.
  double floor_seconds = 0;
  /// One way of a flag from device to device.
  double alpha_seconds = 0;
  /// Bytes a second that a device stores into another's memory; 0 where it reaches none, and alpha then says nothing.
  double beta = 0;
};

/// A number that a device shows about itself at some moment, such as {"sm_clock_mhz", 1980}.
struct Reading {
  std::string name;
  double value = 0;
};

/// An executor's accelerator, one a rank.
class Device {
 public:
  virtual ~Device() = default;

  /// True where the devices start a round together by flags of their own, not by the ranks' barrier.
  virtual bool starts_on_device() const = 0;

  /// Why rounds cannot be recorded and replayed, or an empty string.
  virtual Refusal replay_unsupported() const = 0;
  /// Rounds in one recording.
  virtual int replayed_rounds() const = 0;
  /// Replays the recording of `replayed_rounds` rounds, back to back on the device and launched as one; the seconds of
  /// one of them. The first call after `prepare` records. To be called by all ranks.
  virtual double replay() = 0;

  /// True where an element is under way to the next rank as soon as it has come, before the rest of its message.
  virtual bool streams_messages() const { return false; }

  /// Measures the hardware. To be called by all ranks.
  virtual HardwareLimits measure_limits() = 0;

  /// Clocks, power and why the clocks were held down, now; the same names at every call.
  virtual std::vector<Reading> readings() const = 0;
  /// Names and versions, such as {"gpu", "NVIDIA H200"}.
  virtual std::vector<std::pair<std::string, std::string>> facts() const = 0;
};

}  // namespace baton
