// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/launcher.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string_view>

#include "collectives/schedule/errors.hpp"

namespace baton {
namespace {

/// The variables of an environment, as texts and as numbers.
class Variables {
 public:
  explicit Variables(const std::function<const char*(const char*)>& variable) : variable_(variable) {}

  bool has(const char* name) const { return variable_(name) != nullptr; }
  std::string text(const char* name) const { return has(name) ? variable_(name) : ""; }

  int number(const char* name, int least, int most) const {
    const std::string word = text(name);
    int value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size() || value < least || value > most)
      throw UsageError(std::string(name) + " is '" + word + "', expected a number from " +
                       std::to_string(least) + " to " + std::to_string(most));
    return value;
  }

  /// The leading number of the first of `names` that is set; 0 if none is. "4(x2)" has 4.
  int first_number(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (has(name)) return std::atoi(variable_(name));
    return 0;
  }

 private:
  const std::function<const char*(const char*)>& variable_;
};

constexpr int most_processes = 1 << 20, most_port = 65535, most_seconds = 24 * 3600;

bool has_torch_variables(const Variables& all) {
  return all.has("RANK") && all.has("WORLD_SIZE") && all.has("MASTER_ADDR") && all.has("MASTER_PORT");
}

/// True in a job step that srun started. A batch script has SLURM_PROCID too, but not the other two
/// variables.
bool is_in_step(const Variables& all) {
  return all.has("SLURM_PROCID") && all.has("SLURM_STEP_ID") && all.has("SLURM_SRUN_COMM_PORT");
}

const char* mpi_variable(const Variables& all) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (all.has(name)) return name;
  return nullptr;
}

void use_mpi(Launcher& found, const Variables& all, const char* rank) {
  found.bootstrap = "mpi";
  found.rank = all.first_number({rank});
  found.size = all.first_number({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"});
  found.size_on_host = all.first_number(
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMIX_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"});
}

/// Sets the launcher from torchrun's variables. The port is MASTER_PORT + 1, since torchrun's own
/// store may use MASTER_PORT.
void use_torch(Launcher& found, const Variables& all) {
  found.bootstrap = "tcp";
  found.size = all.number("WORLD_SIZE", 1, most_processes);
  found.rank = all.number("RANK", 0, found.size - 1);
  found.size_on_host = all.first_number({"LOCAL_WORLD_SIZE"});
  found.address = all.text("MASTER_ADDR");
  found.port = all.number("MASTER_PORT", 1, most_port - 1) + 1;
}

/// Sets the launcher from Slurm's variables. The port follows from the numbers of job and step, so
/// that steps on one host have different ports.
void use_slurm(Launcher& found, const Variables& all) {
  constexpr int first_port = 20000, blocks = 1200, ports_per_block = 16;
  const char* size = all.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  found.bootstrap = "tcp";
  found.size = all.number(size, 1, most_processes);
  found.rank = all.number("SLURM_PROCID", 0, found.size - 1);
  found.size_on_host = all.first_number({"SLURM_STEP_TASKS_PER_NODE"});
  const char* nodes = all.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  found.hosts = hosts_in(all.text(nodes));
  found.address = all.has("MASTER_ADDR") ? all.text("MASTER_ADDR") : found.hosts.front();
  const unsigned step = static_cast<unsigned>(all.first_number({"SLURM_JOB_ID"})) * 7 +
                        static_cast<unsigned>(all.first_number({"SLURM_STEP_ID"}));
  found.port = first_port + static_cast<int>(step % blocks) * ports_per_block;
}

std::uint64_t run_of(const Launcher& found, const Variables& all) {
  const std::string words = found.address + ":" + all.text("MASTER_PORT") + ":" +
                            all.text("TORCHELASTIC_RUN_ID") + ":" + all.text("SLURM_JOB_ID") + ":" +
                            all.text("SLURM_STEP_ID");
  return std::hash<std::string>{}(words);
}

/// The words of a file that its owner, this user, alone can read.
std::string secret_in(const std::string& path) {
  const int opened = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang it
  struct stat found {};
  const bool is_file = opened >= 0 && fstat(opened, &found) == 0 && S_ISREG(found.st_mode);
  const bool is_private = found.st_uid == geteuid() && (found.st_mode & (S_IRWXG | S_IRWXO)) == 0;
  std::array<char, 4096> words;
  const ssize_t count = is_file && is_private ? read(opened, words.data(), words.size()) : 0;
  if (opened >= 0) close(opened);
  if (!is_file) throw UsageError("BATON_SECRET_FILE '" + path + "' is no file that can be read");
  if (!is_private)
    throw UsageError("BATON_SECRET_FILE '" + path + "' is not this user's alone: chmod 600 makes it so");
  std::string secret(words.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) throw UsageError("BATON_SECRET_FILE '" + path + "' is empty");
  return secret;
}

/// True for 32 hexadecimal digits in five groups: torchrun --standalone draws such a run id.
bool is_drawn(const std::string& id) {
  constexpr std::string_view form = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(id, form, [](char c, char wanted) {
    return wanted == '-' ? c == '-' : std::isxdigit(static_cast<unsigned char>(c)) != 0;
  });
}

/// The secret of the run. Without one that the user gives, a run id that nobody can guess is one.
std::string secret_of(const Variables& all) {
  if (all.has("BATON_SECRET")) return all.text("BATON_SECRET");
  if (all.has("BATON_SECRET_FILE")) return secret_in(all.text("BATON_SECRET_FILE"));
  const std::string id = all.text("TORCHELASTIC_RUN_ID");
  return is_drawn(id) ? id : "";
}

/// Adds the hosts of one entry of a list: "rack[1-2]-n[07-09,12]" has eight.
void add_hosts(const std::string& entry, std::vector<std::string>& all) {
  const auto left = entry.find('['), right = entry.find(']', left);
  if (left == std::string::npos || right == std::string::npos) return all.push_back(entry);
  std::istringstream ranges(entry.substr(left + 1, right - left - 1));
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::string first = range.substr(0, range.find('-')), last = range.substr(range.find('-') + 1);
    const int begin = std::atoi(first.c_str()),
              end = std::min(std::atoi(last.c_str()), begin + most_processes);
    for (int number = begin; number <= end; ++number) {
      const std::string digits = std::to_string(number);
      const std::string zeros(first.size() - std::min(first.size(), digits.size()), '0');
      add_hosts(entry.substr(0, left) + zeros + digits + entry.substr(right + 1), all);
    }
  }
}

}  // namespace

Launcher read_launcher(const std::function<const char*(const char*)>& variable) {
  const Variables all(variable);
  Launcher found;
  if (has_torch_variables(all) && all.has("TORCHELASTIC_RUN_ID")) {
    use_torch(found, all);
  } else if (const char* rank = mpi_variable(all)) {
    use_mpi(found, all, rank);
  } else if (has_torch_variables(all)) {
    use_torch(found, all);
  } else if (is_in_step(all)) {
    use_slurm(found, all);
  }
  if (all.has("BATON_MEETING_SECONDS"))
    found.meeting_seconds = all.number("BATON_MEETING_SECONDS", 1, most_seconds);
  if (found.bootstrap != "tcp") return found;
  if (all.has("BATON_PORT")) found.port = all.number("BATON_PORT", 1, most_port);
  found.run = run_of(found, all);
  found.secret = secret_of(all);
  return found;
}

const Launcher& launcher() {
  static const Launcher found = read_launcher([](const char* name) { return std::getenv(name); });
  return found;
}

std::vector<std::string> hosts_in(const std::string& list) {
  std::vector<std::string> all;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t end = 0; end <= list.size(); ++end) {  // a comma in brackets is none between hosts
    const char c = end < list.size() ? list[end] : ',';
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (depth > 0 && end < list.size())) continue;
    add_hosts(list.substr(begin, end - begin), all);
    begin = end + 1;
  }
  return all;
}

}  // namespace baton
