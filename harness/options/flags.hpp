// SPDX-License-Identifier: Apache-2.0
// Flags are declared by plain calls: flags.cpp alone includes the library that parses them.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/schema/fields.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton {

struct FlagFacts;
struct FlagRules;

/// One value of a flag, as a user writes it.
template <class Value>
concept FlagWord = std::same_as<Value, std::string> || std::same_as<Value, double> ||
    std::same_as<Value, int> || std::same_as<Value, std::int64_t> || std::same_as<Value, std::uint64_t>;

/// What a flag can set: a word or a number, a list of them, or a truth.
template <class Value>
concept FlagValue = FlagWord<Value> || std::same_as<Value, bool> ||
    (FlagWord<typename Value::value_type>&& std::same_as<Value, std::vector<typename Value::value_type>>);

/// The parts of --help, in its order.
enum class FlagGroup { what, sizes, run, simulator, output };

/// One declared flag.
class Flag {
 public:
  Flag(CLI::Option* option, std::shared_ptr<FlagRules> rules) : option_(option), rules_(std::move(rules)) {}

  /// Takes several values, separated by commas.
  Flag& list();
  Flag& range(std::int64_t least, std::int64_t most);
  /// Takes a real number from `least` to `most`.
  Flag& reals(double least, double most);
  /// Takes the size of a tensor's axis, from 1 to 2^24.
  Flag& size() { return range(1, std::int64_t{1} << 24); }
  /// Takes two values, which help calls `names`.
  Flag& pair(const std::string& names);
  /// Takes a number of bytes such as 64K, from 1 to `most`.
  Flag& bytes(std::uint64_t most);
  /// Takes a number of tokens from `least` to 2^24, such as 4096 or 4K, which are the same.
  Flag& tokens(std::int64_t least = 1);
  Flag& one_of(const std::vector<std::string>& words);
  /// Has --help show this text in place of a default that depends on the machine.
  Flag& shows_default(const std::string& text);
  Flag& needs(const Flag& other);
  Flag& excludes(const Flag& other);
  /// Adds these words to the help of the flag.
  Flag& also(const std::string& words);
  /// Leaves the flag out of --help.
  Flag& hidden();
  /// Sets `given` if the user gives the flag.
  Flag& sets(bool& given);

  FlagFacts facts() const;

 private:
  CLI::Option* option_;
  std::shared_ptr<FlagRules> rules_;
};

/// What a flag takes, for readers of its values outside of this program.
struct FlagFacts {
  /// The names of the flag, such as "-b,--min-bytes".
  std::string names;
  /// The values behind the flag; a list counts as one.
  int values = 0;
  bool is_list = false;
  const FlagRules* rules = nullptr;
};

/// A command line under construction. Values that a flag refers to must outlive it.
class Flags {
 public:
  /// `examples` are commands that --help ends with, one a line.
  Flags(const std::string& program, const std::string& description, const std::string& examples = {});
  ~Flags();
  Flags(const Flags&) = delete;
  Flags& operator=(const Flags&) = delete;

  /// Begins a part of --help, to which the flags that are declared next belong.
  void begin(FlagGroup group) { group_ = group; }

  /// Declares a flag with the value in `value` as its default. A bool is a flag without a value.
  template <FlagValue Value>
  Flag add(const std::string& names, Value& value, const std::string& help);

  /// Declares the flag of a key of records, under the name and with the help that the schema has.
  /// `alias` is a second name of it, such as "-w"; may be empty.
  template <FlagValue Value>
  Flag add_key(schema::Key key, Value& value, const std::string& alias = {}) {
    return add(std::string(key.field().flag) + (alias.empty() ? "" : "," + alias), value,
               schema::help_of_flag(key.field()));
  }

  /// Parses the arguments, program name first. False if the answer was --help or --version, which
  /// has been printed. Throws UsageError.
  bool parse(std::vector<std::string> arguments);

  /// Gives the flag called `name`, without its dashes, a value as a user writes it, unless the user
  /// has given it one. Throws UsageError.
  void preset(const std::string& name, const std::string& value);

  /// The facts of all flags, hidden ones too.
  std::vector<FlagFacts> facts() const;
  std::string help() const;

 private:
  /// The error for an argument that no flag takes.
  std::string unexpected(const std::string& word) const;

  std::unique_ptr<CLI::App> app_;
  std::vector<Flag> all_;
  FlagGroup group_ = FlagGroup::what;
};

}  // namespace baton
