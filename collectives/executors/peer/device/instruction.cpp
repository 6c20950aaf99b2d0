// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/peer/device/instruction.hpp"

#include <algorithm>

#include "collectives/executors/cuda/matrices.hpp"

namespace baton {
namespace {

std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t line = 256;
  return (bytes + line - 1) / line * line;
}

bool is_aligned(const PeerDeviceInstruction& in) {
  const auto lies = [](const float* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  return lies(in.from) && lies(in.other) && std::all_of(in.keep, in.keep + in.kept, lies) &&
         std::all_of(in.results, in.results + in.resulting, lies);
}

PeerForm form_of(const PeerDeviceInstruction& in, int packet_elements) {
  const auto E = static_cast<unsigned>(packet_elements);
  const bool arrives = in.arrival != nullptr;
  if (in.share > 0) return PeerForm::product;
  const bool aligned = in.whole && in.count % E == 0 && in.kept <= 1 && in.resulting == 0 &&
                       (in.sent <= 1 || (!arrives && !in.folds));
  const bool folds_plainly = in.row % E == 0 && in.before % E == 0 && in.other != nullptr &&
                             in.decay_arrival == nullptr && !in.x_is_later && in.sends_y == 1;
  if (!aligned || (in.folds && !folds_plainly)) return PeerForm::any;
  if (in.folds) return arrives ? PeerForm::aligned_arrival_fold : PeerForm::aligned_load_fold;
  return arrives ? PeerForm::aligned_arrival : PeerForm::aligned_load;
}

/// Turns slices and messages into addresses.
class Resolver {
 public:
  Resolver(const PeerProgram& program, const PeerContext& context, std::span<std::byte* const> heaps,
           std::int64_t threads, const std::function<float*(const Slice&)>& address)
      : program_(program), context_(context), heaps_(heaps), threads_(threads), address_(address) {}

  PeerDeviceInstruction operator()(const PeerInstruction& from) const {
    PeerDeviceInstruction into{};
    into.from = address_(from.from);
    into.count = static_cast<unsigned>(from.count);
    into.packets = static_cast<unsigned>(from.packets(program_.packet_elements));
    into.column = static_cast<unsigned>((from.column % threads_ + threads_) % threads_);
    into.step = from.steps[0];
    into.barrier = from.barrier;
    if (from.arrival) {
      into.arrival = slot(context_.rank, *from.arrival);
      into.arrival_peer = from.arrival->peer;
    }
    if (from.fold) add_fold(into, *from.fold);
    for (const Slice& slice : from.keep) into.keep[into.kept++] = address_(slice);
    for (const Slice& slice : from.results) into.results[into.resulting++] = address_(slice);
    for (const PeerSend& send : from.sends) {
      into.sends_y |= static_cast<unsigned char>(send.folded << into.sent);
      into.sends[into.sent++] = slot(send.to.peer, send.to);
    }
    into.whole = is_aligned(into);
    into.form = form_of(into, program_.packet_elements);
    return into;
  }

 private:
  void add_fold(PeerDeviceInstruction& into, const PeerFold& fold) const {
    into.folds = true;
    into.x_is_later = fold.x_is_later;
    into.other = address_(fold.other);
    into.decay = address_(fold.decay);
    if (fold.multiplies()) return add_product(into, fold.by);
    into.row = static_cast<unsigned>(fold.row());
    into.before = static_cast<unsigned>(fold.before());
    if (!fold.arrived) return;
    into.decay_arrival = slot(context_.rank, fold.arrived->from);
    into.decay_peer = fold.arrived->from.peer;
    into.first_decay = static_cast<unsigned>(fold.arrived->first);
    into.clears_decays = fold.arrived->clears;
  }

  static void add_product(PeerDeviceInstruction& into, const Combine& by) {
    into.row = static_cast<unsigned>(by.row);
    into.before = static_cast<unsigned>(by.form.first);
    into.share = static_cast<unsigned>(by.form.share);
    into.transposed = by.form.transposed;
    into.width = tensor_width({into.decay, into.row, into.share, into.before, into.transposed});
    // The interpreter's first tile begins with the slice, so it lies in one head only if a tile of
    // the head begins there.
    if (into.width > 0 && into.before % tile_rows(into.row, into.width) != 0) into.width = 0;
    into.tile = tile_rows(into.row, into.width) * into.row;
  }

  std::byte* slot(int rank, const PeerMessage& message) const {
    return heaps_[rank] + inbox_offset(context_) + message.packet * packet_bytes;
  }

  const PeerProgram& program_;
  const PeerContext& context_;
  std::span<std::byte* const> heaps_;
  std::int64_t threads_;
  const std::function<float*(const Slice&)>& address_;
};

}  // namespace

std::size_t inbox_offset(const PeerContext& context) {
  return rounded(static_cast<std::size_t>(context.ranks) * heap_flag_words * sizeof(unsigned));
}

std::size_t heap_bytes(const PeerContext& context) {
  return inbox_offset(context) + generations * context.generation_bytes;
}

std::size_t allocated_heap(std::size_t bytes) {
  std::size_t size = std::size_t{64} << 20;
  while (size < bytes) size *= 2;
  return size;
}

std::size_t allocated_heap(int ranks, std::int64_t packets) {
  PeerContext context;
  context.ranks = ranks;
  context.generation_bytes = generation_bytes(packets);
  return allocated_heap(heap_bytes(context));
}

std::size_t generation_bytes(std::int64_t packets) { return rounded(std::size_t(packets) * packet_bytes); }

std::vector<PeerDeviceInstruction> resolve(const PeerProgram& program, const LaunchOperation& operation,
                                           const PeerContext& context, std::span<std::byte* const> heaps,
                                           std::int64_t threads,
                                           const std::function<float*(const Slice&)>& address) {
  const Resolver resolver(program, context, heaps, threads, address);
  std::vector<PeerDeviceInstruction> resolved;
  for (int i = operation.first; i < operation.last; ++i)
    resolved.push_back(resolver(program.instructions[i]));
  return resolved;
}

KernelRole role_of(const PeerProgram& program, std::size_t operation) {
  KernelRole role;
  for (const PeerInstruction& instruction : program.instructions) {
    if (instruction.arrival) role.senders |= bit_of(instruction.arrival->peer);
    if (instruction.fold && instruction.fold->arrived)
      role.senders |= bit_of(instruction.fold->arrived->from.peer);
  }
  const LaunchOperation& own = program.operations[operation];
  for (int i = own.first; i < own.last; ++i)
    for (const PeerSend& send : program.instructions[i].sends) role.receivers |= bit_of(send.to.peer);
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (program.operations[i].computes) continue;
    if (i < operation) role.opens = false;
    if (i > operation) role.closes = false;
  }
  return role;
}

bool multiplies(const PeerProgram& program, const LaunchOperation& operation) {
  return std::any_of(program.instructions.begin() + operation.first,
                     program.instructions.begin() + operation.last,
                     [](const PeerInstruction& instruction) { return instruction.multiplies(); });
}

unsigned peer_threads(std::int64_t packets, unsigned ctas, unsigned most) {
  const std::int64_t wanted = (packets + ctas - 1) / ctas;
  return static_cast<unsigned>(std::clamp<std::int64_t>((wanted + 31) / 32 * 32, 64, most));
}

}  // namespace baton
