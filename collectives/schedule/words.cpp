// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/words.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collectives/schedule/errors.hpp"
#include "collectives/schedule/orders.hpp"

namespace baton {
namespace {

/// Number of a word; negative for an invalid word, which stands for a wrong operation.
using Word = int;
constexpr Word unwritten = -1;

/// All words of a run, each under one number. No word is kept longer than one letter more than
/// there are ranks, which no right word has.
class Words {
 public:
  explicit Words(int ranks) : longest_(ranks + 1), broken_{"memory that nothing has written"} {
    for (int rank = 0; rank < ranks; ++rank) number({rank});
  }

  Word join(Word earlier, Word later) {
    if (earlier < 0 || later < 0) return std::min(earlier, later);
    const std::uint64_t key = static_cast<std::uint64_t>(earlier) << 32 | static_cast<std::uint32_t>(later);
    if (key == last_key_) return last_;
    last_key_ = key;
    const auto found = joined_.find(key);
    if (found != joined_.end()) return last_ = found->second;
    std::vector<int> letters = letters_[earlier];
    letters.insert(letters.end(), letters_[later].begin(), letters_[later].end());
    letters.resize(std::min(letters.size(), longest_));
    last_ = number(std::move(letters));
    joined_.emplace(key, last_);
    return last_;
  }

  /// Adds an invalid word, for the reason that `why` gives. Returns its number.
  Word broken(std::string why) {
    broken_.push_back(std::move(why));
    return -static_cast<Word>(broken_.size());
  }

  /// The number of the word that has these letters.
  Word number(std::vector<int> letters) {
    const auto [entry, is_new] = numbers_.emplace(std::move(letters), static_cast<Word>(letters_.size()));
    if (is_new) letters_.push_back(entry->first);
    return entry->second;
  }

  std::string text(Word word) const {
    if (word < 0) return broken_[-1 - word];
    std::string text;
    for (const int letter : letters_[word]) text += (text.empty() ? "" : " ") + std::to_string(letter);
    return letters_[word].size() < longest_ ? text : text + " ..";
  }

 private:
  std::size_t longest_;
  std::vector<std::string> broken_;
  std::vector<std::vector<int>> letters_;
  std::map<std::vector<int>, Word> numbers_;
  std::unordered_map<std::uint64_t, Word> joined_;
  std::uint64_t last_key_ = ~std::uint64_t{0};
  Word last_ = 0;
};

/// An element's word, and its place in a rank's map: a decay, or after all decays a state.
struct Element {
  Word word = unwritten;
  std::int64_t place = 0;
};

class Run {
 public:
  Run(const WordScan& scan, std::span<const Schedule> schedules)
      : scan_(scan),
        decays_(scan.decays()),
        unit_(scan.form.unit(scan.row)),
        schedules_(schedules),
        words_(static_cast<int>(schedules.size())) {
    for (int rank = 0; rank < ranks(); ++rank) {
      auto& buffers = memory_.emplace_back();
      for (const Buffer& buffer : schedules[rank].buffers()) buffers.emplace_back(buffer.count);
      Element* own = at(rank, schedules[rank].buffer("own"));
      for (std::int64_t place = 0; place < decays_ + scan.rows * scan.row; ++place)
        own[place] = {rank, place};
    }
  }

  void run() {
    for (const Turn& turn : run_order(schedules_)) {
      const Step& step = schedules_[turn.rank].steps()[turn.step];
      if (step.verb == Verb::send) copy(at(step.peer, turn.into), turn.rank, step.reads[0]);
      if (step.verb == Verb::copy) copy(at(turn.rank, step.writes[0]), turn.rank, step.reads[0]);
      if (step.verb == Verb::combine) combine(turn.rank, turn.step, step);
    }
  }

  /// Throws ScheduleError unless each rank has its prefix.
  void require_prefixes() {
    std::vector<int> before;
    for (int i = 0; i < ranks(); ++i) {
      const int rank = scan_.is_reversed ? ranks() - 1 - i : i;
      require(rank, i == 0 ? unwritten : words_.number(before));
      before.push_back(rank);
    }
  }

 private:
  int ranks() const { return static_cast<int>(schedules_.size()); }
  Element* at(int rank, const Slice& slice) { return memory_[rank][slice.buffer].data() + slice.offset; }

  void copy(Element* into, int rank, const Slice& from) { std::copy_n(at(rank, from), from.count, into); }

  /// Runs a combine on words. The operands lie as those of combine_on_host do.
  void combine(int rank, int index, const Step& step) {
    const bool composes = step.writes.size() == 2;
    const Element* earlier = at(rank, step.reads[composes ? 1 : 0]);
    const Element* decay = at(rank, step.reads[composes ? 2 : 1]);
    const Element* later = at(rank, step.reads[composes ? 3 : 2]);
    Element* into = at(rank, step.writes.back());
    const auto [form, row] = step.combine;
    const std::int64_t rows = step.writes.back().count / row;
    const bool is_affine = form.kind == MapKind::affine;
    for (std::int64_t i = 0; i < rows; ++i) {
      const Element by = whole(decay + (form.first + i) / form.share * unit_, unit_, rank, index, step);
      Element before = is_affine ? whole(earlier + i * row, row, rank, index, step) : Element{};
      for (std::int64_t j = i * row; j < (i + 1) * row; ++j, ++before.place)
        into[j] = applied(is_affine ? before : earlier[j], by, later[j], rank, index, step);
    }
    if (composes) compose(at(rank, step.writes[0]), at(rank, step.reads[0]), decay, rank, index, step);
  }

  void compose(Element* into, const Element* earlier, const Element* later, int rank, int index,
               const Step& step) {
    for (std::int64_t i = 0; i < step.writes[0].count; ++i)
      into[i] = {earlier[i].place == later[i].place ? words_.join(earlier[i].word, later[i].word)
                                                    : mixed("decays of two rows", rank, index, step),
                 later[i].place};
  }

  /// The element that stands for `count` elements read as one row or matrix. It is the first of
  /// them if the others follow it in a rank's map and have its word, and invalid otherwise.
  Element whole(const Element* elements, std::int64_t count, int rank, int index, const Step& step) {
    for (std::int64_t i = 1; i < count; ++i) {
      const Word broken = std::min(elements[0].word, elements[i].word);
      if (broken < 0) return {broken, elements[0].place};
      if (elements[i].word != elements[0].word || elements[i].place != elements[0].place + i)
        return {mixed("a row or a matrix of parts", rank, index, step), elements[0].place};
    }
    return elements[0];
  }

  Element applied(const Element& earlier, const Element& decay, const Element& later, int rank, int index,
                  const Step& step) {
    const Word word = words_.join(earlier.word, later.word);
    if (word < 0 || decay.word < 0) return {std::min(word, decay.word), later.place};
    if (earlier.place != later.place) return {mixed("two states' elements", rank, index, step), later.place};
    const std::int64_t row = (later.place - decays_) / scan_.row;
    if (later.place < decays_ || decay.place != row / scan_.form.share * unit_)
      return {mixed("a state and another row's decay", rank, index, step), later.place};
    if (decay.word != later.word)
      return {
          mixed("the state of " + words_.text(later.word) + " and the decay of " + words_.text(decay.word),
                rank, index, step),
          later.place};
    return {has_form(step) ? word : mixed("maps of another form", rank, index, step), later.place};
  }

  bool has_form(const Step& step) const {
    MapForm whole = step.combine.form;
    whole.first = 0;
    return whole == scan_.form && step.combine.row == scan_.row;
  }

  Word mixed(const std::string& what, int rank, int index, const Step& step) {
    return words_.broken(what + ", combined by rank " + std::to_string(rank) + " in " +
                         step_name(step, index));
  }

  void require(int rank, Word expected) {
    const Slice into = schedules_[rank].buffer("into");
    for (std::int64_t i = 0; i < into.count; ++i) {
      const Element& element = at(rank, into)[i];
      if (element.word == expected && (expected == unwritten || element.place == decays_ + i)) continue;
      std::string what = scan_.name + ": rank " + std::to_string(rank) + " has " + words_.text(element.word);
      if (element.word != expected)
        what += ", must have " + (expected == unwritten ? "nothing" : words_.text(expected));
      else
        what += " of element " + std::to_string(element.place - decays_) + " in element " + std::to_string(i);
      throw ScheduleError(what);
    }
  }

  const WordScan& scan_;
  std::int64_t decays_;  // elements of them in a map
  std::int64_t unit_;    // elements of one
  std::span<const Schedule> schedules_;
  Words words_;
  std::vector<std::vector<std::vector<Element>>> memory_;  // by rank and buffer
};

}  // namespace

bool has_words(std::span<const Schedule> schedules) {
  const auto takes_numbers = [](const Step& step) {
    return step.verb == Verb::compute || step.verb == Verb::native;
  };
  return std::none_of(schedules.begin(), schedules.end(), [&](const Schedule& schedule) {
    return std::any_of(schedule.steps().begin(), schedule.steps().end(), takes_numbers);
  });
}

void run_on_words(const WordScan& scan, std::span<const Schedule> schedules) {
  Run run(scan, schedules);
  run.run();
  run.require_prefixes();
}

}  // namespace baton
