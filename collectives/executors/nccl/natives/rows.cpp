// SPDX-License-Identifier: Apache-2.0
// The rows of NCCL's natives. Every build has them, since the simulator has times of them without a
// GPU; their bodies are in the .cu files beside this one.
//
// Gathered maps have one row for each way that NCCL gathers: between plain buffers, in a symmetric
// window, and in a window by the copy engines. Which algorithm runs is the library's choice, so
// nothing is claimed.
// Source: arXiv 2502.07563 (LASP-2).
#include <optional>
#include <string>

#include "collectives/collective.hpp"

namespace baton {
namespace {

std::optional<Cost> no_claim(const Shape&, const Split&) { return std::nullopt; }

Registered scan(const std::string& name, const std::string& how) {
  return Registered({
      .name = name,
      .kind = Kind::exclusive_scan,
      .summary = "native: LASP-2 as ncclAllGather of the maps " + how + " and a local fold",
      .build =
          [name](Schedule& s, const Operands& x) {
            const Slice own = x.own.packed(), maps = s.scratch("maps", s.ranks() * own.count);
            s.native(name, x.blocks, {x.into, maps}, {own});
          },
      .claim = no_claim,
  });
}

const Registered registered[]{
    scan("nccl_all_gather_scan", "between plain buffers"),
    scan("nccl_all_gather_scan_window", "in a symmetric window"),
    scan("nccl_all_gather_scan_copy_engine", "in a symmetric window by the copy engines"),
    Registered({
        .name = "nccl_all_gather",
        .kind = Kind::all_gather,
        .summary = "native: ncclAllGather",
        .build = [](Schedule& s,
                    const Operands& x) { s.native("nccl_all_gather", x.blocks, {x.into}, {x.own.state}); },
        .claim = no_claim,
    }),
    Registered({
        .name = "nccl_all_to_all",
        .kind = Kind::all_to_all,
        .summary = "native: ncclAlltoAll",
        .build = [](Schedule& s,
                    const Operands& x) { s.native("nccl_all_to_all", x.blocks, {x.into}, {x.own.state}); },
        .claim = no_claim,
    }),
    Registered({
        .name = "nccl_reduce_scatter",
        .kind = Kind::reduce_scatter,
        .summary = "native: ncclReduceScatter",
        .build =
            [](Schedule& s, const Operands& x) {
              s.native("nccl_reduce_scatter", x.blocks, {x.into}, {x.own.packed()});
            },
        .claim = no_claim,
    }),
};

}  // namespace
}  // namespace baton
