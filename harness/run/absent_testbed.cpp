// SPDX-License-Identifier: Apache-2.0
// Cases of an executor that lacks something on this machine.
#include <utility>

#include "harness/run/testbed.hpp"

namespace baton {
namespace {

class AbsentTestbed : public Testbed {
 public:
  AbsentTestbed(std::string reason, Team team) : Testbed(std::move(team)), reason_(std::move(reason)) {}

  std::string description() const override { return {}; }
  double start_skew_seconds() const override { return 0; }
  std::string prepare(Record&) override { return reason_; }
  void verify(Record&) override {}
  void time(Record&, benchmark::State&) override {}
  std::vector<StepTime> run_traced(const Record&) override { return {}; }

 private:
  std::string reason_;
};

}  // namespace

std::unique_ptr<Testbed> absent_testbed(std::string reason, Team team) {
  return std::make_unique<AbsentTestbed>(std::move(reason), std::move(team));
}

}  // namespace baton
