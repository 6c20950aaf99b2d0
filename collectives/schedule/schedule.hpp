// SPDX-License-Identifier: Apache-2.0
// One rank's part of a collective, recorded: steps over slices of named buffers.
//
// An algorithm is written like message-passing code against the six verbs below. A call of a verb
// moves nothing: it appends a Step, and executors run the steps later, in any order that the
// dependencies allow.
#pragma once

#include <algorithm>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

#include "collectives/schedule/dependencies.hpp"
#include "collectives/schedule/kernel.hpp"
#include "collectives/schedule/slice.hpp"

namespace baton {

/// How ranks lie on nodes, both counted in scan order. Nodes are filled in the order of home ranks,
/// so the last home node may be partly filled. In reverse it comes first, and boundaries stay
/// between the same home ranks.
class Nodes {
 public:
  /// Places `ranks` ranks, `ranks_per_node` on each full node. 0, or more than `ranks`, places all
  /// on one node.
  Nodes(int ranks, int ranks_per_node, bool reversed)
      : ranks_(ranks),
        full_(ranks_per_node == 0 ? ranks : std::min(ranks, ranks_per_node)),
        reversed_(reversed) {}

  int count() const { return (ranks_ + full_ - 1) / full_; }
  /// The node that `rank` lies on.
  int of(int rank) const { return reversed_ ? count() - 1 - (ranks_ - 1 - rank) / full_ : rank / full_; }
  /// The first rank of `node`; of node `count()` the number of ranks.
  int begin(int node) const {
    return reversed_ ? std::max(0, ranks_ - (count() - node) * full_) : std::min(ranks_, node * full_);
  }
  int end(int node) const { return begin(node + 1); }
  /// Ranks on `node`.
  int size(int node) const { return end(node) - begin(node); }
  /// Ranks on a full node.
  int full_size() const { return full_; }

 private:
  int ranks_;
  int full_;
  bool reversed_;
};

enum class Verb { send, recv, copy, combine, compute, native };

/// One recorded verb: data only.
struct Step {
  Verb verb = Verb::copy;
  /// Peer rank of a send or recv, -1 otherwise.
  int peer = -1;
  /// Number of messages from sender to receiver before this one.
  int sequence = 0;
  /// Index into `Schedule::kernels` of a compute step, into `Schedule::natives` of a native step,
  /// -1 otherwise.
  int body = -1;
  /// Index into `Schedule::regions`: the embedded collective that recorded the step, 0 for the
  /// outermost.
  int region = 0;
  Combine combine = {};  ///< The operator of a combine step.
  std::vector<Slice> writes;
  std::vector<Slice> reads;
  /// Earlier steps of this rank that must have finished, ascending.
  std::vector<int> waits_for;
  std::source_location source;  ///< The line of the algorithm that recorded the step.

  bool is_message() const { return verb == Verb::send || verb == Verb::recv; }
  /// Floating-point operations of a combine step.
  double combine_flops() const {
    return baton::combine_flops(combine, writes.back().count, writes.size() == 2 ? writes[0].count : 0);
  }
};

/// A library call or hand-written body that stands in for steps, by its registered name.
struct NativeCall {
  std::string name;
  int blocks = 1;
  bool reversed = false;  ///< True when the native must run in reverse rank order.
  /// Number of elements of a row of the scanned maps; 0 unless `native_scan` recorded it.
  std::int64_t row = 0;
  MapForm form = {};  ///< Form of the scanned maps, if `native_scan` recorded it.
  /// The sizes of the operands' dimensions, those that are written first; empty if nobody told.
  std::vector<std::vector<std::int64_t>> shapes = {};
};

/// Scratch that parts of a schedule use in turn. A part gets the memory that an earlier part took
/// under an equal name, size and type; its steps wait for the earlier steps that still use it.
class ScratchPool {
 private:
  friend class Schedule;
  friend class Pooled;
  struct Entry {
    std::string name;
    Slice slice;
    bool is_taken = false;
  };
  std::vector<Entry> entries_;
};

/// One rank's steps and the buffers they work on.
class Schedule {
 public:
  using Source = std::source_location;

  /// Makes an empty schedule. Ranks fill nodes of `ranks_per_node` one after the other; 0 puts all
  /// on one node. Throws UsageError if `rank` is not in [0, ranks) or `ranks_per_node` is negative.
  Schedule(int rank, int ranks, int ranks_per_node = 0);

  /// This rank's place in scan order: 0 is first. Inside a `Reversed` scope the last rank is first.
  int rank() const { return place(index_); }
  int ranks() const { return among_.empty() ? ranks_ : static_cast<int>(among_.size()); }

  /// How the ranks lie on nodes, in scan order. Inside an `Among` scope every rank counts as a node
  /// of its own.
  Nodes nodes() const { return {ranks(), among_.empty() ? ranks_per_node_ : 1, reversed_}; }
  /// Ranks on a full node, or all ranks if there is one node.
  int ranks_per_node() const { return nodes().full_size(); }

  /// The number of this rank outside every `Reversed` and `Among` scope.
  int home_rank() const { return rank_; }

  /// Adds an input of `count` elements, which the caller fills.
  Slice input(std::string name, std::int64_t count, Dtype dtype = Dtype::f32);
  /// Adds an output of `count` elements; `covered` is false if the schedule must leave it
  /// untouched.
  Slice output(std::string name, std::int64_t count, bool covered = true, Dtype dtype = Dtype::f32);
  /// Adds scratch of `count` elements. Inside a `Pooled` scope it is memory of the pool.
  Slice scratch(std::string name, std::int64_t count, Dtype dtype = Dtype::f32);
  /// Adds scratch of `count` elements that nothing else writes, inside a `Pooled` scope too.
  Slice lasting_scratch(std::string name, std::int64_t count, Dtype dtype = Dtype::f32);
  /// Adds scratch in the shape of `like`, decay and state side by side.
  Map scratch_map(std::string name, const Map& like);

  /// Sends `from` to rank `to`. Messages between two ranks are matched in the order of recording.
  void send(int to, const Slice& from, Source source = Source::current());
  void recv(const Slice& into, int from, Source source = Source::current());
  /// Throws ScheduleError if counts or types differ, or if `into` overlaps `from` and is another
  /// slice.
  void copy(const Slice& into, const Slice& from, Source source = Source::current());

  /// Sends a map as two messages, decay and state. A map that lies in one run can travel as one
  /// message with `packed()`.
  void send(int to, const Map& from, Source source = Source::current());
  void recv(const Map& into, int from, Source source = Source::current());
  void copy(const Map& into, const Map& from, Source source = Source::current());

  /// into = later after earlier. Applies the map `later` if `earlier` is a state, and composes two
  /// maps otherwise. The step carries the form of `later`. `into` may be `earlier` or `later`.
  /// Throws ScheduleError if the shapes differ, if maps are composed that are cut within a head, or
  /// if `into` overlaps an operand otherwise.
  void combine(const Map& into, const Map& earlier, const Map& later, Source source = Source::current());

  /// into = earlier + later: a combine whose decay is one. `into` may be `earlier` or `later`.
  void add(const Slice& into, const Slice& earlier, const Slice& later, Source source = Source::current());

  /// Records a local computation.
  void compute(Kernel kernel, std::vector<Slice> writes, std::vector<Slice> reads,
               Source source = Source::current());

  /// Records the native that is registered under `name` with the executor.
  void native(std::string name, int blocks, std::vector<Slice> writes, std::vector<Slice> reads,
              Source source = Source::current());
  /// Records a native that scans packed maps, and tells it the form of `own`.
  void native_scan(std::string name, int blocks, const Slice& into, const Map& own,
                   Source source = Source::current());

  /// Tells the native that was recorded last the sizes of its operands' dimensions.
  void shape_native(std::vector<std::vector<std::int64_t>> all) { natives_.back().shapes = std::move(all); }
  /// Makes steps recorded from here on start when all steps recorded before have finished. Slices
  /// express which steps *must* wait; a fence expresses a wait that a method chooses
  /// (docs/decisions/0006).
  void fence();

  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const std::vector<NativeCall>& natives() const { return natives_; }
  const std::vector<std::string>& regions() const { return regions_; }

  /// The whole buffer called `name`. Throws ScheduleError if there is none.
  Slice buffer(const std::string& name) const;

 private:
  friend class Reversed;
  friend class Among;
  friend class Region;
  friend class Pooled;

  int place(int index) const { return reversed_ ? ranks() - 1 - index : index; }
  int home_of(int rank) const { return among_.empty() ? place(rank) : among_[place(rank)]; }
  Slice add_buffer(Buffer buffer);
  Step& add_step(Verb verb, std::vector<Slice> writes, std::vector<Slice> reads, const Source& source);
  void wait_for_fence(std::vector<int>& waits_for) const;
  void add_message(Verb verb, int peer, const Slice& slice, const Source& source);
  [[noreturn]] void fail(const std::string& what, const Source& source) const;

  int rank_;
  int ranks_;
  int ranks_per_node_;
  int index_;               // of this rank among those that take part
  std::vector<int> among_;  // the home ranks of those that take part; empty for all
  bool reversed_ = false;
  int region_ = 0;
  ScratchPool* pool_ = nullptr;
  int fenced_ = 0;         // steps before this one have finished for all that follow
  std::vector<int> last_;  // those of them that no other one waits for
  Slice one_;              // the decay of sums; empty before the first
  std::vector<Step> steps_;
  std::vector<Buffer> buffers_;
  std::vector<Kernel> kernels_;
  std::vector<NativeCall> natives_;
  std::vector<std::string> regions_{""};
  std::vector<int> sent_;      // messages recorded so far, by receiver
  std::vector<int> received_;  // messages recorded so far, by sender
  Dependencies dependencies_;
};

/// A scope in which ranks count from the other end, so that one text serves the forward and the
/// backward pass.
class Reversed {
 public:
  explicit Reversed(Schedule& schedule) : schedule_(schedule), before_(schedule.reversed_) {
    schedule.reversed_ = !before_;
  }
  ~Reversed() { schedule_.reversed_ = before_; }
  Reversed(const Reversed&) = delete;
  Reversed& operator=(const Reversed&) = delete;

 private:
  Schedule& schedule_;
  bool before_;
};

/// A scope in which only the named ranks take part, numbered in that order. An embedded collective
/// then runs among them (docs/decisions/0008).
class Among {
 public:
  /// `ranks` counts as outside this scope. Throws ScheduleError if this rank is not one of them.
  Among(Schedule& schedule, const std::vector<int>& ranks);
  ~Among();
  Among(const Among&) = delete;
  Among& operator=(const Among&) = delete;

 private:
  Schedule& schedule_;
  std::vector<int> before_;
  int index_before_;
  bool reversed_before_;
};

/// A scope whose recorded steps remember that they came from the embedded collective `name`.
class Region {
 public:
  Region(Schedule& schedule, std::string name) : schedule_(schedule), before_(schedule.region_) {
    schedule.region_ = static_cast<int>(schedule.regions_.size());
    schedule.regions_.push_back(std::move(name));
  }
  ~Region() { schedule_.region_ = before_; }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Schedule& schedule_;
  int before_;
};

/// A scope in which the schedule takes scratch from `pool`, which must outlive it. A part of a long
/// schedule that runs after others then works in their memory.
class Pooled {
 public:
  Pooled(Schedule& schedule, ScratchPool& pool) : schedule_(schedule), before_(schedule.pool_) {
    for (ScratchPool::Entry& entry : pool.entries_) entry.is_taken = false;
    schedule.pool_ = &pool;
  }
  ~Pooled() { schedule_.pool_ = before_; }
  Pooled(const Pooled&) = delete;
  Pooled& operator=(const Pooled&) = delete;

 private:
  Schedule& schedule_;
  ScratchPool* before_;
};

/// Name of the file, and the line in it, that recorded `step`.
std::string where(const Step& step);

/// The name in errors of a step, number `index` of its rank: "step 4 (recv, all_scan.cpp:31)".
std::string step_name(const Step& step, int index);

/// The registered word for a verb, as the schedule's text prints it.
const char* to_string(Verb verb);

}  // namespace baton
