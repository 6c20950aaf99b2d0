// SPDX-License-Identifier: Apache-2.0
// What leaves the process: files and the standard streams. Files are checked before anything runs,
// and are written so that nothing that stands in them is lost.
#pragma once

#include <string>
#include <vector>

namespace baton {

/// A file and the flag that names it.
struct NamedFile {
  std::string flag;
  std::string path;
};

/// Throws UsageError, one line with the flag, if one of `outputs` cannot be written or is neither a
/// regular file nor /dev/null, or if it is the same file as another output or as one of `inputs`,
/// whatever their links and spellings. Never waits for a pipe's reader. Ignores empty paths, and
/// leaves no new file behind.
void require_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

/// Replaces the content of `path` by `text`, or leaves it as it was and throws SystemError: the
/// text is written to another file of the same folder, which then takes the name.
void write_text(const std::string& path, const std::string& text);

/// A file of JSON lines that only grows.
class Journal {
 public:
  /// Opens `path` to be appended to; an empty path stands for no file. Throws UsageError if the
  /// file cannot be appended to.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Appends one line, in a line of its own even if a crash left half of one before it. In an empty
  /// file it stands below the line `heading`, if there is one. Throws SystemError if the whole line
  /// cannot be written, and then takes back the part that was; or if the file was deleted or
  /// replaced meanwhile. An empty file that is gone is made anew: a bench that starts removes the
  /// file of its trial, and nothing is lost with it.
  void append(const std::string& line, const std::string& heading = {});

 private:
  /// Opens the file. Returns the reason why it cannot be appended to; empty if it can.
  std::string open_file();
  /// Appends unless `path_` leads to another file by now, or to none; false if it does.
  bool append_in_place(const std::string& line, const std::string& heading);

  std::string path_;
  int file_ = -1;
};

/// Opens /dev/null in place of standard streams that are closed, so that no file gets their
/// numbers. Turns the signals of closed pipes and full disks into errors. To be called first in
/// main.
void keep_streams_open();

/// True if a part of the standard output so far was lost.
bool has_lost_output();
/// Throws SystemError if a part of the standard output so far was lost.
void require_output();

/// True if the reader of the standard output has left, as `head` does.
bool reader_left();

}  // namespace baton
