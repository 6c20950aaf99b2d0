// SPDX-License-Identifier: Apache-2.0
// One line on a terminal that says how far a run is.
#pragma once

#include <string>

namespace baton {

class Progress {
 public:
  /// Silent where `is_speaker` is false or standard error is no terminal.
  Progress(bool is_speaker, int cases);

  /// A case begins.
  void enter(const std::string& case_name);
  /// Takes the line away, so that something else can be printed.
  void clear() const;

 private:
  bool speaks_;
  int cases_;
  int entered_ = 0;
};

}  // namespace baton
