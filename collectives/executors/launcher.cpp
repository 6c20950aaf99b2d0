// SPDX-License-Identifier: Apache-2.0
#include "collectives/executors/launcher.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
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
  int first_number(const std::vector<const char*>& names) const {
    for (const char* name : names)
      if (has(name)) return std::atoi(variable_(name));
    return 0;
  }

 private:
  const std::function<const char*(const char*)>& variable_;
};

constexpr int most_processes = 1 << 20, most_port = 65535, most_seconds = 24 * 3600;

using Names = std::vector<const char*>;

/// `names` if all of them are set; none if not.
Names all_of(const Variables& all, const Names& names) {
  return std::ranges::all_of(names, [&](const char* name) { return all.has(name); }) ? names : Names{};
}

Names first_of(const Variables& all, const Names& names) {
  const auto found = std::ranges::find_if(names, [&](const char* name) { return all.has(name); });
  return found == names.end() ? Names{} : Names{*found};
}

Names torch_names(const Variables& all) {
  return all_of(all, {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"});
}

Names torchrun_names(const Variables& all) {
  return all.has("TORCHELASTIC_RUN_ID") ? torch_names(all) : Names{};
}

/// Slurm's number of tasks: that of the step, or of the job.
const char* slurm_size(const Variables& all) {
  return all.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
}

/// The variables of a job step that srun started. A batch script has SLURM_PROCID too, but not the
/// next two.
Names step_names(const Variables& all) {
  Names names = all_of(all, {"SLURM_PROCID", "SLURM_STEP_ID", "SLURM_SRUN_COMM_PORT"});
  if (!names.empty() && all.has(slurm_size(all))) names.push_back(slurm_size(all));
  return names;
}

/// The rank that a launcher of MPI tells, then the number of ranks if it tells that. A server of
/// PMIx that is not Slurm's may run in a step of Slurm, whose number is another one.
Names mpi_names(const Variables& all) {
  Names names = first_of(all, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"});
  if (names.empty()) return names;
  Names size = first_of(all, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
  const std::string server = all.text("PMIX_NAMESPACE");
  if (size.empty() && (server.empty() || server.starts_with("slurm")))
    size = first_of(all, {"SLURM_STEP_NUM_TASKS"});
  names.insert(names.end(), size.begin(), size.end());
  return names;
}

/// The number of ranks that a launcher of MPI tells; 0 if it does not. Rank 0 is alone if there is
/// no server of PMIx that could tell it of others.
int mpi_size(const Variables& all, const Names& names) {
  if (names.size() > 1) return all.first_number({names.back()});
  return all.first_number({names.front()}) == 0 && !all.has("PMIX_NAMESPACE") ? 1 : 0;
}

/// The host that MASTER_ADDR names. Throws UsageError for a text that can name none.
std::string master(const Variables& all) {
  const std::string name = all.text("MASTER_ADDR");
  if (!is_host(name))
    throw UsageError("MASTER_ADDR is '" + name +
                     "', expected a host's name or its address alone, such as n07, 10.0.0.7 or fd00::7");
  return name;
}

int torch_size(const Variables& all, const Names&) {
  const int size = all.number("WORLD_SIZE", 1, most_processes);
  all.number("RANK", 0, size - 1);
  return size;
}

/// The step in which Slurm runs the shell of an allocation has one task, whatever the job has.
int step_size(const Variables& all, const Names&) {
  constexpr std::string_view interactive = "4294967290";
  const int size =
      all.text("SLURM_STEP_ID") == interactive ? 1 : all.number(slurm_size(all), 1, most_processes);
  all.number("SLURM_PROCID", 0, size - 1);
  return size;
}

void use_mpi(Launcher& found, const Variables& all, const Names& names) {
  found.rank = all.first_number({names.front()});
  found.size_on_host = all.first_number(
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMIX_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"});
}

/// Sets the launcher from torchrun's variables. The port is MASTER_PORT + 1, since torchrun's own
/// store may use MASTER_PORT.
void use_torch(Launcher& found, const Variables& all, const Names&) {
  found.rank = all.number("RANK", 0, found.size - 1);
  found.size_on_host = all.first_number({"LOCAL_WORLD_SIZE"});
  found.address = master(all);
  found.port = all.number("MASTER_PORT", 1, most_port - 1) + 1;
}

/// Sets the launcher from Slurm's variables. The port follows from the numbers of job and step, so
/// that steps on one host have different ports.
void use_slurm(Launcher& found, const Variables& all, const Names&) {
  constexpr int first_port = 20000, blocks = 1200, ports_per_block = 16;
  found.rank = all.number("SLURM_PROCID", 0, found.size - 1);
  found.size_on_host = all.first_number({"SLURM_STEP_TASKS_PER_NODE"});
  const char* nodes = all.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
  found.hosts = hosts_in(all.text(nodes));
  found.address = all.has("MASTER_ADDR") ? master(all) : found.hosts.front();
  const unsigned step = static_cast<unsigned>(all.first_number({"SLURM_JOB_ID"})) * 7 +
                        static_cast<unsigned>(all.first_number({"SLURM_STEP_ID"}));
  found.port = first_port + static_cast<int>(step % blocks) * ports_per_block;
}

/// One kind of launcher: its variables, the number of ranks and the rest of what they say.
struct LauncherKind {
  std::string_view bootstrap;
  Names (*names)(const Variables&);
  int (*size)(const Variables&, const Names&);
  void (*use)(Launcher&, const Variables&, const Names&);
};
constexpr std::array launcher_kinds{LauncherKind{"tcp", torchrun_names, torch_size, use_torch},
                                    LauncherKind{"mpi", mpi_names, mpi_size, use_mpi},
                                    LauncherKind{"tcp", torch_names, torch_size, use_torch},
                                    LauncherKind{"tcp", step_names, step_size, use_slurm}};

/// Notes the variables of a launch of one rank, which is none.
void ignore(Launcher& found, const Variables& all, const Names& names) {
  for (const char* name : names) {
    const std::string variable = std::string(name) + "=" + all.text(name);
    if (std::ranges::find(found.ignored, variable) == found.ignored.end()) found.ignored.push_back(variable);
  }
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
  const std::string own = all.text(own_launch);
  for (const LauncherKind& kind : launcher_kinds) {
    const Names names = own.empty() || own == kind.bootstrap ? kind.names(all) : Names{};
    if (names.empty()) continue;
    const int size = kind.size(all, names);
    if (size == 1 && own.empty()) {
      ignore(found, all, names);
      continue;
    }
    found.bootstrap = kind.bootstrap;
    found.size = size;
    kind.use(found, all, names);
    break;
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

bool is_host(const std::string& name) {
  constexpr std::size_t longest = 253;  // of a name of the domain name system
  const bool has_colon = name.find(':') != std::string::npos;
  in6_addr address{};
  if (has_colon) return inet_pton(AF_INET6, name.substr(0, name.find('%')).c_str(), &address) == 1;
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c >= 0x80;
  });
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
