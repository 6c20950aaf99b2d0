// SPDX-License-Identifier: Apache-2.0
#include "harness/process/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include "collectives/executors/cores.hpp"
#include "collectives/executors/launcher.hpp"
#include "collectives/schedule/errors.hpp"
#include "harness/process/error_lines.hpp"
#include "harness/process/obstacles.hpp"
#include "harness/process/program_launcher.hpp"
#include "harness/process/started_ranks.hpp"
#include "harness/process/surroundings.hpp"
#include "harness/process/world.hpp"

namespace baton {
namespace {

namespace fs = std::filesystem;

/// The options by which mpiexec leaves binding to the ranks. They bind themselves if every thread
/// can have its own core: one that shares a core is slower bound. mpiexec itself would leave the
/// mask that the user gave, and not start where the cores of its own count are fewer. By that count
/// it also decides whether a waiting rank yields its core.
std::vector<std::string> binding(int processes, int threads) {
  const bool fit = processes * threads <= usable_cores().count();
  std::vector<std::string> options{"--bind-to", "none", "-x", binding_variable(fit ? threads : 0)};
  if (!fit) options.insert(options.end(), {"--mca", "mpi_yield_when_idle", "1"});
  return options;
}

volatile sig_atomic_t interrupts = 0;
void on_interrupt(int) { interrupts = interrupts + 1; }

/// Notes the signals that ask this process to end, while a launch runs.
class Interrupts {
 public:
  Interrupts() {
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART, so that reading ends
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~Interrupts() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

 private:
  static constexpr std::array signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::array<struct sigaction, signals.size()> before_{};
};

/// Kills the processes that the launch left: ranks whose launcher died become children of this
/// process. It may have had children before, as `exec` behind `> >(tee log)` leaves one.
void end_orphans(const std::vector<pid_t>& children_before) {
  const auto left = [&] {
    std::vector<pid_t> children = children_of();
    std::erase_if(children, [&](pid_t child) { return std::ranges::count(children_before, child) > 0; });
    return children;
  };
  for (std::vector<pid_t> all = left(); !all.empty(); all = left())
    for (const pid_t child : all) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
}

/// Starts `command` in a process group of its own: the terminal's Ctrl-C reaches this process
/// alone, which decides what follows. Reports into the file `reports` if it cannot start.
pid_t start(std::vector<std::string> command, int errors, const std::string& reports) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // A process outside the terminal's group must not read from it.
  if (const int nothing = open("/dev/null", O_RDONLY); nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(errors, STDERR_FILENO);
  execvp(arguments[0], arguments.data());
  Report failed;
  failed.text << "cannot start " << command[0] << ": " << std::strerror(errno);
  report_into(reports);
  failed.send();
  _exit(127);
}

/// Tells when a file grows, so that nothing has to look at it while a case is measured.
class GrowingFile {
 public:
  explicit GrowingFile(const std::string& path) : watch_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    inotify_add_watch(watch_, path.c_str(), IN_MODIFY);
  }
  ~GrowingFile() { close(watch_); }
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  /// A descriptor to be polled; negative if this host has no such watch.
  int descriptor() const { return watch_; }
  void forget_events() const {
    std::array<char, 4096> events;
    while (read(watch_, events.data(), events.size()) > 0) continue;
  }

 private:
  int watch_;
};

/// Reads the errors of the launcher until it closes its end, and waits for it. Returns its wait
/// status.
int watch(pid_t launcher, int errors, ErrorLines& lines, StartedRanks& ranks, const Followed& followed,
          std::vector<Report>& reports) {
  constexpr int longest_pause = 10000, pause_at_start = 20, pause_at_end = 1000;  // milliseconds
  constexpr std::chrono::seconds patience{10};
  const GrowingFile file(followed.file);
  std::array<char, 4096> buffer;
  int status = 0, passed_on = interrupts;
  std::optional<std::chrono::steady_clock::time_point> asked_to_end;
  const auto pass_on_interrupts = [&] {
    while (passed_on < interrupts) kill(launcher, ++passed_on < 3 ? SIGTERM : SIGKILL);
  };
  // Without events of its own the output tells only that its reader has left.
  std::vector<pollfd> sources{
      {errors, POLLIN, 0}, {file.descriptor(), POLLIN, 0}, {followed.go_on ? STDOUT_FILENO : -1, 0, 0}};
  while (true) {
    const int pause = ranks.have_all_ended()  ? pause_at_end
                      : ranks.are_all_known() ? longest_pause
                                              : pause_at_start;
    sources.resize(3);
    ranks.add_to(sources);
    const int ready = poll(sources.data(), sources.size(), pause);
    ranks.look();
    pass_on_interrupts();
    file.forget_events();
    const auto now = std::chrono::steady_clock::now();
    if (asked_to_end && now - *asked_to_end >= patience) kill(launcher, SIGKILL);
    if (!asked_to_end && followed.go_on && !followed.go_on(ranks.are_gone())) {
      for (const int rank : ranks.stopped()) reports.push_back({.what = Report::What::stopped, .rank = rank});
      kill(launcher, SIGTERM);
      asked_to_end = now;
      sources[2].fd = -1;
    }
    if (ready <= 0 || sources[0].revents == 0) continue;
    const ssize_t count = read(errors, buffer.data(), buffer.size());
    if (count > 0) lines.add({buffer.data(), static_cast<std::size_t>(count)});
    if (count == 0 || (count < 0 && errno != EINTR)) break;
  }
  while (waitpid(launcher, &status, 0) < 0 && errno == EINTR) pass_on_interrupts();
  return status;
}

}  // namespace

std::vector<std::string> launch_command(int processes, int threads, char** argv) {
  leave_surroundings();
  std::vector<std::string> command = program_command(processes, argv);
  if (!command.empty()) return command;
  if (processes > 0) {
    for (char** argument = argv + 1; *argument != nullptr; ++argument)
      if (*argument == std::string_view(":"))
        throw UsageError("':' is no word for a launcher of MPI, for which it parts programs: write ./:");
    require_open_files(processes);
    setenv(own_launch, "mpi", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    command = {"mpiexec", "-n", std::to_string(processes), "--oversubscribe"};
    for (const std::string& word : binding(processes, threads)) command.push_back(word);
  }
  command.push_back(fs::read_symlink("/proc/self/exe"));
  for (char** argument = argv + 1; *argument != nullptr; ++argument) command.emplace_back(*argument);
  return command;
}

const Report* LaunchEnd::first_report() const {
  const Report* ended = nullptr;  // the rank does not know why
  for (const Report& report : reports) {
    if (report.what == Report::What::was) continue;
    if (report.what != Report::What::ended) return &report;
    if (ended == nullptr) ended = &report;
  }
  return ended;
}

bool LaunchEnd::refused() const {
  return exit_code == ExitCode::usage && first_report() != nullptr &&
         first_report()->what == Report::What::error;
}

std::string LaunchEnd::cause(std::string_view known) const {
  const Report* report = first_report();
  std::string text = report == nullptr ? launcher_words : std::string(report->sentence(known).view());
  if (report != nullptr && report->what == Report::What::died && !signal.empty()) text += " of " + signal;
  return silence + (silence.empty() || text.empty() ? "" : "; ") + text;
}

LaunchEnd run_launch(const std::vector<std::string>& command, const Followed& followed) {
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) throw SystemError("cannot make a pipe");
  const Interrupts while_it_runs;
  const int interrupts_before = interrupts;
  const std::vector<pid_t> children_before = children_of();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const auto began = std::chrono::steady_clock::now();
  const std::uintmax_t size_before = fs::exists(followed.file) ? fs::file_size(followed.file) : 0;
  const pid_t launcher = start(command, pipe_ends[1], followed.file);
  close(pipe_ends[1]);
  if (launcher < 0) throw SystemError("cannot start " + command[0] + ": " + std::strerror(errno));
  ErrorLines lines;
  StartedRanks ranks(launcher, followed.ranks);
  std::vector<Report> reports;
  const int status = watch(launcher, pipe_ends[0], lines, ranks, followed, reports);
  close(pipe_ends[0]);
  end_orphans(children_before);
  std::ranges::copy(reports_in(followed.file, size_before), std::back_inserter(reports));
  if (lines.dead_rank())
    reports.push_back({.what = Report::What::died, .rank = lines.dead_rank()});
  else if (lines.launcher_words().empty() && ranks.first_ended())
    reports.push_back({.what = Report::What::ended_first, .rank = ranks.first_ended()});
  return {.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .interrupted = interrupts > interrupts_before,
          .reports = std::move(reports),
          .launcher_words = lines.launcher_words(),
          .signal = lines.signal(),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count()};
}

}  // namespace baton
