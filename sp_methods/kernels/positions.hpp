// SPDX-License-Identifier: Apache-2.0
// Where the tokens of ranks stand in the whole sequence, and which of them a query sees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

namespace baton {

/// Ascending positions of one rank's tokens in the whole sequence. The first `split` tokens start
/// at `first`, the others at `second`, with a step of `stride`.
struct Positions {
  std::int64_t first = 0;
  std::int64_t second = 0;
  std::int64_t split = 0;
  std::int64_t stride = 1;

  /// Positions of `count` tokens that are one run of the sequence.
  static Positions run(std::int64_t first, std::int64_t count) { return {first, 0, count}; }
  /// True if all tokens are one run, false if there are two, of which the second may be empty.
  bool is_run() const { return second == 0; }

  /// The global position of local token t.
  std::int64_t at(std::int64_t t) const {
    return t < split ? first + t * stride : second + (t - split) * stride;
  }

  /// Number of tokens, among `tokens` ones, that stand at or before a global position. They are the
  /// first ones.
  std::int64_t visible(std::int64_t position, std::int64_t tokens) const {
    return reached(position - first, split) + reached(position - second, tokens - split);
  }

  /// The positions of the last `count` of these `tokens` tokens.
  Positions last(std::int64_t count, std::int64_t tokens) const {
    const std::int64_t skipped = tokens - count;
    if (skipped < split) return {at(skipped), second, split - skipped, stride};
    return {at(skipped), 0, count, stride};
  }

 private:
  /// Number of tokens at or before a position, among `count` ones of which the first is `ahead`
  /// positions before it.
  std::int64_t reached(std::int64_t ahead, std::int64_t count) const {
    return ahead < 0 ? 0 : std::min(ahead / stride + 1, count);
  }
};

/// The keys that a query of softmax attention sees: those up to its own, or all.
enum class MaskKind { causal, full };

/// The keys of a sequence that a query at position p sees: those at the positions lower(p) to
/// upper(p). Neither end falls as p grows, so each query sees one run of keys whose positions
/// ascend.
struct Mask {
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  MaskKind kind = MaskKind::causal;
  /// The position behind the last token. What ranks have from there on is padding, which a full
  /// mask hides.
  std::int64_t end = unlimited;
  /// The most keys that a query of a causal mask sees, its own one and those just before it.
  std::int64_t window = unlimited;
  /// Positions, ascending from 0, at which packed documents start, whose queries see no key of
  /// another one. Null if all tokens are one document.
  std::shared_ptr<const std::vector<std::int64_t>> starts = nullptr;

  /// The same mask within documents that start at `all`, positions that ascend from 0. None of them
  /// means one document.
  Mask within(const std::vector<std::int64_t>& all) const {
    Mask mask = *this;
    if (!all.empty()) mask.starts = std::make_shared<const std::vector<std::int64_t>>(all);
    return mask;
  }
  bool has_window() const { return window != unlimited; }
  /// True if a query may see no key at the start of the sequence.
  bool hides_first_keys() const { return has_window() || starts; }
  std::int64_t lower(std::int64_t position) const {
    const std::int64_t start = starts ? *(next_start(position) - 1) : 0;
    return has_window() ? std::max(start, position - window + 1) : start;
  }
  std::int64_t upper(std::int64_t position) const {
    if (kind == MaskKind::causal) return position;
    return starts && next_start(position) != starts->end() ? std::min(end, *next_start(position)) - 1
                                                           : end - 1;
  }
  /// The least position of a query that may see a key at `position`.
  std::int64_t first_query(std::int64_t position) const {
    return kind == MaskKind::causal ? position : lower(position);
  }

  bool operator==(const Mask&) const = default;

 private:
  std::vector<std::int64_t>::const_iterator next_start(std::int64_t position) const {
    return std::upper_bound(starts->begin(), starts->end(), position);
  }
};

/// How a sequence lies on the ranks: one run a rank; a piece from the front and its mirror from the
/// back; or token by token in turn.
enum class Layout { contiguous, zigzag, striped };

/// Tokens of one rank that follow one another in the sequence.
struct Run {
  std::int64_t rank = 0;
  std::int64_t first = 0;  ///< The first of them among the tokens of the rank.
  std::int64_t count = 0;
  bool operator==(const Run&) const = default;
};

/// The `rows` tokens before run `of`, as parts of other runs, the earliest first; fewer where the
/// sequence starts. `runs` are all runs in the order of the sequence, short and empty ones too.
inline std::vector<Run> halo(std::span<const Run> runs, std::size_t of, std::int64_t rows) {
  std::vector<Run> parts;
  while (rows > 0 && of > 0) {
    const Run& before = runs[--of];
    const std::int64_t count = std::min(rows, before.count);
    if (count == 0) continue;
    parts.push_back({before.rank, before.first + before.count - count, count});
    rows -= count;
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

/// The rule by which ranks share the tokens of a sequence: as many on each, with padding behind
/// them; in pieces that differ by one token at most, the longer ones first; in pieces as long as
/// with padding, the last of them short or empty; or as many on each rank as are given.
enum class ShareRule { padded, even, last, given };

/// How the tokens of a sequence are shared among ranks.
struct Shares {
  ShareRule rule = ShareRule::padded;
  std::int64_t sequence = 0;             ///< Number of all tokens, unless they are padded.
  std::vector<std::int64_t> given = {};  ///< Tokens of each rank, if they are given.

  bool are_equal() const { return rule == ShareRule::padded; }
  bool operator==(const Shares&) const = default;
};

/// A sequence cut over ranks.
struct Cut {
  Layout layout = Layout::contiguous;
  std::int64_t ranks = 1;
  std::int64_t tokens = 0;  ///< Tokens of a rank, of the one that has most if they differ.
  /// The first position of each piece in the order of the sequence, and the end of the last one, or
  /// both ends of a strided sequence. Empty if all ranks have as many tokens.
  std::vector<std::int64_t> edges = {};

  /// The cut into these shares. `tokens` are those of a rank if all have as many.
  static Cut of(Layout layout, std::int64_t ranks, std::int64_t tokens, const Shares& shares) {
    Cut cut{layout, ranks, tokens};
    if (shares.are_equal()) return cut;
    if (layout == Layout::striped)
      cut.edges = {0, shares.sequence};
    else
      for (std::int64_t place = cut.edges.emplace_back(0); place < ranks * cut.pieces(); ++place)
        cut.edges.push_back(cut.edges.back() + cut.shared_piece(place, shares));
    cut.tokens = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) cut.tokens = std::max(cut.tokens, cut.share(rank));
    return cut;
  }
  /// The cut into equal pieces with the least room for `sequence` tokens. Behind them is padding.
  static Cut padded(Layout layout, std::int64_t ranks, std::int64_t sequence) {
    Cut cut{layout, ranks};
    const std::int64_t pieces = ranks * cut.pieces();
    cut.tokens = cut.pieces() * ((sequence + pieces - 1) / pieces);
    return cut;
  }

  std::int64_t sequence() const { return edges.empty() ? ranks * tokens : edges.back(); }
  /// Number of tokens of a rank.
  std::int64_t share(std::int64_t rank) const {
    if (edges.empty()) return tokens;
    if (layout == Layout::striped) return (sequence() - rank + ranks - 1) / ranks;
    return piece(rank, 0) + (pieces() == 1 ? 0 : piece(rank, 1));
  }
  /// The tokens of the rank that has fewest.
  std::int64_t least() const {
    std::int64_t fewest = tokens;
    for (std::int64_t rank = 0; rank < ranks && !edges.empty(); ++rank)
      fewest = std::min(fewest, share(rank));
    return fewest;
  }
  /// Number of runs of the sequence that a rank has, if they are not strided.
  int pieces() const { return layout == Layout::zigzag ? 2 : 1; }
  /// Number of tokens of a rank's piece, if they are not strided. With zigzag the piece from the
  /// front has the odd token.
  std::int64_t piece(std::int64_t rank, int i) const {
    if (!edges.empty()) return edges[place(rank, i) + 1] - edges[place(rank, i)];
    return layout != Layout::zigzag ? tokens : i == 0 ? tokens - tokens / 2 : tokens / 2;
  }
  /// Number of tokens of all pieces from the front, if they are not strided.
  std::int64_t fronts() const { return edges.empty() ? ranks * piece(0, 0) : edges[ranks]; }
  /// The place of a rank's piece among the pieces in the order of the sequence.
  std::int64_t place(std::int64_t rank, int i) const { return i == 0 ? rank : 2 * ranks - 1 - rank; }
  /// The pieces of all ranks in the order of the sequence, if they are not strided.
  std::vector<Run> runs() const {
    std::vector<Run> all(ranks * pieces());
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < pieces(); ++i)
        all[place(rank, i)] = {rank, i == 0 ? 0 : piece(rank, 0), piece(rank, i)};
    return all;
  }

  /// True if a rank's piece has no token, if they are not strided.
  bool has_empty_piece() const { return std::ranges::count(runs(), 0, &Run::count) > 0; }

  /// The positions of the tokens of `rank`.
  Positions positions(std::int64_t rank) const {
    if (layout == Layout::striped) return {rank, 0, share(rank), ranks};
    if (layout == Layout::contiguous) return Positions::run(first(rank, 0), share(rank));
    return {first(rank, 0), first(rank, 1), piece(rank, 0)};
  }

 private:
  /// The position of the first token of a rank's piece.
  std::int64_t first(std::int64_t rank, int i) const {
    if (!edges.empty()) return edges[place(rank, i)];
    return i == 0 ? rank * piece(rank, 0) : sequence() - (rank + 1) * piece(rank, 1);
  }
  /// Number of tokens of the piece at a place.
  std::int64_t shared_piece(std::int64_t place, const Shares& shares) const {
    const std::int64_t all = ranks * pieces(), sequence = shares.sequence;
    const std::int64_t longest = (sequence + all - 1) / all;
    if (shares.rule == ShareRule::even) return sequence / all + (place < sequence % all ? 1 : 0);
    if (shares.rule == ShareRule::last)
      return std::clamp<std::int64_t>(sequence - place * longest, 0, longest);
    const std::int64_t rank = place < ranks ? place : 2 * ranks - 1 - place;
    const std::int64_t own = rank < std::ssize(shares.given) ? shares.given[rank] : 0;
    return layout == Layout::contiguous ? own : place < ranks ? own - own / 2 : own / 2;
  }
};

}  // namespace baton
