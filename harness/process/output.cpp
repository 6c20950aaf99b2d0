// SPDX-License-Identifier: Apache-2.0
#include "harness/process/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>

#include "collectives/schedule/errors.hpp"
#include "harness/machine/system.hpp"

namespace baton {
namespace {

constexpr mode_t new_file_mode = 0666;  // less the user's umask

/// The reason of the last failure of a system call.
std::string reason() { return errno == EISDIR ? "it is a directory" : std::strerror(errno); }

bool is_null_device(const struct stat& facts) {
  return S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3);
}

/// The reason why a file of this kind is no place for an output; empty if it is one.
std::string unfit(const struct stat& facts) {
  if (S_ISDIR(facts.st_mode)) return "it is a directory";
  if (S_ISREG(facts.st_mode) || is_null_device(facts)) return {};
  return "it is a pipe or a device, expected a file";
}

/// Writes all of `text`; false, with errno, if that is not possible.
bool write_all(int file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t now = write(file, text.data() + done, text.size() - done);
    if (now < 0 && errno == EINTR) continue;
    if (now == 0) errno = ENOSPC;
    if (now <= 0) return false;
    done += static_cast<std::size_t>(now);
  }
  return true;
}

/// Keeps other processes of this program from a file while it lives, where files have locks.
class Lock {
 public:
  explicit Lock(int file) : file_(file) {
    while (flock(file_, LOCK_EX) != 0 && errno == EINTR) continue;
  }
  ~Lock() { flock(file_, LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int file_;
};

/// True if `path` still leads to the open file `file`.
bool is_in_place(int file, const char* path) {
  struct stat opened {
  }, named{};
  return fstat(file, &opened) == 0 && stat(path, &named) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

off_t size_of(int file) {
  struct stat facts {};
  return fstat(file, &facts) == 0 ? facts.st_size : 0;
}

/// An output that is open for as long as it is compared with others. A file that was not there is
/// made, and removed again unless somebody has written to it meanwhile.
class TrialFile {
 public:
  explicit TrialFile(const NamedFile& file) : named_(file) {
    if (file.path == "-") refuse("it is no file, and the table is on standard output: name a file");
    struct stat before {};
    is_new_ = stat(file.path.c_str(), &before) != 0;
    if (is_new_ && errno != ENOENT) refuse(reason());
    if (!is_new_ && !unfit(before).empty()) refuse(unfit(before));
    file_ = open(file.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, new_file_mode);
    if (file_ < 0) refuse(reason());
    fstat(file_, &facts_);
  }
  ~TrialFile() {
    // The name of the file itself: `path` may be a link to it.
    char* const name = is_new_ ? realpath(named_.path.c_str(), nullptr) : nullptr;
    if (name != nullptr) {
      const Lock lock(file_);  // or a record might come between the look and the removal
      if (size_of(file_) == 0 && is_in_place(file_, name)) unlink(name);
    }
    std::free(name);
    close(file_);
  }
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;

  const NamedFile& named() const { return named_; }
  const struct stat& facts() const { return facts_; }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{}: cannot write {}: {}", named_.flag, quoted(named_.path), why));
  }

  NamedFile named_;
  bool is_new_ = false;
  int file_ = -1;
  struct stat facts_ {};
};

/// Throws UsageError if `other` is the file of `output`.
void require_apart(const TrialFile& output, const NamedFile& other, const struct stat& facts) {
  const struct stat& own = output.facts();
  if (own.st_dev != facts.st_dev || own.st_ino != facts.st_ino || is_null_device(own)) return;
  throw UsageError(fmt::format("{} and {} name the same file, {}: what one writes would destroy the other",
                               other.flag, output.named().flag, quoted(output.named().path)));
}

}  // namespace

void require_files(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  std::vector<std::unique_ptr<const TrialFile>> opened;
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    auto file = std::make_unique<const TrialFile>(output);
    for (const auto& other : opened) require_apart(*file, other->named(), other->facts());
    struct stat facts {};
    for (const NamedFile& input : inputs)
      if (!input.path.empty() && stat(input.path.c_str(), &facts) == 0) require_apart(*file, input, facts);
    opened.push_back(std::move(file));
  }
}

void write_text(const std::string& path, const std::string& text) {
  char* const resolved = realpath(path.c_str(), nullptr);  // a link stays one
  const std::string target = resolved == nullptr ? path : resolved;
  std::free(resolved);
  struct stat old {};
  const bool is_new = stat(target.c_str(), &old) != 0;
  const bool is_regular = is_new || S_ISREG(old.st_mode);
  const std::string part = is_regular ? fmt::format("{}.{}.part", target, getpid()) : target;
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC,
                        is_new ? new_file_mode : old.st_mode & 0777);
  const bool is_written = file >= 0 && write_all(file, text) && (!is_regular || fsync(file) == 0);
  std::string why = is_written ? "" : reason();
  if (file >= 0) close(file);
  if (is_written && is_regular && rename(part.c_str(), target.c_str()) != 0) why = reason();
  if (why.empty()) return;
  if (is_regular) unlink(part.c_str());
  throw SystemError(fmt::format("cannot write '{}': {}", path, why));
}

Journal::Journal(const std::string& path) : path_(path) {
  const std::string why = open_file();
  if (why.empty()) return;
  close(file_);
  throw UsageError(fmt::format("cannot write records to {}: {}", quoted(path), why));
}

Journal::~Journal() { close(file_); }

std::string Journal::open_file() {
  if (path_.empty()) return {};
  close(file_);
  file_ = open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, new_file_mode);
  struct stat facts {};
  return file_ < 0 || fstat(file_, &facts) != 0 ? reason() : unfit(facts);
}

void Journal::append(const std::string& line, const std::string& heading) {
  if (path_.empty()) return;
  while (!append_in_place(line, heading))
    if (size_of(file_) > 0 || !open_file().empty())
      throw SystemError(
          fmt::format("the file of records '{}' was deleted or replaced meanwhile: "
                      "what stood in it is lost, and the record of this case",
                      path_));
}

bool Journal::append_in_place(const std::string& line, const std::string& heading) {
  const Lock lock(file_);
  if (!is_in_place(file_, path_.c_str())) return false;
  const off_t before = size_of(file_);
  char last = '\n';
  if (before > 0) [[maybe_unused]]
    const ssize_t read = pread(file_, &last, 1, before - 1);
  const std::string start = before > 0 || heading.empty() ? "" : heading + "\n";
  const std::string text = (last == '\n' ? start : "\n") + line + "\n";
  if (write_all(file_, text)) return true;
  const std::string why = reason();
  // Only what was written here goes: never another process's line behind it.
  if (size_of(file_) - before < static_cast<off_t>(text.size())) [[maybe_unused]]
    const int taken_back = ftruncate(file_, before);
  throw SystemError(fmt::format("cannot append a record to '{}': {}; the record is not in it", path_, why));
}

void keep_streams_open() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    // The wrong way round, so that reads and writes still fail.
    if (fcntl(stream, F_GETFD) < 0) [[maybe_unused]]
      const int lowest = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

bool has_lost_output() { return !std::cout.flush() || std::fflush(stdout) != 0 || std::ferror(stdout) != 0; }

void require_output() {
  if (has_lost_output()) throw SystemError("cannot write to the standard output: a part of it is lost");
}

bool reader_left() {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace baton
