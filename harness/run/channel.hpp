// SPDX-License-Identifier: Apache-2.0
// What passes between the process that prints a run and the ranks of a launch: a plan for the
// ranks, and a message for each thing that they do. Both are lines of text.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "harness/process/output.hpp"
#include "harness/record/result.hpp"

namespace baton {

/// The work of one launch.
struct Plan {
  /// True if it is the last launch, which writes the files of --trace and --export.
  bool is_last = true;
  /// The indices of the cases that are to run, in their order.
  std::vector<int> cases;

  std::string line() const;
  static Plan of_line(const std::string& line);
};

/// All ranks of the launch have found one another.
struct RanksMet {};
/// A case begins.
struct CaseBegins {
  int index = 0;
};
/// A case has ended.
struct CaseEnds {
  int index = 0;
  Result result;
};
/// A text that a launch has to say of the machine, or of files that it left.
struct Notice {
  /// The subject. Above the table only the first notice of a subject is printed.
  std::string about;
  std::string text;
};

using Message = std::variant<RanksMet, CaseBegins, CaseEnds, Notice>;

/// Takes a message of rank 0.
using TakeMessage = std::function<void(const Message&)>;

/// The files by which a launch that a bench started gets its plan and sends its messages. They
/// outlive a crash of the ranks. Every rank may add a Report of a failure to the messages.
class Channel {
 public:
  /// Uses the files of `folder`. The process that starts the launches makes them.
  explicit Channel(const std::string& folder);

  const std::string& messages_path() const { return messages_path_; }

  void write_plan(const Plan& plan) const;
  Plan read_plan() const;

  /// Appends a message. Throws SystemError if that fails.
  void send(const Message& message);
  /// Hands all messages that have been sent since the last call to `take`, and returns their
  /// number. A line that a crash cut off is none. Throws SystemError if the file cannot be read.
  int receive(const TakeMessage& take);

 private:
  std::string plan_path_, messages_path_;
  std::unique_ptr<Journal> file_;  // opened by the first message
  std::size_t read_bytes_ = 0;     // of the messages, whole lines
};

}  // namespace baton
