// SPDX-License-Identifier: Apache-2.0
#include "harness/doctor/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/doctor/placement.hpp"
#include "harness/doctor/slowness.hpp"

namespace baton::doctor {
namespace {

/// The member of PairReadings with the seconds of one kind of message.
using Times = Repeats PairReadings::*;

/// The times that each pair is compared with. There may be thousands of pairs, so all are sorted
/// once.
class References {
 public:
  References(const Readings& readings, const LinkReadings& links, Times times) : times_(times) {
    for (const PairReadings& pair : links.pairs) {
      const int own = distances_.emplace_back(distance(readings, links, pair));
      for (std::size_t repeat = 0; repeat < (pair.*times).size(); ++repeat)
        for (int apart = 0; apart <= own; ++apart) sorted_[{apart, repeat}].push_back((pair.*times)[repeat]);
    }
    for (auto& [key, seconds] : sorted_) std::sort(seconds.begin(), seconds.end());
  }

  /// For each repeat the lower quartile of the other pairs that are at least as far apart as the
  /// pair with this index; empty if there is none.
  Repeats of(const PairReadings& pair, std::size_t index) const {
    Repeats found;
    for (std::size_t repeat = 0; repeat < (pair.*times_).size(); ++repeat) {
      const std::vector<double>& seconds = sorted_.at({distances_[index], repeat});
      if (seconds.size() < 2) return {};
      const std::size_t quartile = (seconds.size() - 1) / 4;
      // Its own value is none of the others.
      found.push_back(seconds[quartile + ((pair.*times_)[repeat] <= seconds[quartile] ? 1 : 0)]);
    }
    return found;
  }

 private:
  Times times_;
  std::vector<int> distances_;
  std::map<std::pair<int, std::size_t>, std::vector<double>> sorted_;  // by least distance and repeat
};

/// A pair that is slow with one kind of message.
struct Slow {
  const PairReadings* pair;
  double seconds;
  double usual_seconds;
};

std::vector<Slow> slow_pairs(const Readings& readings, const LinkReadings& links, Times times, double limit) {
  std::vector<Slow> slow;
  const References references(readings, links, times);
  for (std::size_t index = 0; index < links.pairs.size(); ++index) {
    const PairReadings& pair = links.pairs[index];
    const Repeats usual = references.of(pair, index);
    Repeats excess;
    for (std::size_t repeat = 0; repeat < usual.size(); ++repeat)
      excess.push_back(usual[repeat] > 0 ? (pair.*times)[repeat] / usual[repeat] - 1 : 0);
    const double difference = typical(pair.*times) - typical(usual);
    if (exceeds(excess, limit) && difference >= Limits::least_seconds)
      slow.push_back({&pair, typical(pair.*times), typical(usual)});
  }
  return slow;
}

bool has(const PairReadings& pair, int rank) { return pair.from == rank || pair.to == rank; }

/// A rank with at least two pairs, all of which are slow; -1 if there is none.
int slow_rank(const LinkReadings& links, const std::vector<Slow>& slow) {
  for (int rank = 0; rank < links.ranks; ++rank) {
    const auto pairs = std::count_if(links.pairs.begin(), links.pairs.end(),
                                     [&](const PairReadings& pair) { return has(pair, rank); });
    const auto found =
        std::count_if(slow.begin(), slow.end(), [&](const Slow& one) { return has(*one.pair, rank); });
    if (pairs > 1 && pairs == found) return rank;
  }
  return -1;
}

std::string bytes_text(std::int64_t bytes) {
  return bytes < 1 << 20 ? fmt::format("{} bytes", bytes) : fmt::format("{} MiB", bytes >> 20);
}

std::string advice_for(const Readings& readings, const LinkReadings& links, const PairReadings& pair) {
  if (distance(readings, links, pair) == 3)
    return "look at the network between these two hosts: cables, ports, a route that is shared with others";
  if (links.is_device)
    return "nvidia-smi topo -m and nvidia-smi nvlink -s show the path and links that are down";
  return "look what else uses these two cores and the memory between them; numactl --hardware shows "
         "distances";
}

void add_slow(std::vector<Finding>& findings, const Readings& readings, const LinkReadings& links,
              std::vector<Slow> slow, std::int64_t bytes) {
  for (int rank = slow_rank(links, slow); rank >= 0; rank = slow_rank(links, slow)) {
    const auto worst =
        *std::find_if(slow.begin(), slow.end(), [&](const Slow& one) { return has(*one.pair, rank); });
    findings.push_back(
        {.about = "link",
         .ranks = {rank},
         .what = fmt::format("all links of rank {} are slow ({}): {} take {}, between others {}", rank,
                             links.executor, bytes_text(bytes), shown_seconds(worst.seconds),
                             shown_seconds(worst.usual_seconds)),
         .advice = advice_for(readings, links, *worst.pair)});
    std::erase_if(slow, [&](const Slow& one) { return has(*one.pair, rank); });
  }
  for (const Slow& one : slow)
    findings.push_back(
        {.about = "link",
         .ranks = {one.pair->from, one.pair->to},
         .what = fmt::format("the link of ranks {} and {} is slow ({}): {} take {}, between others {} ({})",
                             one.pair->from, one.pair->to, links.executor, bytes_text(bytes),
                             shown_seconds(one.seconds), shown_seconds(one.usual_seconds),
                             times(one.seconds / one.usual_seconds - 1)),
         .advice = advice_for(readings, links, *one.pair)});
}

/// Adds findings about pairs of one host that are slower than any pair of one host should be.
void add_far_below(std::vector<Finding>& findings, const Readings& readings, const LinkReadings& links) {
  for (const PairReadings& pair : links.pairs) {
    if (distance(readings, links, pair) == 3 || pair.large_seconds.empty()) continue;
    const double latency = typical(pair.latency_seconds);
    const double rate = static_cast<double>(links.large_bytes) / typical(pair.large_seconds);
    if (links.is_device && rate < Limits::device_bytes_per_second)
      findings.push_back(
          {.weight = Finding::Weight::note,
           .about = "link",
           .ranks = {pair.from, pair.to},
           .what = fmt::format("GPUs {} and {} exchange {:.1f} GB/s ({})", pair.from, pair.to, rate * 1e-9,
                               links.executor),
           .advice = "it seems to go through the host's memory: nvidia-smi topo -p2p r shows why"});
    if (!links.is_device && (latency > Limits::host_seconds || rate < Limits::host_bytes_per_second))
      findings.push_back(
          {.about = "link",
           .ranks = {pair.from, pair.to},
           .what = fmt::format("ranks {} and {} of one host exchange 8 bytes in {} and {:.2f} GB/s ({})",
                               pair.from, pair.to, shown_seconds(latency), rate * 1e-9, links.executor),
           .advice = "shared memory is faster: does an OMPI_MCA_... or UCX_... variable turn it off?"});
  }
}

/// `links` without the pairs of the ranks in `late`, whose slowness explains slow messages.
LinkReadings without(const LinkReadings& links, const std::vector<int>& late) {
  LinkReadings rest = links;
  std::erase_if(rest.pairs, [&](const PairReadings& pair) {
    return std::any_of(late.begin(), late.end(), [&](int rank) { return has(pair, rank); });
  });
  return rest;
}

}  // namespace

std::vector<Finding> judge_links(const Readings& readings) {
  std::vector<Finding> findings;
  const bool crowded = is_crowded(readings);
  const std::vector<int> late = crowded ? std::vector<int>{} : late_ranks(readings);
  for (const LinkReadings& all : readings.links) {
    const LinkReadings links = all.is_device ? all : without(all, late);
    const std::vector<Slow> latency =
        slow_pairs(readings, links, &PairReadings::latency_seconds, Limits::small_message);
    std::vector<Slow> large =
        slow_pairs(readings, links, &PairReadings::large_seconds, Limits::large_message);
    std::erase_if(large, [&](const Slow& one) {  // the same pair is one finding
      return std::any_of(latency.begin(), latency.end(),
                         [&](const Slow& other) { return other.pair == one.pair; });
    });
    add_slow(findings, readings, links, latency, links.small_bytes);
    add_slow(findings, readings, links, large, links.large_bytes);
    if (!crowded && latency.empty() && large.empty()) add_far_below(findings, readings, links);
  }
  return findings;
}

}  // namespace baton::doctor
