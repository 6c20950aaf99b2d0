# SPDX-License-Identifier: Apache-2.0
#
# What `./run bench` measures: one line, one launch. About four minutes on two cores altogether.

# collective_bench: every exchange at the paper's shape over the ranks; the backward pass; the state cut into more and
# more blocks; the executor against its yardstick.
readonly suite=(
  "--collectives all --ranks 2,3,4 --baseline all_gather_scan"
  "--collectives all_scan,ring_scan,all_gather_scan,recursive_doubling,two_shot --direction reverse --baseline all_gather_scan"
  "--collectives all_scan --blocks 1,4,16,64"
  "--collectives all_scan,all_scan_by_hand --baseline all_scan_by_hand --blocks 16 --ranks 2,4 -b 64K -e 16M -f 4"
)

# operator_bench: where the time of every method goes, with few tokens since some methods are quadratic in them; the
# papers' four lines over the ranks.
readonly operator_suite=(
  "--methods all --tokens 256 --heads 4 --pass all --mode all --ranks 4"
  "--methods zeco,lasp1,lasp2,local --tokens 512 --heads 4 --ranks 2,3,4"
)

# The GPUs of this host, as many ranks as there are: the exchanges between them and the papers' four lines on them, with
# the share that is hidden. One GPU measures the local work alone. About a minute.
gpu_suite() {
  local layers="--dtype bf16 --tokens 16384 --heads 16 --mode all --ranks $gpus -J $gpu_operators"
  if ((gpus > 1)); then
    echo "collective_bench --executor peer,peer_bf16,nccl --collectives all --ranks $gpus -b 128K -e 32M -f 4" \
      "--tokens 256 --cadence isolated,graph --baseline all_gather_scan -J $gpu_collectives"
    echo "operator_bench --executor peer --methods zeco,lasp2,lasp1,local $layers"
  elif ((gpus == 1)); then
    echo "operator_bench --executor nccl --methods local $layers"
  fi
}
