// SPDX-License-Identifier: Apache-2.0
#include "harness/cases/collective_workload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/cases/verify.hpp"

namespace baton {
namespace {

class CollectiveWorkload : public Workload {
 public:
  CollectiveWorkload(const Collective& collective, const Shape& shape, Direction direction)
      : collective_(collective), shape_(shape), direction_(direction) {}

  std::string name() const override { return collective_.name; }
  AxisValues axes() const override {
    return {{"bench", "collective", in_record_alone},
            {"name", collective_.name, in_name},
            {"kind", to_string(collective_.kind)},
            {"direction", to_string(direction_)},
            {"heads", shape_.heads},
            {"d_k", shape_.d_k},
            {"d_v", shape_.d_v},
            {"tokens", shape_.tokens},
            {"map", to_string(shape_.map)}};
  }
  MapKind map() const override { return shape_.map; }
  std::int64_t state_bytes() const override { return shape_.state_bytes(); }
  std::int64_t state_rows() const override { return shape_.rows(); }
  bool cuts_blocks() const override { return collective_.cuts_blocks; }

  std::string native() const override {
    if (shape_.map == MapKind::diagonal) return Workload::native();
    Shape diagonal = shape_;
    diagonal.map = MapKind::diagonal;
    return CollectiveWorkload(collective_, diagonal, direction_).native();
  }
  Refusal unsupported(int ranks) const override;
  Schedule build_rank(int rank, const Split& split) const override {
    return baton::build(collective_, shape_, rank, directed(split));
  }
  std::optional<Cost> claim(const Split& split) const override {
    return collective_.claim(shape_, directed(split));
  }

  void load(Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
            Oracles& oracles) const override {
    write_inputs(executor, subject(schedules, seed), &oracles);
  }
  Comparison compare(const Executor& executor, const std::vector<Schedule>& schedules, std::uint64_t seed,
                     Oracles& oracles) const override {
    return baton::compare(executor, subject(schedules, seed), &oracles);
  }

  std::shared_ptr<const Workload> reduced(int) const override {
    Shape small{.heads = 2, .d_k = 32, .d_v = 4, .tokens = 8};
    if (shape_.map != MapKind::diagonal)  // each rank can own a head
      small = {.heads = 18, .d_k = 8, .d_v = 6, .tokens = 8, .map = shape_.map};
    return collective_workload(collective_, small, direction_);
  }

  std::shared_ptr<const Workload> with_twice_the_values() const override {
    Shape twice = shape_;
    twice.d_v *= 2;
    return moves_tokens(collective_.kind) ? nullptr : collective_workload(collective_, twice, direction_);
  }

  double payload_bytes(int ranks) const override;
  double port_bytes(int ranks) const override;

 private:
  Split directed(Split split) const {
    split.direction = direction_;
    return split;
  }
  Subject subject(const std::vector<Schedule>& schedules, std::uint64_t seed) const {
    return {collective_.kind, shape_, static_cast<int>(schedules.size()), direction_, seed};
  }

  const Collective& collective_;
  Shape shape_;
  Direction direction_;
};

Refusal CollectiveWorkload::unsupported(int) const {
  const bool is_diagonal = shape_.map == MapKind::diagonal || collective_.kind != Kind::exclusive_scan;
  const bool takes_it = is_diagonal || collective_.native_takes_all_maps;
  return takes_it || native().empty() ? Refusal{} : Refusal{"its native takes diagonal maps alone"};
}

double CollectiveWorkload::payload_bytes(int ranks) const {
  switch (collective_.kind) {
    case Kind::exclusive_scan: return static_cast<double>(shape_.state_bytes());
    case Kind::all_gather:
    case Kind::reduce_scatter: return static_cast<double>(ranks * shape_.map_elements() * element_bytes);
    case Kind::exchange:
      return static_cast<double>((ranks - 1) * shape_.key_value_elements() * element_bytes);
    case Kind::all_to_all: return static_cast<double>(ranks * shape_.block_elements(ranks) * element_bytes);
    case Kind::to_zigzag: return static_cast<double>(2 * shape_.piece_elements() * element_bytes);
  }
  return 0;
}

double CollectiveWorkload::port_bytes(int ranks) const {
  // Of two ranks each keeps one of its two pieces; of more, some rank keeps none.
  if (collective_.kind == Kind::to_zigzag) return payload_bytes(ranks) * std::min(ranks - 1, 2) / 2;
  const bool moves_all = collective_.kind == Kind::exclusive_scan || collective_.kind == Kind::exchange;
  if (!moves_all) return payload_bytes(ranks) * (ranks - 1) / ranks;
  return ranks > 1 ? payload_bytes(ranks) : 0;
}

}  // namespace

std::shared_ptr<const Workload> collective_workload(const Collective& collective, const Shape& shape,
                                                    Direction direction) {
  return std::make_shared<CollectiveWorkload>(collective, shape, direction);
}

}  // namespace baton
