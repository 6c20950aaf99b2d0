// SPDX-License-Identifier: Apache-2.0
// Fork, operations, join.
#include <algorithm>
#include <utility>

#include "collectives/executors/cuda/error.cuh"
#include "collectives/executors/cuda/two_streams.cuh"

namespace baton {
namespace {

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

/// The mark before an operation; the one behind it is the next. Mark 0 is the round's start.
int first_mark(std::size_t operation) { return 1 + 2 * static_cast<int>(operation); }

}  // namespace

TwoStreams::TwoStreams(std::vector<StreamedOperation> operations)
    : operations_(std::move(operations)), done_(operations_.size()) {
  for (const StreamedOperation& operation : operations_)
    if (operation.waits_for >= 0 && done_[operation.waits_for] == nullptr)
      done_[operation.waits_for] = new_event();
  if (std::none_of(operations_.begin(), operations_.end(),
                   [](auto& operation) { return operation.computes; }))
    return;
  cuda(cudaStreamCreateWithFlags(&beside_, cudaStreamNonBlocking));
  forked_ = new_event();
  joined_ = new_event();
}

TwoStreams::~TwoStreams() {
  for (cudaEvent_t event : done_)
    if (event != nullptr) cudaEventDestroy(event);
  if (beside_ == nullptr) return;
  cudaEventDestroy(forked_);
  cudaEventDestroy(joined_);
  cudaStreamDestroy(beside_);
}

void TwoStreams::enqueue(cudaStream_t stream, const Enqueue& enqueue_one, Stopwatch* marks) const {
  if (marks != nullptr) marks->mark(0, stream);
  if (beside_ != nullptr) {
    cuda(cudaEventRecord(forked_, stream));
    cuda(cudaStreamWaitEvent(beside_, forked_));
  }
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const cudaStream_t into = operations_[i].computes ? beside_ : stream;
    if (operations_[i].waits_for >= 0) cuda(cudaStreamWaitEvent(into, done_[operations_[i].waits_for]));
    if (marks != nullptr) marks->mark(first_mark(i), into);
    enqueue_one(i, into);
    if (marks != nullptr) marks->mark(first_mark(i) + 1, into);
    if (done_[i] != nullptr) cuda(cudaEventRecord(done_[i], into));
  }
  if (beside_ == nullptr) return;
  cuda(cudaEventRecord(joined_, beside_));
  cuda(cudaStreamWaitEvent(stream, joined_));
}

double TwoStreams::start_seconds(const Stopwatch& marks, std::size_t operation) {
  return marks.seconds(0, first_mark(operation));
}

double TwoStreams::finish_seconds(const Stopwatch& marks, std::size_t operation) {
  return marks.seconds(0, first_mark(operation) + 1);
}

}  // namespace baton
