// SPDX-License-Identifier: Apache-2.0
// Matching of sends with receives.
#include "collectives/schedule/matching.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"

namespace baton {

Matching::Matching(const std::string& collective, std::span<const Schedule> schedules)
    : collective_(collective), schedules_(schedules), first_{0} {
  std::int64_t total = 0;
  for (const Schedule& schedule : schedules) {
    total += static_cast<std::int64_t>(schedule.steps().size());
    if (total > std::numeric_limits<int>::max())
      throw ScheduleError(collective + ": more than " + std::to_string(std::numeric_limits<int>::max()) +
                          " steps");
    first_.push_back(static_cast<int>(total));
  }
  partner_.assign(total, -1);
  pair_messages();
}

void Matching::pair_messages() {
  // Receives wait in the list of their sender, by receiver and sequence; then every send picks its own.
  std::vector<std::unordered_map<std::uint64_t, int>> awaited(schedules_.size());
  const auto key = [](int receiver, int sequence) {
    return static_cast<std::uint64_t>(receiver) << 32 | static_cast<std::uint32_t>(sequence);
  };
  for (int n = 0; n < steps(); ++n)
    if (step(n).verb == Verb::recv) awaited[step(n).peer].emplace(key(rank(n), step(n).sequence), n);
  for (int n = 0; n < steps(); ++n) {
    if (step(n).verb != Verb::send) continue;
    const auto found = awaited[rank(n)].find(key(step(n).peer, step(n).sequence));
    if (found == awaited[rank(n)].end())
      throw ScheduleError(name(n) + " has no receive on rank " + std::to_string(step(n).peer));
    const auto sent = step(n).reads[0].count, received = step(found->second).writes[0].count;
    if (sent != received)
      throw ScheduleError(name(n) + " sends " + std::to_string(sent) + " elements, but " +
                          name(found->second) + " receives " + std::to_string(received));
    if (step(n).reads[0].dtype != step(found->second).writes[0].dtype)
      throw ScheduleError(name(n) + " sends elements of another type than " + name(found->second) +
                          " receives");
    partner_[n] = found->second;
    partner_[found->second] = n;
  }
  for (int n = 0; n < steps(); ++n)
    if (step(n).verb == Verb::recv && partner_[n] < 0)
      throw ScheduleError(name(n) + " has no send on rank " + std::to_string(step(n).peer));
}

int Matching::rank(int number) const {
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), number) - first_.begin()) - 1;
}

const Step& Matching::step(int number) const {
  const int owner = rank(number);
  return schedules_[owner].steps()[number - first_[owner]];
}

std::string Matching::name(int number) const {
  const int owner = rank(number);
  return collective_ + ": rank " + std::to_string(owner) + ", " +
         step_name(step(number), number - first_[owner]);
}

}  // namespace baton
