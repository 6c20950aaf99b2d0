#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures what needs several GPUs of one host, and prints a short table last:
#
#     results/several_gpus.sh BUILD OUT RANKS [SECONDS [STEP...]]
#
# BUILD is a build of preset cuda, OUT the folder that gets the records and the benches' tables, RANKS the GPUs: 2, 4 or 8.
# A step that has less time left than it needs is left out, and each keeps what it had measured when its time ended.
# SECONDS is 570 by default, and all steps run unless some are named.
set -uo pipefail

readonly build=$1 out=$2 ranks=$3 limit=${4:-570} wanted=" ${*:5} "
readonly layer="--executor peer --dtype bf16 --heads 16 --ranks $ranks --baseline local"
readonly model="--executor peer,nccl --ranks $ranks --model gla-1b-h16 --layers 2 --tokens 16384 --methods zeco"
readonly own=all_scan_fused,all_scan_fused_16,all_scan,auto_scan,two_shot,two_shot_fused,ring_scan,recursive_doubling
readonly scans=$own,doubling_123,all_gather_scan,all_gather_scan_direct,all_gather_scan_bruck,all_gather_scan_trimmed
readonly nccl_scans=nccl_all_gather_scan,nccl_all_gather_scan_window,nccl_all_gather_scan_copy_engine
export NCCL_NVLS_ENABLE=0
mkdir -p "$out"

# step NAME SECONDS COMMAND...: runs a command for at most so long, with its output in a file of that name.
step() {
  local name=$1 seconds=$2 begun=$SECONDS
  [[ $wanted == "  " || $wanted == *" $name "* ]] || return 0
  if ((SECONDS + seconds > limit)); then
    echo "$name: left out, $((limit - SECONDS)) s are left"
    return
  fi
  timeout -s INT -k 20 "$seconds" "${@:3}" >"$out/$name.txt" 2>&1
  echo "$name: exit $? after $((SECONDS - begun)) s"
}

# bench NAME SECONDS BENCH ARGUMENTS...: one launch after the other of a bench, with its records in a file of that name.
bench() {
  step "$1" "$2" "$build/bin/$3" -T 60 --session "$ranks-gpus" -J "$out/$1.jsonl" "${@:4}"
}

# stopped NAME SIGNAL: what a user reads when one rank gets a signal in the middle of its rounds.
stopped() {
  step "$1" 60 bash -c "$build/bin/collective_bench -T 10 --executor peer --collectives all_scan --ranks $ranks -n 900000 &
    sleep 6; pkill -$2 -n collective_ben; wait \$!; echo exit \$?"
}

# shellcheck disable=SC2086 # the words of $layer and $model are arguments
{
  stopped rank_stopped STOP
  stopped rank_killed KILL
  bench two_shot 40 collective_bench --executor peer --collectives two_shot,two_shot_fused,all_scan_fused,all_scan,auto_scan \
    --ranks $ranks -b 256K -e 1M --tokens 64 --baseline all_scan_fused --launches 3
  bench linear_layers 120 operator_bench $layer --tokens 16384 --methods zeco,lasp1,lasp2,local --pass all -n 30 --launches 3
  bench linear_modes 120 operator_bench $layer --tokens 16384 --mode all --pass all --methods \
    zeco,lasp1,lasp2,lasp1_as_released,lasp2_as_released,local -n 30
  bench longer_layers 60 operator_bench $layer --tokens 32768 --methods zeco,lasp1,lasp2,local --pass all -n 30
  bench delta_layers 120 operator_bench $layer --tokens 16384 --attention gdn,kda --methods \
    zeco,zeco_corrected,lasp2,linear_doubling,linear_two_shot,ulysses,local --pass all -n 30 --launches 3
  bench softmax_layers 120 operator_bench --executor peer --dtype bf16 --heads 16 --ranks $ranks --tokens 16384 --methods \
    ring_attention_softmax,ring_attention_zigzag,token_ring,token_ring_zigzag,ulysses_softmax,mesh_attention_zigzag \
    --mode overlapped,exposed --pass forward,both -n 20
  bench matrix_maps 60 collective_bench --executor peer,nccl --map affine --collectives \
    all_scan,two_shot,ring_scan,recursive_doubling,all_gather_scan --ranks $ranks -b 256K -e 16M -f 4 --tokens 64 \
    --baseline all_scan --launches 3
  bench models 90 model_bench $model --lines all --rounds 20 --launches 2
  bench prefill 90 model_bench --executor peer --ranks $ranks --model qwen3.5-9b --layers 4 --tokens 8192 --pass forward \
    --methods zeco,lasp2,whole --softmax all_gather_kv --lines full --rounds 20
  bench sharded_models 90 model_bench $model --lines dp,full --fsdp --rounds 20 --launches 2
  bench exchanges 120 collective_bench --executor peer,peer_bf16,nccl --collectives $scans,$nccl_scans \
    --ranks $ranks -b 256K -e 16M -f 2 --tokens 64 --baseline all_scan --launches 3
  bench replayed 60 collective_bench --executor peer,nccl --collectives $scans,$nccl_scans --cadence graph \
    --ranks $ranks -b 256K -e 16M -f 2 --tokens 64 --baseline all_scan
  for executor in peer nccl; do
    bench predicted_$executor 60 collective_bench --executor $executor --calibrate "$out/calibration-$executor.json" \
      --collectives $scans --ranks "$(seq -s , 2 2 "$ranks")" -b 64K -e 16M -f 4 --tokens 64
  done
  bench repeated 60 collective_bench --executor peer --collectives all_scan,two_shot,ring_scan,all_gather_scan \
    --ranks $ranks -b 64K -e 4M -f 2 --tokens 64 -N 2 --launches 12
  bench model_trace 30 model_bench ${model/peer,} --lines full --fsdp --rounds 5 --trace "$out/model-trace.json"
}

python3 - "$out" <<'TABLE'
import json, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.jsonl")):
    last = {}
    for line in path.open():
        row = json.loads(line)
        if "median_seconds" not in row:
            continue
        last[row.get("contest", ""), row["executor"], row["name"], row.get("attention"), row.get("pass"), row.get("mode"),
             row.get("line"), row["state_bytes"], row.get("cycle")] = row
    for key, row in last.items():
        of = row.get("over_launches") or row
        print(path.stem, *(str(word) for word in key[1:] if word is not None), f"{of['median_seconds'] * 1e3:.4f} ms",
              of.get("ratio") and f"{of['ratio']:.3f}", sep=" ")
TABLE
