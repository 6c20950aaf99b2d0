// SPDX-License-Identifier: Apache-2.0
// The only file that includes CLI11, which takes long to compile.
#include "harness/options/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <limits>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/texts.hpp"
#include "harness/machine/system.hpp"
#include "harness/options/flag_values.hpp"
#include "harness/process/world.hpp"
#include "harness/record/cells.hpp"

namespace baton {
namespace {

void read_word(const FlagRules& rules, const std::string& word, std::string& value) {
  value = word_in(rules, word);
}

void read_word(const FlagRules& rules, const std::string& word, double& value) {
  value = real_in(rules, word);
}

template <std::integral Number>
void read_word(const FlagRules& rules, const std::string& word, Number& value) {
  value = static_cast<Number>(number_in(rules, word));
}

template <class Value>
void read_words(const FlagRules& rules, const std::vector<std::string>& words, Value& value) {
  read_word(rules, words.back(), value);
}

/// Reads the values of several words, each of which may have several between commas.
template <class Value>
void read_words(const FlagRules& rules, const std::vector<std::string>& words, std::vector<Value>& values) {
  values.clear();
  for (const std::string& part : parts_of(rules, words)) read_word(rules, part, values.emplace_back());
}

std::string shown(const auto& value) { return fmt::format("{}", value); }
template <class Value>
std::string shown(const std::vector<Value>& values) {
  return fmt::format("{}", fmt::join(values, ","));
}

/// One value of a flag, which may take a list of them.
template <class Value>
struct WordOf {
  using Type = Value;
};
template <class Value>
struct WordOf<std::vector<Value>> {
  using Type = Value;
};

constexpr std::array group_titles{"What is compared", "Sizes", "How it runs", "Simulator", "Output"};

std::string title_of(FlagGroup group) { return group_titles.at(static_cast<std::size_t>(group)); }

/// Lays --help out: groups in their order, and lines that fit a terminal.
class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode /*mode*/) const override {
    std::string text = make_description(app) + make_usage(app, std::move(name));
    for (const char* title : group_titles) {
      const auto is_in = [title](const CLI::Option* option) { return option->get_group() == title; };
      const std::vector<const CLI::Option*> options = app->get_options(is_in);
      if (!options.empty()) text += make_group(title, false, options);
    }
    return text + make_footer(app);
  }
  /// The kind of value and the default: which flags exclude one another is for their errors to say.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return {};
    const std::string value = option->get_default_str();
    return " " + option->get_type_name() + (value.empty() ? "" : "=" + value);
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text =
        wrapped(option->get_description(), "", terminal_columns - static_cast<int>(get_column_width()));
    text.pop_back();  // its line break
    return text;
  }
};

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

Flag& Flag::reals(double least, double most) {
  rules_->least_real = least;
  rules_->most_real = most;
  option_->type_name(fmt::format("{} to {}", least, most));
  return *this;
}

Flag& Flag::shows_default(const std::string& text) {
  option_->default_str(text);
  return *this;
}

FlagFacts Flag::facts() const {
  const bool is_list = option_->get_expected_max() > 1;
  const int values = option_->get_expected_min() == 0 ? 0 : option_->get_type_size();
  std::vector<std::string> names;
  for (const std::string& name : option_->get_snames()) names.push_back("-" + name);
  for (const std::string& name : option_->get_lnames()) names.push_back("--" + name);
  return {fmt::format("{}", fmt::join(names, ",")), values, is_list, rules_.get()};
}

Flag& Flag::bytes(std::uint64_t most) {
  rules_->kind = "size";
  rules_->sized = "a number of bytes such as 65536, 64K or 2M";
  rules_->least = 1;
  rules_->most = most;
  option_->type_name("BYTES such as 64K");
  return *this;
}

Flag& Flag::tokens(std::int64_t least) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  range(least, most);
  rules_->kind = "size";
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

Flag& Flag::also(const std::string& words) {
  option_->description(option_->get_description() + "; " + words);
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

Flags::Flags(const std::string& program, const std::string& description, const std::string& examples)
    : app_(std::make_unique<CLI::App>(wrapped(description, ""), program)) {
  app_->formatter(std::make_shared<Help>());
  CLI::Option* help = app_->get_help_ptr()->group(title_of(FlagGroup::output));
  if (!examples.empty()) app_->footer("Examples:\n" + examples);
  app_->option_defaults()->always_capture_default();
  CLI::Option* version_flag =
      app_->set_version_flag(
              "--version", [] { return fmt::format("baton {}, commit {}", version(), commit()); },
              "Print the version and the commit and exit")
          ->group(title_of(FlagGroup::output));
  for (CLI::Option* option : {help, version_flag}) all_.emplace_back(option, std::make_shared<FlagRules>());
}

Flags::~Flags() = default;

template <FlagValue Value>
Flag Flags::add(const std::string& names, Value& value, const std::string& help) {
  using Word = typename WordOf<Value>::Type;
  constexpr bool is_text = std::same_as<Word, std::string>;
  const auto rules = std::make_shared<FlagRules>();
  rules->kind = is_text ? "text" : std::integral<Word> ? "whole" : "real";
  if constexpr (std::integral<Word>) rules->most = std::numeric_limits<Word>::max();
  const auto read = [rules, &value](const std::vector<std::string>& words) {
    read_words(*rules, words, value);
    return true;
  };
  CLI::Option* option = app_->add_option(names, read, help, false, [&value] { return shown(value); });
  option->type_name(is_text ? "TEXT" : "NUMBER")->allow_extra_args(false)->group(title_of(group_));
  rules->name = option->get_name();
  return all_.emplace_back(option, rules);
}

template <>
Flag Flags::add(const std::string& names, bool& value, const std::string& help) {
  CLI::Option* option = app_->add_flag(names, value, help)->disable_flag_override();
  return all_.emplace_back(option->group(title_of(group_)), std::make_shared<FlagRules>());
}

template Flag Flags::add(const std::string&, double&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<double>&, const std::string&);
template Flag Flags::add(const std::string&, int&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<int>&, const std::string&);
template Flag Flags::add(const std::string&, std::int64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::int64_t>&, const std::string&);
template Flag Flags::add(const std::string&, std::uint64_t&, const std::string&);
template Flag Flags::add(const std::string&, std::vector<std::uint64_t>&, const std::string&);
template Flag Flags::add(const std::string&, std::string&, const std::string&);
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
    if (launched_rank() == 0) fmt::print("{}", help());
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

std::vector<FlagFacts> Flags::facts() const {
  std::vector<FlagFacts> facts;
  for (const Flag& flag : all_) facts.push_back(flag.facts());
  return facts;
}

std::string Flags::help() const { return app_->help(); }

void Flags::preset(const std::string& name, const std::string& value) {
  CLI::Option* option = app_->get_option_no_throw("--" + name);
  if (option == nullptr) throw UsageError(unexpected("--" + name));
  if (option->count() == 0) option->add_result(value)->run_callback();
}

}  // namespace baton
