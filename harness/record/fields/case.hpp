// SPDX-License-Identifier: Apache-2.0
// What a case is: its names, and the axes that were asked for.
#pragma once

#include <array>

#include "harness/record/fields/field.hpp"

namespace baton::schema::part {

using enum Role;
using enum Type;
using enum Written;

// key, role, type, written, unit, title, flag, absent, help, is named
inline constexpr std::array of_case = std::to_array<Field>({
    {"schema", identity, whole, always, "", "", "", "1", "The version of these keys."},
    {"case", identity, text, always, "", "", "", "",
     "The name of the case without its cycle, with the blocks as asked. Two records with the same one are of "
     "the same case, in whatever run."},
    {"family", identity, text, always, "", "", "", "",
     "What executors compete on: GPUs for all of them on GPUs with an f32 wire, else the executor by "
     "itself."},
    {"contest", identity, text, always, "", "", "", "",
     "All that cases share which compete: their axes with the family in place of the executor. It has "
     "neither the cycle nor the machine: on one machine, records with the same text compete."},
    {"bench", axis, text, always, "", "", "", "", "The bench: collective, operator or model."},
    {"name", axis, text, always, "", "", "--collectives, --methods", "", "The collective or the method."},
    {"kind", axis, text, always, "", "", "", "", "The kind of a collective."},
    {"pass", axis, text, always, "", "pass", "--pass", "",
     "The passes of a layer that a round runs: forward, backward or both."},
    {"mode", axis, text, always, "", "mode", "--mode", "",
     "What a layer does with its exchange: overlapped, exposed, or compute_only without one."},
    {"direction", axis, text, always, "", "dir", "--direction", "",
     "The order of ranks: forward, reverse, or both for a layer with both passes."},
    {"attention", axis, text, always, "", "", "--attention", "",
     "The attention of a layer: linear, softmax, or the word of a delta rule."},
    {"layout", axis, text, always, "", "", "", "",
     "How the sequence lies on the ranks: contiguous, zigzag or other."},
    {"gate", axis, text, always, "", "", "--gate-kind", "",
     "The gates of a layer: one a channel (vector), one a head (scalar), or none."},
    {"gates", axis, text, always, "", "", "--gate-draw", "", "How the gates are drawn.", true},
    {"chunk", axis, whole, always, "tokens", "", "--chunk", "", "The tokens of a chunk."},
    {"dtype", axis, text, always, "", "", "--dtype", "",
     "The type of a layer's tensors: f32 or bf16; f32 where an old record has none."},
    {"groups", axis, whole, always, "", "", "--groups", "",
     "The head groups whose exchanges follow one another."},
    {"scan", axis, text, always, "", "", "--scan", "",
     "The exclusive scan that carries the states; empty without one."},
    {"model", axis, text, always, "", "", "--model", "", "The name of the model."},
    {"line", axis, text, always, "", "line", "--lines", "",
     "What of a method runs in a model: dp without a cut, split without the exchange, or full."},
    {"layers", axis, whole, always, "", "", "--layers", "", "The blocks of the model."},
    {"width", axis, whole, always, "", "", "--width", "", "The numbers of a hidden state."},
    {"mlp", axis, whole, always, "", "", "--mlp", "", "The numbers inside the MLP."},
    {"vocabulary", axis, whole, if_any, "", "", "--vocabulary", "0",
     "The rows of the model's embedding; 0 without embedding and head."},
    {"softmax", axis, text, if_any, "", "", "--softmax", "\"ring_attention_softmax\"",
     "The method of softmax layers beside linear ones.", true},
    {"beside", axis, text, always, "", "", "--fsdp, --head, --optimizer", "",
     "What a model's round has beside the blocks, in words; may be empty."},
    {"flops_per_token", axis, real, always, "flop", "", "", "",
     "What a token needs in this pass: of attention in a layer, of all weights too in a model."},
    {"flops_per_pair", axis, real, always, "flop", "", "", "",
     "What a token needs besides for each token of its sequence, in softmax attention."},
    {"peak_flops", axis, real, or_null, "flop per second", "", "--peak", "null",
     "What a rank could do, as the user said."},
    {"heads", axis, whole, always, "", "", "--heads", "", "The heads of a state, or of a layer's queries."},
    {"kv_heads", axis, whole, if_any, "", "", "--kv-heads", "0",
     "The heads of keys and values; 0 if they are as many as those of queries."},
    {"latent", axis, truth, if_any, "", "", "--mla", "false", "True if keys hold their values."},
    {"packed", axis, whole, if_any, "tokens", "", "--packed", "0",
     "The mean length of packed documents; 0 for one document."},
    {"kernel", axis, text, if_any, "", "", "--kernel", "\"\"",
     "Who computes softmax blocks on GPUs: own, also where an old record has none, or cudnn; empty "
     "elsewhere."},
    {"kernel_version", machine, text, if_any, "", "", "", "\"\"",
     "The version of kernels that are not ours."},
    {"d_k", axis, whole, always, "", "", "--d-k", "",
     "The key channels of a head, which are rows of a state."},
    {"d_v", axis, whole, always, "", "", "--d-v", "",
     "The value channels of a head, which are columns of a state."},
    {"map", axis, text, if_any, "", "", "--map", "\"diagonal\"",
     "The kind of a rank's map: diagonal, scalar or affine.", true},
    {"tokens", axis, whole, always, "tokens", "tokens", "--tokens", "", "The tokens of a rank."},
    {"implementation", identity, text, always, "", "", "", "\"schedule\"",
     "The word schedule, or the name of the native that ran in its place."},
    {"executor", axis, text, always, "", "run by", "--executor", "",
     "What ran the schedules; simulator for virtual time."},
    {"ranks", axis, whole, always, "", "P", "--ranks", "", "The number of ranks."},
    {"ranks_per_node", axis, whole, always, "", "", "--ranks-per-node", "0",
     "The ranks of a full node, as asked or as the hosts or the simulated machine have them; 0 if all share "
     "one."},
    {"ranks_per_gpu", axis, whole, if_any, "", "", "--ranks-per-gpu", "1",
     "The ranks that take turns on one GPU; with more than one, times are no measure of a link."},
    {"threads_per_rank", axis, whole, if_any, "", "", "--threads-per-rank", "2",
     "The busy threads of a rank of a layer on processors: 2 if one computes while the other exchanges, 1 "
     "if one does both by turns."},
    {"state_bytes", axis, whole, always, "bytes", "state", "--min-bytes", "",
     "The size of one rank's state, without its decay."},
    {"blocks", result, whole, always, "", "K", "", "", "The blocks that a state was cut into."},
    {"blocks_asked", axis, text, always, "", "", "--blocks", "",
     "The blocks that were asked for: a number, or auto for those that the model chose."},
    {"cadence", axis, text, always, "", "cadence", "--cadence", "",
     "How rounds follow one another: isolated, streaming or graph."},
    {"cycle", axis, whole, always, "", "", "--cycles", "0",
     "The repetition of the sweep, from 1; 0 if there is only one."},
    {"warmup", axis, whole, always, "", "", "--warmup", "", "The rounds before the measured ones."},
    {"rounds", axis, whole, always, "", "", "--rounds", "", "The measured rounds, as asked."},
});

}  // namespace baton::schema::part
