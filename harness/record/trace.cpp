// SPDX-License-Identifier: Apache-2.0
// Chrome's trace event format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// Messages are spans ("X") in rows of their own and not asynchronous events, since arrows bind to
// spans only.
#include "harness/record/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/schedule/listing.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

/// The kinds of rows of a rank, from top to bottom.
constexpr std::array row_names{"compute", "copies and combines", "natives", "sends", "receives"};

std::size_t row_of(Verb verb) {
  switch (verb) {
    case Verb::compute: return 0;
    case Verb::copy:
    case Verb::combine: return 1;
    case Verb::native: return 2;
    case Verb::send: return 3;
    case Verb::recv: return 4;
  }
  return 0;
}

/// One step as it is drawn. Times in nanoseconds.
struct Span {
  int rank = 0;
  int step = 0;
  int number = 0;  // among the steps of all ranks
  std::int64_t posted = 0;
  std::int64_t start = 0;
  std::int64_t finish = 0;
  int thread = 0;  // its row on its rank
};

std::int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }
double microseconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e3; }

/// Collects the events of one trace.
class TraceWriter {
 public:
  TraceWriter(std::span<const Schedule> schedules, std::span<const StepTime> times)
      : schedules_(schedules), matching_("trace", schedules), span_of_(matching_.steps(), -1) {
    take(times);
    for (std::size_t first = 0, last = 0; first < spans_.size(); first = last) {
      while (last < spans_.size() && spans_[last].rank == spans_[first].rank) ++last;
      add_rank({spans_.begin() + first, spans_.begin() + last});
    }
    for (const Span& span : spans_) add_span(span);
    for (const Span& span : spans_)
      if (step(span).verb == Verb::send) add_arrow(span);
  }

  Json events() && { return std::move(events_); }

 private:
  const Step& step(const Span& span) const { return schedules_[span.rank].steps()[span.step]; }
  /// The span of a message's other end, or null.
  const Span* partner(const Span& span) const {
    const int partner = matching_.partner(span.number);
    return partner < 0 || span_of_[partner] < 0 ? nullptr : &spans_[span_of_[partner]];
  }

  void take(std::span<const StepTime> times);
  void add_rank(std::span<Span> spans);
  void add_row(int rank, int thread, const std::string& name);
  void add_span(const Span& span);
  void add_arrow(const Span& send);
  void add_metadata(const char* name, int rank, int thread, Json arguments);
  Json arguments(const Span& span) const;

  std::span<const Schedule> schedules_;
  Matching matching_;
  std::vector<Span> spans_;   // by rank and start
  std::vector<int> span_of_;  // the index of a step's span, by its number
  Json events_ = Json::array();
};

void TraceWriter::take(std::span<const StepTime> times) {
  // When the message of each receive began.
  std::vector<std::int64_t> sent(matching_.steps(), INT64_MIN);
  for (const StepTime& time : times) {
    const int number = matching_.number(time.rank, time.step);
    const std::int64_t start = nanoseconds(time.start_seconds);
    // At least a nanosecond: arrows bind to nothing shorter.
    const std::int64_t finish = std::max(nanoseconds(time.finish_seconds), start + 1);
    spans_.push_back({time.rank, time.step, number, start, start, finish});
    if (step(spans_.back()).verb == Verb::send) sent[matching_.partner(number)] = start;
  }
  for (Span& span : spans_) span.start = std::clamp(sent[span.number], span.start, span.finish - 1);
  const auto place = [](const Span& span) { return std::tuple(span.rank, span.start, span.step); };
  std::sort(spans_.begin(), spans_.end(), [&](const Span& a, const Span& b) { return place(a) < place(b); });
  for (std::size_t i = 0; i < spans_.size(); ++i) span_of_[spans_[i].number] = static_cast<int>(i);
}

/// Assigns each span a row: the first of its kind that is free when the span starts.
void TraceWriter::add_rank(std::span<Span> spans) {
  const int rank = spans.front().rank;
  add_metadata("process_name", rank, 0, {{"name", fmt::format("rank {}", rank)}});
  add_metadata("process_sort_index", rank, 0, {{"sort_index", rank}});
  int threads = 0;
  for (std::size_t row = 0; row < row_names.size(); ++row) {
    std::vector<std::int64_t> busy_until;
    for (Span& span : spans) {
      if (row_of(step(span).verb) != row) continue;
      const auto free = std::find_if(busy_until.begin(), busy_until.end(),
                                     [&](std::int64_t until) { return until <= span.start; });
      const auto lane = free - busy_until.begin();
      if (free == busy_until.end()) {
        busy_until.push_back(0);
        add_row(rank, threads + static_cast<int>(lane),
                lane == 0 ? row_names[row] : fmt::format("{} {}", row_names[row], lane + 1));
      }
      busy_until[lane] = span.finish;
      span.thread = threads + static_cast<int>(lane);
    }
    threads += static_cast<int>(busy_until.size());
  }
}

void TraceWriter::add_row(int rank, int thread, const std::string& name) {
  add_metadata("thread_name", rank, thread, {{"name", name}});
  add_metadata("thread_sort_index", rank, thread, {{"sort_index", thread}});
}

void TraceWriter::add_metadata(const char* name, int rank, int thread, Json arguments) {
  events_.push_back(
      {{"ph", "M"}, {"name", name}, {"pid", rank}, {"tid", thread}, {"args", std::move(arguments)}});
}

std::string size_text(std::int64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  if (bytes >= 1 << 10) return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / (1 << 10));
  return fmt::format("{} B", bytes);
}

std::int64_t total_bytes(const std::vector<Slice>& slices) {
  std::int64_t bytes = 0;
  for (const Slice& slice : slices) bytes += slice.bytes();
  return bytes;
}

std::string name_of(const Schedule& schedule, const Step& step) {
  switch (step.verb) {
    case Verb::send:
      return fmt::format("send #{} -> {}, {}", step.sequence, step.peer, size_text(step.reads[0].bytes()));
    case Verb::recv:
      return fmt::format("recv #{} <- {}, {}", step.sequence, step.peer, size_text(step.writes[0].bytes()));
    case Verb::compute: return schedule.kernels()[step.body].name;
    case Verb::native: return schedule.natives()[step.body].name;
    default: return to_string(step.verb);
  }
}

Json TraceWriter::arguments(const Span& span) const {
  const Schedule& schedule = schedules_[span.rank];
  const Step& step = this->step(span);
  Json json{{"step", span.step}, {"source", where(step)}};
  const std::string& region = schedule.regions()[step.region];
  if (!region.empty()) json["region"] = region;
  if (!step.writes.empty()) json["writes"] = text(schedule, step.writes);
  if (!step.reads.empty()) json["reads"] = text(schedule, step.reads);
  json["bytes"] = total_bytes(step.verb == Verb::send ? step.reads : step.writes);
  if (step.verb == Verb::compute) {
    json["bytes"] = schedule.kernels()[step.body].bytes;
    json["flops"] = schedule.kernels()[step.body].flops;
  }
  if (step.verb == Verb::recv) json["posted"] = microseconds(span.posted);
  return json;
}

void TraceWriter::add_span(const Span& span) {
  events_.push_back({{"ph", "X"},
                     {"cat", to_string(step(span).verb)},
                     {"name", name_of(schedules_[span.rank], step(span))},
                     {"pid", span.rank},
                     {"tid", span.thread},
                     {"ts", microseconds(span.start)},
                     {"dur", microseconds(span.finish - span.start)},
                     {"args", arguments(span)}});
}

/// Adds the arrow of a message, from the start of the send to the last nanosecond of the receive:
/// an arrow's ends lie within spans.
void TraceWriter::add_arrow(const Span& send) {
  const Span* receive = partner(send);
  if (receive == nullptr) return;
  const auto end = [&](const char* phase, const Span& span, std::int64_t time) {
    return Json{{"ph", phase},      {"cat", "message"},   {"name", "message"},       {"id", send.number},
                {"pid", span.rank}, {"tid", span.thread}, {"ts", microseconds(time)}};
  };
  events_.push_back(end("s", send, send.start));
  events_.push_back(end("f", *receive, receive->finish - 1));
  events_.back()["bp"] = "e";  // binds to the span around it, not to the next one
}

}  // namespace

std::string chrome_trace(std::span<const Schedule> schedules, std::span<const StepTime> times,
                         const TraceTitle& title) {
  const Json trace{{"traceEvents", TraceWriter(schedules, times).events()},
                   {"displayTimeUnit", "ns"},
                   {"otherData",
                    {{"case", title.case_name},
                     {"executor", title.executor},
                     {"ranks", schedules.size()},
                     {"blocks", title.blocks},
                     {"rounds", 1},
                     {"commit", title.commit}}}};
  return trace.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace baton
