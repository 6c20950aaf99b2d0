// SPDX-License-Identifier: Apache-2.0
// Execution traces of Chakra: one rank's schedule as protocol buffers, encoded by libprotobuf.
//
//   the global metadata, then a node for each step, each message behind its length
//   send and recv: COMM_SEND_NODE and COMM_RECV_NODE with size, source, destination and tag
//   copy, combine and compute: COMP_NODE with its operations and bytes
//   a node's data dependencies are the steps that it waits for
//
// Times are not in it: who reads the trace computes them. The field numbers below are facts of
// Chakra's schema, whose version is 0.0.4 (docs/decisions/0032-chakra-by-libprotobuf.md). Source:
// "Chakra", arXiv 2305.14516; https://github.com/mlcommons/chakra.
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>

#include "collectives/schedule/check.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/record/export.hpp"

namespace baton {
namespace {

using Stream = google::protobuf::io::CodedOutputStream;
using Wire = google::protobuf::internal::WireFormatLite;

struct Metadata {
  static constexpr int version = 1, attribute = 2;
};
struct Node {
  static constexpr int id = 1, name = 2, type = 3, data_dependency = 5, attribute = 10;
};
struct Attribute {
  static constexpr int name = 1, int32 = 7, int64 = 9, uint64 = 13, boolean = 27, text = 29;
};
struct NodeType {
  static constexpr int compute = 4, send = 5, recv = 6;
};

std::string encoded(const std::function<void(Stream&)>& write) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream into(&bytes);
    Stream stream(&into);
    write(stream);
  }
  return bytes;
}

/// A message behind its length, as a file of messages has it.
void append(std::string& file, const std::string& message) {
  file += encoded([&](Stream& stream) { stream.WriteVarint64(message.size()); }) + message;
}

/// An attribute of a node or of the metadata; `write` adds its value.
void write_attribute(Stream& stream, int field, const char* name, const std::function<void(Stream&)>& write) {
  Wire::WriteBytes(field, encoded([&](Stream& attribute) {
                     Wire::WriteString(Attribute::name, name, &attribute);
                     write(attribute);
                   }),
                   &stream);
}

void write_int32(Stream& node, const char* name, std::int32_t value) {
  write_attribute(node, Node::attribute, name,
                  [&](Stream& stream) { Wire::WriteInt32(Attribute::int32, value, &stream); });
}

void write_int64(Stream& node, const char* name, std::int64_t value) {
  write_attribute(node, Node::attribute, name,
                  [&](Stream& stream) { Wire::WriteInt64(Attribute::int64, value, &stream); });
}

void write_message(Stream& node, int rank, const Step& step) {
  const bool sends = step.verb == Verb::send;
  write_int64(node, "comm_size", (sends ? step.reads : step.writes).front().bytes());
  write_int32(node, "comm_src", sends ? rank : step.peer);
  write_int32(node, "comm_dst", sends ? step.peer : rank);
  write_int32(node, "comm_tag", step.sequence);
}

/// Operations and bytes of local work; a copy has no operations.
void write_work(Stream& node, const Schedule& schedule, const Step& step) {
  double flops = step.verb == Verb::combine ? step.combine_flops() : 0, bytes = 0;
  for (const auto* slices : {&step.reads, &step.writes})
    for (const Slice& slice : *slices) bytes += static_cast<double>(slice.bytes());
  if (step.verb == Verb::compute) {
    flops = schedule.kernels()[step.body].flops;
    bytes = schedule.kernels()[step.body].bytes;
  }
  write_int64(node, "num_ops", std::llround(flops));
  write_attribute(node, Node::attribute, "tensor_size", [&](Stream& stream) {
    Wire::WriteUInt64(Attribute::uint64, static_cast<std::uint64_t>(std::llround(bytes)), &stream);
  });
}

std::string node_of(const Schedule& schedule, int number) {
  const Step& step = schedule.steps()[number];
  const int type = step.verb == Verb::send   ? NodeType::send
                   : step.verb == Verb::recv ? NodeType::recv
                                             : NodeType::compute;
  const std::string name =
      step.verb == Verb::compute ? schedule.kernels()[step.body].name : to_string(step.verb);
  return encoded([&](Stream& node) {
    Wire::WriteUInt64(Node::id, static_cast<std::uint64_t>(number), &node);
    Wire::WriteString(Node::name, name, &node);
    Wire::WriteEnum(Node::type, type, &node);
    for (const int earlier : step.waits_for)
      Wire::WriteUInt64(Node::data_dependency, static_cast<std::uint64_t>(earlier), &node);
    write_attribute(node, Node::attribute, "is_cpu_op",
                    [](Stream& stream) { Wire::WriteBool(Attribute::boolean, false, &stream); });
    step.is_message() ? write_message(node, schedule.home_rank(), step) : write_work(node, schedule, step);
  });
}

std::string chakra_trace(const Schedule& schedule, const std::string& case_name) {
  if (!schedule.natives().empty())
    throw UsageError("--export chakra: " + schedule.natives().front().name +
                     " is a native, whose messages are not in its schedule");
  std::string file;
  append(file, encoded([&](Stream& metadata) {
           Wire::WriteString(Metadata::version, "0.0.4", &metadata);
           write_attribute(metadata, Metadata::attribute, "case",
                           [&](Stream& stream) { Wire::WriteString(Attribute::text, case_name, &stream); });
         }));
  for (std::size_t number = 0; number < schedule.steps().size(); ++number)
    append(file, node_of(schedule, static_cast<int>(number)));
  return file;
}

const RegisteredExportFormat registered{{
    .name = "chakra",
    .summary = "execution traces of Chakra",
    .suffix = ".et",
    .text = chakra_trace,
}};

}  // namespace
}  // namespace baton
