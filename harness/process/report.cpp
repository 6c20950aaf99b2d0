// SPDX-License-Identifier: Apache-2.0
#include "harness/process/report.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace baton {
namespace {

using Json = nlohmann::json;

constexpr std::string_view before_what = "{\"what\":\"";
/// What stands for each What, in a line and in a sentence.
constexpr std::array<std::string_view, 11> words{
    "",          "died",        "is gone", "is stopped", "is lost", "waited", "exceeded the time limit",
    "was ended", "ended first", "was",     "interrupted"};

int file = -1;  // of the process that started the launch

/// True if the whole line was written, by one call.
bool write_to(int descriptor, const Line& line) {
  return write(descriptor, line.view().data(), line.view().size()) == std::ssize(line.view());
}

/// Adds a member to a JSON object, without control characters.
void add(Line& json, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  json << ",\"" << key << "\":\"";
  for (const char& c : text) {
    if (c == '"' || c == '\\') json << "\\";
    if (static_cast<unsigned char>(c) >= ' ') json << std::string_view(&c, 1);
  }
  json << "\"";
}

void add(Line& json, std::string_view key, std::optional<int> number) {
  if (number) json << ",\"" << key << "\":" << *number;
}

std::string_view word_of(Report::What what) { return words[static_cast<std::size_t>(what)]; }

std::optional<int> number_in(const Json& line, const char* key) {
  return line.contains(key) ? std::optional<int>(line[key]) : std::nullopt;
}

Report report_of(const Json& line) {
  const auto word = std::ranges::find(words, line["what"].get<std::string>());
  Report report{.what = static_cast<Report::What>(word - words.begin()),
                .rank = number_in(line, "rank"),
                .step = number_in(line, "step"),
                .waits_for = number_in(line, "waits_for"),
                .between_rounds = line.contains("between_rounds")};
  report.part << line.value("part", "");
  report.text << line.value("text", "");
  return report;
}

}  // namespace

void Line::print() const {
  Line line;
  line << "baton: " << view() << "\n";
  write_to(STDERR_FILENO, line);
}

Line Report::sentence(std::string_view known) const {
  Line line;
  if (rank) line << "rank " << *rank << (what == What::error ? ": " : " ");
  line << text.view() << word_of(what);
  if (!part.view().empty() && part.view() != known) line << " in " << part.view();
  if (what == What::error) return line;  // its text says where
  if (between_rounds) line << " between two rounds";
  if (step) line << " at step " << *step;
  if (waits_for) line << ", waiting for rank " << *waits_for;
  return line;
}

void Report::send() const {
  Line json;
  json << before_what << word_of(what) << "\"";
  add(json, "part", part.view());
  add(json, "text", text.view());
  add(json, "rank", rank);
  add(json, "step", step);
  add(json, "waits_for", waits_for);
  json << (between_rounds ? ",\"between_rounds\":true}\n" : "}\n");
  const bool is_whole = json.view().ends_with('\n');
  if (file < 0 || !is_whole || !write_to(file, json)) sentence().print();
}

void report_into(const std::string& path) {
  file = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

std::vector<Report> reports_in(const std::string& path, std::uintmax_t from) {
  std::vector<Report> all;
  std::ifstream lines(path);
  lines.seekg(static_cast<std::streamoff>(from));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(before_what))
      if (const Json json = Json::parse(line, nullptr, false); json.is_object())
        all.push_back(report_of(json));
  return all;
}

}  // namespace baton
