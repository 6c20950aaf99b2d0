// SPDX-License-Identifier: Apache-2.0
// An executor that does all by another one: what tests derive theirs from, which differ in one way.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/executors/executor.hpp"

namespace baton {

class ForwardingExecutor : public Executor {
 public:
  /// Throws UsageError if there is no executor of this name.
  ForwardingExecutor(const std::string& name, int ranks) : inner_(find_executor(name).make(ranks)) {}

  std::vector<int> local_ranks() const override { return inner_->local_ranks(); }
  Refusal unsupported(std::span<const Schedule> schedules) const override {
    return inner_->unsupported(schedules);
  }
  void prepare(std::vector<Schedule> schedules) override { inner_->prepare(std::move(schedules)); }
  void write(int rank, const Slice& into, std::span<const float> from) override {
    inner_->write(rank, into, from);
  }
  void read(std::span<float> into, int rank, const Slice& from) const override {
    inner_->read(into, rank, from);
  }
  void synchronise() override { inner_->synchronise(); }
  double run() override { return inner_->run(); }
  std::vector<StepTime> run_traced() override { return inner_->run_traced(); }
  double one_way_seconds(std::int64_t bytes, int from, int to) override {
    return inner_->one_way_seconds(bytes, from, to);
  }
  Dtype wire_dtype() const override { return inner_->wire_dtype(); }
  Device* device() override { return inner_->device(); }

 protected:
  Executor& inner() const { return *inner_; }

 private:
  std::unique_ptr<Executor> inner_;
};

}  // namespace baton
