// SPDX-License-Identifier: Apache-2.0
// The command line of collective_bench.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collectives/schedule/errors.hpp"
#include "harness/cases/collective_workload.hpp"
#include "harness/options/common_options.hpp"
#include "harness/options/names.hpp"
#include "harness/options/options.hpp"

namespace baton {
namespace {

/// Arguments as the user wrote them, before they are looked up and multiplied out.
struct Words {
  std::vector<std::string> collectives{"all"};
  std::string direction = "forward";
  Shape shape;
  std::uint64_t min_bytes = 0;  // 0: the shape is named by its heads
  std::uint64_t max_bytes = 0;
  int factor = 2;
  bool names_tokens = false;
};

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const Collective* collective : collectives()) names.push_back(collective->name);
  return names;
}

/// So many that keys and values are as many bytes as a state, or as near to it as whole tokens come.
std::int64_t tokens_like_a_state(const Shape& shape) {
  const double tokens =
      static_cast<double>(shape.d_k * shape.d_v) / static_cast<double>(shape.d_k + shape.d_v);
  return std::max<std::int64_t>(1, std::llround(tokens));
}

/// In a sweep over sizes of a state the keys and values of an exchange are as large, unless their tokens are named.
Shape shape_for(Kind kind, Shape shape, const Words& words) {
  if (kind == Kind::exchange && words.min_bytes > 0 && !words.names_tokens)
    shape.tokens = tokens_like_a_state(shape);
  return shape;
}

/// The ladder of state sizes, or the one shape that was named.
std::vector<Shape> shapes(const Words& words) {
  check_size(words.shape.heads, words.shape.d_k, words.shape.d_v);
  check_size(words.shape.tokens, words.shape.heads, words.shape.d_k + words.shape.d_v);
  if (words.min_bytes == 0) return {words.shape};
  const std::uint64_t max_bytes = words.max_bytes == 0 ? words.min_bytes : words.max_bytes;
  if (max_bytes < words.min_bytes) throw UsageError("--max-bytes is below --min-bytes");
  const std::uint64_t head_bytes = words.shape.d_k * words.shape.d_v * element_bytes;
  std::vector<Shape> ladder;
  for (std::uint64_t bytes = words.min_bytes; bytes <= max_bytes; bytes *= words.factor) {
    if (bytes % head_bytes != 0)
      throw UsageError(fmt::format("a state of {} bytes cannot be cut into heads of {} ({} x {} f32)", bytes,
                                   head_bytes, words.shape.d_k, words.shape.d_v));
    ladder.push_back(words.shape);
    ladder.back().heads = static_cast<std::int64_t>(bytes / head_bytes);
  }
  return ladder;
}

std::vector<Direction> directions(const std::string& word) {
  if (word == "both") return {Direction::forward, Direction::reverse};
  return {word == "forward" ? Direction::forward : Direction::reverse};
}

/// One contest for each kind, shape and direction; only scans have a reverse.
std::vector<std::vector<std::shared_ptr<const Workload>>> contests(const Words& words,
                                                                   const std::vector<std::string>& names) {
  std::vector<std::vector<std::shared_ptr<const Workload>>> all;
  for (const Shape& shape : shapes(words))
    for (Direction direction : directions(words.direction))
      for (Kind kind : {Kind::exclusive_scan, Kind::all_gather, Kind::exchange}) {
        if (direction == Direction::reverse && kind != Kind::exclusive_scan) continue;
        all.emplace_back();
        for (const std::string& name : names)
          if (find_collective(name).kind == kind)
            all.back().push_back(
                collective_workload(find_collective(name), shape_for(kind, shape, words), direction));
      }
  return all;
}

void add_options(CLI::App& app, Words& words) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 43;  // times a factor of 2^20 it still fits
  const auto bytes = CLI::AsSizeValue(false) & CLI::Range(std::uint64_t{1}, most_bytes);
  app.add_option("--collectives", words.collectives, "names, or 'all'")->delimiter(',');
  app.add_option("--direction", words.direction, "scans in rank order or against it")
      ->check(CLI::IsMember({"forward", "reverse", "both"}));
  auto* heads =
      app.add_option("--heads", words.shape.heads, "attention heads of a rank's state")->check(size_range());
  app.add_option("--d-k", words.shape.d_k, "key channels of a head: rows of its state")->check(size_range());
  app.add_option("--d-v", words.shape.d_v, "value channels of a head: columns of its state")
      ->check(size_range());
  app.add_option_function<std::int64_t>(
         "--tokens",
         [&words](std::int64_t tokens) {
           words.shape.tokens = tokens;
           words.names_tokens = true;
         },
         "tokens a rank, for what moves keys and values; with -b by default as many as make these a state's "
         "size")
      ->default_str(std::to_string(words.shape.tokens))
      ->check(size_range());
  auto* least = app.add_option("-b,--min-bytes", words.min_bytes, "least state bytes a rank; heads follow")
                    ->transform(bytes);
  app.add_option("-e,--max-bytes", words.max_bytes, "most state bytes a rank")
      ->transform(bytes)
      ->needs(least);
  app.add_option("-f,--factor", words.factor, "factor from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->needs(least);
  least->excludes(heads);
}

void print_list() {
  fmt::print("collectives\n");
  for (const Collective* collective : collectives())
    fmt::print("  {:<24} {:<15} {}\n", collective->name, to_string(collective->kind), collective->summary);
  print_executors();
}

}  // namespace

std::optional<Options> parse_collective_options(int argc, char** argv) {
  CommandLine line("collective_bench",
                   "Times the exchanges of sequence-parallel attention, verified, each beside its bound.");
  Words words;
  add_options(line.app, words);
  if (!line.parse(argc, argv, print_list)) return std::nullopt;
  if (!line.options.baseline.empty()) chosen("baseline", {line.options.baseline}, collective_names());
  const auto names = chosen("collective", words.collectives, collective_names());
  Axes axes = line.axes(names);
  axes.contests = contests(words, names);
  line.options.cases = cases(axes);
  if (line.options.cases.empty()) throw UsageError("nothing to run: only exclusive scans have a reverse");
  return line.options;
}

}  // namespace baton
