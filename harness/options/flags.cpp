// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11, which takes long to compile.
#include "harness/options/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>

#include "collectives/schedule/errors.hpp"
#include "harness/options/names.hpp"
#include "harness/process/system.hpp"
#include "harness/process/world.hpp"

namespace baton {

/// Rules for the values of one flag.
struct FlagRules {
  /// The name of the flag in errors.
  std::string name;
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  /// A description of values with a unit, such as 64K, for errors; empty if the flag takes no unit.
  std::string sized;
  /// The only words that the flag takes; empty for any.
  std::vector<std::string> words;
  /// A function that sets other values by the flag's word; may be empty.
  std::function<void(const std::string&)> set;
};

namespace {

[[noreturn]] void refuse(const FlagRules& rules, const std::string& word, const std::string& why) {
  throw UsageError(fmt::format("{}: {} {}", rules.name, quoted(word), why));
}

bool is_digits(const std::string& word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
}

/// The number in `digits` times `unit`. Digits are decimal, whatever their leading zeros. Throws
/// UsageError outside of the flag's range.
std::uint64_t within_range(const FlagRules& rules, const std::string& word, const std::string& digits,
                           std::uint64_t unit) {
  const bool is_negative = word[0] == '-';
  std::uint64_t count = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  const bool fits = read.ec == std::errc{} && count <= rules.most / unit && count * unit >= rules.least &&
                    (!is_negative || count == 0);
  if (!fits) refuse(rules, word, fmt::format("is not in range {} to {}", rules.least, rules.most));
  return count * unit;
}

std::uint64_t whole_number(const FlagRules& rules, const std::string& word) {
  const std::string digits = word.substr(word.rfind('-', 0) == 0 ? 1 : 0);
  if (!is_digits(digits)) refuse(rules, word, "is not a whole number");
  return within_range(rules, word, digits, 1);
}

/// A number with a unit: B, K, KB, KiB, M and so on, all of them powers of 1024. Throws UsageError.
std::uint64_t sized_number(const FlagRules& rules, const std::string& word) {
  const std::string number = word.substr(word.rfind('-', 0) == 0 ? 1 : 0);
  const std::size_t end = std::min(number.find_first_not_of("0123456789"), number.size());
  std::string unit = CLI::detail::to_lower(number.substr(end));
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.size() == 2 && unit.ends_with('i') && number.size() == end + 3) unit.pop_back();
  const std::string units = "kmgtpe";
  const std::size_t power = unit.empty() ? 0 : units.find(unit) + 1;
  if (end == 0 || unit.size() > 1 || (power == 0 && !unit.empty()))
    refuse(rules, word, "is not " + rules.sized);
  return within_range(rules, word, number.substr(0, end), std::uint64_t{1} << (10 * power));
}

void read_word(const FlagRules& rules, const std::string& word, std::string& value) {
  if (word.empty() || word.rfind("--", 0) == 0)
    throw UsageError(fmt::format("{} needs a value, found {}", rules.name, quoted(word)));
  if (!rules.words.empty() && std::find(rules.words.begin(), rules.words.end(), word) == rules.words.end())
    refuse(rules, word, fmt::format("is not one of {}", fmt::join(rules.words, ", ")));
  value = word;
}

template <class Number>
void read_word(const FlagRules& rules, const std::string& word, Number& value) {
  value = static_cast<Number>(rules.sized.empty() ? whole_number(rules, word) : sized_number(rules, word));
}

template <class Value>
void read_words(const FlagRules& rules, const std::vector<std::string>& words, Value& value) {
  read_word(rules, words.back(), value);
}

/// The parts of `word` between its commas, empty ones too.
std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= word.size(); begin += parts.back().size() + 1)
    parts.push_back(word.substr(begin, word.find(',', begin) - begin));
  return parts;
}

/// Reads the values of several words, each of which may have several between commas.
template <class Value>
void read_words(const FlagRules& rules, const std::vector<std::string>& words, std::vector<Value>& values) {
  constexpr std::size_t most_values = 4096;
  values.clear();
  for (const std::string& word : words)
    for (const std::string& part : parts_of(word)) read_word(rules, part, values.emplace_back());
  if (values.size() > most_values)
    throw UsageError(fmt::format("{}: {} values, at most {}", rules.name, values.size(), most_values));
}

std::string shown(const auto& value) { return fmt::format("{}", value); }
template <class Value>
std::string shown(const std::vector<Value>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

template <class>
constexpr std::uint64_t most_of = 0;
template <std::integral Number>
constexpr std::uint64_t most_of<Number> = std::numeric_limits<Number>::max();
template <std::integral Number>
constexpr std::uint64_t most_of<std::vector<Number>> = std::numeric_limits<Number>::max();

}  // namespace

Flag& Flag::list() {
  option_->expected(1, 1 << 20);
  return *this;
}

Flag& Flag::pair(const std::string& names) {
  option_->type_name(names)->type_size(2)->expected(1);
  return *this;
}

Flag& Flag::range(std::int64_t least, std::int64_t most) {
  rules_->least = static_cast<std::uint64_t>(least);
  rules_->most = static_cast<std::uint64_t>(most);
  option_->type_name(fmt::format("{} to {}", least, most));
  return *this;
}

Flag& Flag::bytes(std::uint64_t most) {
  rules_->sized = "a number of bytes such as 65536, 64K or 2M";
  rules_->least = 1;
  rules_->most = most;
  option_->type_name("BYTES such as 64K");
  return *this;
}

Flag& Flag::tokens(std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  range(least, most);
  rules_->sized = "a number of tokens such as 4096 or 4K";
  option_->type_name(fmt::format("{} to {}, such as 4K", least, most));
  return *this;
}

Flag& Flag::one_of(const std::vector<std::string>& words) {
  rules_->words = words;
  option_->type_name(fmt::format("{{{}}}", fmt::join(words, ",")));
  return *this;
}

Flag& Flag::needs(const Flag& other) {
  option_->needs(other.option_);
  return *this;
}

Flag& Flag::excludes(const Flag& other) {
  option_->excludes(other.option_);
  return *this;
}

Flag& Flag::hidden() {
  option_->group("");
  return *this;
}

Flag& Flag::sets(bool& given) {
  option_->each([&given](const std::string&) { given = true; });
  return *this;
}

Flag& Flag::presets(std::function<void(const std::string&)> set) {
  rules_->set = std::move(set);
  option_->trigger_on_parse();  // the callbacks of the other flags run when all have been parsed
  return *this;
}

Flags::Flags(const std::string& program, const std::string& description)
    : app_(std::make_unique<CLI::App>(description, program)) {
  app_->option_defaults()->always_capture_default();
  app_->set_version_flag(
      "--version", [] { return fmt::format("baton {}, commit {}", version(), commit()); },
      "Print the version and the commit and exit");
}

Flags::~Flags() = default;

template <class Value>
Flag Flags::add(const std::string& names, Value& value, const std::string& help) {
  const auto rules = std::make_shared<FlagRules>();
  rules->most = most_of<Value>;
  const auto read = [rules, &value](const std::vector<std::string>& words) {
    read_words(*rules, words, value);
    if (rules->set) rules->set(words.back());
    return true;
  };
  CLI::Option* option = app_->add_option(names, read, help, false, [&value] { return shown(value); });
  option->type_name(rules->most == 0 ? "TEXT" : "NUMBER")->allow_extra_args(false);
  rules->name = option->get_name();
  return {option, rules};
}

template <>
Flag Flags::add(const std::string& names, bool& value, const std::string& help) {
  return {app_->add_flag(names, value, help)->disable_flag_override(), std::make_shared<FlagRules>()};
}

template Flag Flags::add(const std::string&, int&, const std::string&);
template Flag Flags::add(const std::string&, std::int64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::uint64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::string&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<int>&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::string>&, const std::string&);

std::string Flags::unexpected(const std::string& word) const {
  if (word[0] != '-') return fmt::format("{} belongs to no flag; --help shows the flags", quoted(word));
  std::vector<std::string> known;
  for (const CLI::Option* option : app_->get_options())
    for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  const std::string near = nearest(word.substr(0, word.find('=')), known);
  return fmt::format("unknown flag {}{}; --help shows the flags", quoted(word),
                     near.empty() ? "" : fmt::format(", did you mean '{}'?", near));
}

namespace {

/// The message for an error of CLI11 about the number of a flag's values; `text` begins with the
/// flag's name.
std::string mismatch(const std::string& text) {
  const std::string flag = text.substr(0, text.find_first_of(": "));
  if (text.find("override") != std::string::npos) return "--" + flag + " takes no value";
  if (text.find("missing") != std::string::npos) return flag + " needs a value";
  return flag + " is given twice, or with more than one value";
}

}  // namespace

bool Flags::parse(std::vector<std::string> arguments) {
  for (const std::string& argument : arguments)
    if (argument.rfind("--", 0) == 0 && argument.find('=') == argument.size() - 1)
      throw UsageError(quoted(argument) + " has no value");
  arguments.erase(arguments.begin());
  std::reverse(arguments.begin(), arguments.end());  // the order in which CLI11 takes them
  try {
    app_->parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    if (launched_rank() == 0) fmt::print("{}", app_->help());
    return false;
  } catch (const CLI::CallForVersion& version) {
    if (launched_rank() == 0) fmt::print("{}\n", version.what());
    return false;
  } catch (const CLI::ExtrasError&) {
    throw UsageError(unexpected(app_->remaining().front()));
  } catch (const CLI::ArgumentMismatch& error) {
    throw UsageError(mismatch(error.what()));
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
  return true;
}

}  // namespace baton
