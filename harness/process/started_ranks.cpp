// SPDX-License-Identifier: Apache-2.0
#include "harness/process/started_ranks.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "collectives/executors/host/process_state.hpp"
#include "collectives/executors/timing.hpp"

namespace baton {
namespace {

/// The rank in Open MPI's variables of a process; -1 if there is none yet.
int rank_of(pid_t process) {
  constexpr std::string_view rank = "OMPI_COMM_WORLD_RANK=";
  std::ifstream environment("/proc/" + std::to_string(process) + "/environ");
  for (std::string variable; std::getline(environment, variable, '\0');)
    if (variable.starts_with(rank)) return std::atoi(variable.c_str() + rank.size());
  return -1;
}

bool is_readable(int descriptor) {
  pollfd one{descriptor, POLLIN, 0};
  return poll(&one, 1, 0) > 0;
}

}  // namespace

std::vector<pid_t> children_of(const std::string& process) {
  const std::string task = process == "thread-self" ? "" : "/task/" + process;
  std::ifstream file("/proc/" + process + task + "/children");
  std::vector<pid_t> all;
  for (pid_t child = 0; file >> child;) all.push_back(child);
  return all;
}

StartedRanks::~StartedRanks() {
  for (const Rank& rank : ranks_)
    if (rank.descriptor >= 0) close(rank.descriptor);
}

void StartedRanks::look() {
  const bool none_had_ended = std::ranges::none_of(ranks_, &Rank::has_ended);
  for (Rank& rank : ranks_) {
    if (rank.has_ended || !is_readable(rank.descriptor)) continue;
    rank.has_ended = true;
    last_ended_at_ = monotonic_seconds();
  }
  if (none_had_ended && std::ranges::count_if(ranks_, &Rank::has_ended) == 1)
    first_ended_ = std::ranges::find_if(ranks_, &Rank::has_ended)->number;
  if (are_all_known()) return;
  for (const pid_t child : children_of(std::to_string(launcher_))) {
    const bool is_known = std::ranges::find(ranks_, child, &Rank::process) != ranks_.end();
    const int number = is_known ? -1 : rank_of(child);
    if (number < 0) continue;
    ranks_.push_back({number, child, static_cast<int>(syscall(SYS_pidfd_open, child, 0))});
  }
}

void StartedRanks::add_to(std::vector<pollfd>& polled) const {
  for (const Rank& rank : ranks_)
    if (!rank.has_ended) polled.push_back({rank.descriptor, POLLIN, 0});
}

bool StartedRanks::have_all_ended() const {
  if (ranks_.empty() || !std::ranges::all_of(ranks_, &Rank::has_ended)) return false;
  // A launcher that ends its ranks as they start leaves some that were never known.
  return are_all_known() || std::ranges::all_of(children_of(std::to_string(launcher_)), [](pid_t child) {
           return state_of(child) == ProcessState::gone;
         });
}

bool StartedRanks::are_gone() const {
  constexpr double patience = 5;  // seconds
  return have_all_ended() && monotonic_seconds() - last_ended_at_ >= patience;
}

std::vector<int> StartedRanks::stopped() const {
  std::vector<int> found;
  for (const Rank& rank : ranks_)
    if (state_of(rank.process) == ProcessState::stopped) found.push_back(rank.number);
  return found;
}

}  // namespace baton
