// SPDX-License-Identifier: Apache-2.0
#include "collectives/simulator/simulate.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

constexpr std::int32_t ready_mark = -1;

}  // namespace

LinkLimits::LinkLimits(const Topology& machine)
    : topology(machine),
      intra_node(machine.intra_node.limit()),
      inter_node(machine.inter_node.limit()),
      spine(machine.spine ? machine.spine->limit() : inter_node) {}

const LinkLimit& LinkLimits::of(int from, int to) const {
  const LinkModel& link = topology.link(from, to);
  return &link == &topology.intra_node ? intra_node : &link == &topology.inter_node ? inter_node : spine;
}

EventLoop::EventLoop(const ScheduleSource& source, std::vector<std::shared_ptr<const Program>> programs,
                     const Topology& topology, bool with_timeline)
    : source_(source),
      programs_(std::move(programs)),
      network_(topology, static_cast<int>(programs_.size())),
      round_seconds_(topology.round_seconds),
      defers_(topology.intra_node.moved_by == Transport::engine),
      streams_(topology.streams),
      groups_(topology.groups),
      with_timeline_(with_timeline),
      limits_(topology),
      under_way_(programs_.size()),
      deferred_(programs_.size()) {
  for (const auto& program : programs_) {
    first_.push_back(unfinished_);
    unfinished_ += static_cast<std::int64_t>(program->tasks().size());
    result_.steps += program->steps();
  }
  waits_.reserve(unfinished_);
  for (const auto& program : programs_)
    waits_.insert(waits_.end(), program->graph().blockers().begin(), program->graph().blockers().end());
  depth_.resize(unfinished_);
  if (static_cast<int>(programs_.size()) > topology.ranks_per_node) chain_seconds_.resize(unfinished_);
  for (auto& ranks : wire_seconds_) ranks.resize(programs_.size());
  if (streams_) tail_.resize(unfinished_);
  result_.rank_seconds.resize(programs_.size());
}

Simulation EventLoop::run() {
  now_ = round_seconds_;
  for (int rank = 0; rank < static_cast<int>(programs_.size()); ++rank)
    for (int i = 0; i < programs_[rank]->graph().size(); ++i)
      if (programs_[rank]->graph().blockers()[i] == 0) make_ready(rank, i);
  start_ready();
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.seconds;
    happen(event);
    if (events_.empty() || events_.top().seconds > now_) start_ready();
  }
  if (unfinished_ > 0) report_deadlock();
  return outcome();
}

void EventLoop::push(double seconds, What what, int rank, int index) {
  events_.push({seconds, orders_++, rank, index, what});
}

void EventLoop::happen(const Event& event) {
  switch (event.what) {
    case What::reaches_server: return pass_stage(event.index);
    case What::has_head: return has_head(event.rank, event.index);
    case What::finishes: return finish(event.rank, event.index);
  }
}

void EventLoop::make_ready(int rank, int index) {
  const Task& step = task(rank, index);
  waits_[number(rank, index)] = ready_mark;
  if (programs_[rank]->is_join(index)) return pass_join(rank, index);
  if (step.is_message()) return make_message_ready(rank, index);
  if (step.verb == Verb::native) return make_native_ready(rank, index);
  if (!defers_ || step.feeds_message || step.verb == Verb::compute)
    return start_soon(local_step(rank, index));
  deferred_[rank].push_back(index);
  idle_.push_back(rank);
}

/// Begins a join, since all that it waits for have begun, or ended, as its kind asks.
void EventLoop::pass_join(int rank, int index) {
  if (const double launch = task(rank, index).seconds; launch > 0)
    return push(now_ + launch, What::finishes, rank, index);
  --unfinished_;
  if (is_streamed(task(rank, index))) return has_head(rank, index);
  for (int after : programs_[rank]->graph().waiters(index)) release(rank, index, after);
}

void EventLoop::make_message_ready(int rank, int index) {
  const Task& step = task(rank, index);
  ++under_way_[rank];
  const int peer = rank + step.peer_offset;
  const bool sends = step.verb == Verb::send;
  const int partner =
      programs_[peer]->find_message(sends ? Verb::recv : Verb::send, -step.peer_offset, step.sequence);
  if (waits_[number(peer, partner)] != ready_mark) return;
  if (sends) return start_message(rank, index, peer, partner);
  start_message(peer, partner, rank, index);
}

/// Starts a native on all ranks once the last of them has come to it.
void EventLoop::make_native_ready(int rank, int index) {
  std::vector<Transfer>& there = gathering_[task(rank, index).sequence];
  there.push_back(local_step(rank, index));
  if (there.size() == programs_.size())
    for (const Transfer& native : there) start_soon(native);
}

void EventLoop::start_message(int from, int send, int to, int recv) {
  auto& depth = depth_[number(from, send)];
  depth = depth_[number(to, recv)] = std::max(depth, depth_[number(to, recv)]) + 1;
  ++result_.messages;
  count_link(from, send, to, recv);
  const Task &sent = task(from, send), &received = task(to, recv);
  start_soon({from, send, to, recv, network_.route(from, to, sent.bytes, sent.seconds, received.seconds)});
}

void EventLoop::count_link(int from, int send, int to, int recv) {
  const LinkLimit& limit = limits_.of(from, to);
  const bool is_between = limits_.topology.node_of(from) != limits_.topology.node_of(to);
  wire_seconds_[is_between ? 1 : 0][from] +=
      static_cast<double>(task(from, send).bytes) / limit.bytes_per_second;
  if (chain_seconds_.empty()) return;
  float& chain = chain_seconds_[number(from, send)];
  float& other = chain_seconds_[number(to, recv)];
  chain = other = std::max(chain, other) + static_cast<float>(limit.alpha_seconds);
}

double EventLoop::bound_seconds() const {
  double busy = 0;
  for (const auto& ranks : wire_seconds_)
    busy = std::max(busy, *std::max_element(ranks.begin(), ranks.end()));
  for (const auto& program : programs_) busy = std::max(busy, program->matrix_seconds());
  const double chain = chain_seconds_.empty()
                           ? result_.hops * limits_.intra_node.alpha_seconds
                           : *std::max_element(chain_seconds_.begin(), chain_seconds_.end());
  return chain + busy;
}

void EventLoop::start_soon(const Transfer& transfer) {
  ready_.emplace_back(number(transfer.from, transfer.send), keep(transfer));
}

void EventLoop::start_ready() {
  std::sort(ready_.begin(), ready_.end());
  for (const auto& [_, transfer] : ready_) start(transfer);
  ready_.clear();
  for (int rank : idle_) run_deferred(rank);
  idle_.clear();
}

/// Keeps a transfer until it has ended, and returns its index.
int EventLoop::keep(const Transfer& transfer) {
  if (free_transfers_.empty()) {
    free_transfers_.push_back(static_cast<int>(transfers_.size()));
    transfers_.emplace_back();
  }
  const int index = free_transfers_.back();
  free_transfers_.pop_back();
  transfers_[index] = transfer;
  return index;
}

void EventLoop::start(int index) {
  Transfer& transfer = transfers_[index];
  if (streams_)
    transfer.reached_until =
        std::max(tail_[number(transfer.from, transfer.send)], tail_[number(transfer.to, transfer.recv)]);
  pass_stage(index);
}

void EventLoop::pass_stage(int index) {
  Transfer& transfer = transfers_[index];
  const Route::Stage& stage = transfer.route.stage[transfer.stage];
  const double start = network_.occupy(stage.server, now_, stage.service_seconds);
  const double end = std::max(transfer.reached_until + stage.latency_seconds, start + stage.service_seconds);
  transfer.reached_until = end;
  if (transfer.stage == 0) transfer.started = start;
  if (transfer.stage == 0 && transfer.is_message()) {
    note(transfer.from, transfer.send, start, end);
    pass_on(transfer.from, transfer.send, start, end);
  }
  if (++transfer.stage < transfer.route.stages)
    return push(start + transfer.route.stage[transfer.stage].latency_seconds, What::reaches_server, -1,
                index);
  note(transfer.to, transfer.recv, transfer.is_message() ? start : transfer.started, end);
  pass_on(transfer.to, transfer.recv, start + transfer.route.head_seconds, end);
  free_transfers_.push_back(index);
}

void EventLoop::pass_on(int rank, int index, double head, double end) {
  if (is_streamed(task(rank, index))) {
    tail_[number(rank, index)] = end;
    push(head, What::has_head, rank, index);
  }
  push(end, What::finishes, rank, index);
}

EventLoop::Transfer EventLoop::local_step(int rank, int index) const {
  const Task& step = task(rank, index);
  return {rank, index, rank, index, network_.local_route(rank, step.verb, step.seconds, step.node_seconds)};
}

void EventLoop::has_head(int rank, int index) {
  for (int after : programs_[rank]->graph().waiters(index)) {
    if (!is_streamed(task(rank, after))) continue;
    double& tail = tail_[number(rank, after)];
    tail = std::max(tail, tail_[number(rank, index)]);
    release(rank, index, after);
  }
}

void EventLoop::release(int rank, int index, int after) {
  const std::int64_t n = number(rank, after), before = number(rank, index);
  const Program& program = *programs_[rank];
  // Messages of one group are no hops of one another, and steps wait for one another directly too.
  const bool is_chain = !groups_ || !(program.is_join(index) || program.is_join(after));
  if (is_chain) depth_[n] = std::max(depth_[n], depth_[before]);
  if (is_chain && !chain_seconds_.empty())
    chain_seconds_[n] = std::max(chain_seconds_[n], chain_seconds_[before]);
  if (--waits_[n] == 0) make_ready(rank, after);
}

void EventLoop::finish(int rank, int index) {
  --unfinished_;
  result_.rank_seconds[rank] = now_;
  if (task(rank, index).is_message()) --under_way_[rank];
  const bool is_passed_on = is_streamed(task(rank, index));
  for (int after : programs_[rank]->graph().waiters(index))
    if (!is_passed_on || !is_streamed(task(rank, after))) release(rank, index, after);
  if (!deferred_[rank].empty()) idle_.push_back(rank);
}

void EventLoop::run_deferred(int rank) {
  const int engine = network_.engine(rank);
  if (deferred_[rank].empty() || under_way_[rank] > 0 || network_.free_at(engine) > now_) return;
  const int index = deferred_[rank].front();
  deferred_[rank].pop_front();
  start(keep(local_step(rank, index)));
}

void EventLoop::note(int rank, int index, double start, double end) {
  if (with_timeline_) result_.timeline.push_back({rank, index, start, end});
}

Simulation EventLoop::outcome() {
  result_.seconds = round_seconds_;
  for (double& seconds : result_.rank_seconds) {
    seconds = std::max(seconds, round_seconds_);
    result_.seconds = std::max(result_.seconds, seconds);
  }
  for (const auto& program : programs_) result_.footprint = larger(result_.footprint, program->footprint());
  for (const auto& program : programs_) result_.rank_flops.push_back(program->flops());
  count_bytes();
  if (!depth_.empty()) result_.hops = *std::max_element(depth_.begin(), depth_.end());
  if (result_.messages > 0) result_.bound_seconds = bound_seconds();
  return std::move(result_);
}

void EventLoop::count_bytes() {
  if (result_.messages == 0) return;
  result_.least_message_bytes = std::numeric_limits<std::int64_t>::max();
  for (const auto& program : programs_) {
    result_.busiest_sent_bytes = std::max(result_.busiest_sent_bytes, program->sent_bytes());
    result_.least_message_bytes = std::min(result_.least_message_bytes, program->least_message_bytes());
    result_.most_message_bytes = std::max(result_.most_message_bytes, program->most_message_bytes());
  }
}

void EventLoop::report_deadlock() const {
  for (int rank = 0; rank < static_cast<int>(programs_.size()); ++rank)
    for (int i = 0; i < static_cast<int>(programs_[rank]->tasks().size()); ++i)
      if (task(rank, i).is_message() && waits_[number(rank, i)] == ready_mark)
        throw ScheduleError("deadlock: " + name_of(source_.name, source_.build(rank), i) +
                            " waits for the other end of its message, which never starts");
  throw ScheduleError("deadlock: " + source_.name + ": steps that wait for one another");
}

Simulation simulate(const ScheduleSource& source, const Topology& topology, bool with_timeline) {
  return EventLoop(source, compile(source, topology), topology, with_timeline).run();
}

}  // namespace baton
