# SPDX-License-Identifier: Apache-2.0
#
# What `./run bench` measures: each line in three launches. About ten minutes on two cores altogether. Where there are GPUs,
# `gpus` of them, their launches follow, about a minute: as many ranks as GPUs, and on one GPU the local work alone.

# Every exchange at the paper's shape over the ranks; the backward pass; the state cut into more and more blocks; the
# executor against its yardstick.
suite_of_collective_bench() {
  cat <<'LINES'
--collectives all --ranks 2,3,4 --tokens 512 --baseline all_gather_scan
--collectives all_scan,ring_scan,all_gather_scan,recursive_doubling,two_shot --direction reverse --baseline all_gather_scan
--collectives all_scan --blocks 1,4,16,64
--collectives all_scan,all_scan_by_hand --baseline all_scan_by_hand --blocks 16 --ranks 2,4 -b 64K -e 16M -f 4
LINES
  ((gpus > 1)) || return 0
  echo "--executor peer,peer_bf16,nccl --collectives all --ranks $gpus -b 128K -e 32M -f 4 --tokens 256" \
    "--cadence isolated,graph --baseline all_gather_scan -J $gpu_collectives"
}

# Where the time of every method goes, with few tokens since some methods are quadratic in them; the papers' four lines
# over the ranks.
suite_of_operator_bench() {
  cat <<'LINES'
--methods all --tokens 256 --heads 4 --pass all --mode all --ranks 4
--methods zeco,lasp1,lasp2,local --tokens 512 --heads 4 --ranks 2,3,4
LINES
  local layers="--dtype bf16 --tokens 16384 --heads 16 --mode all --ranks $gpus -J $gpu_operators"
  if ((gpus > 1)); then
    echo "--executor peer --methods zeco,lasp2,lasp1,local $layers"
  elif ((gpus == 1)); then
    echo "--executor nccl --methods local $layers"
  fi
}
