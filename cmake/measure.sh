# SPDX-License-Identifier: Apache-2.0
#
# What `./run bench` measures, and how: sourced by ./run. Each line of arguments runs in three launches or more, as many as
# fit into its --for. The suite fits the machine: `cores` that this shell may use and `gpus`.

readonly calibration=$results/calibration.json machine=$results/machine.json
readonly gpu_collectives=$results/gpu_collectives.jsonl gpu_operators=$results/gpu_operators.jsonl
readonly models=$results/models.jsonl
readonly simulated_collectives=$results/simulated_collectives.jsonl
readonly simulated_operators=$results/simulated_operators.jsonl
readonly gpu_calibration=$results/gpu_calibration.json simulated_gpu_operators=$results/simulated_gpu_operators.jsonl
readonly gpu_links=topologies/dgx-h100-32x8.json # those of the GPUs that one GPU stands for
readonly calibrating_seconds=30

# The powers of two from 2 to N: "2,4,8"; at least "2".
powers_of_two() {
  local n ranks=2
  for ((n = 4; n <= $1; n *= 2)); do ranks+=,$n; done
  echo "$ranks"
}

# Every exchange over few ranks at the paper's shape; the main ones over more ranks, and over sizes. A rank of an exchange
# keeps one core busy. All-gathers among many ranks would take most of the time.
suite_of_collective_bench() {
  local main=all_scan,ring_scan,all_gather_scan,recursive_doubling,two_shot
  local few=$((cores < 8 ? cores : 8)) small many
  many=$(powers_of_two "$cores")
  if ((gpus > 1)); then
    echo "--executor peer,nccl --collectives all --ranks $(powers_of_two "$gpus") -b 128K -e 32M -f 16 --tokens 256" \
      "--cadence isolated,graph --baseline all_gather_scan -J $gpu_collectives --for 120"
  fi
  small=$(powers_of_two "$few")
  # Beside GPUs the processors are no more than a comparison.
  ((gpus == 0)) || small=${small##*,}
  echo "--collectives all --ranks $small --tokens 512 --baseline all_gather_scan --for 30"
  ((gpus == 0)) || return 0
  ((cores < 16)) || echo "--collectives $main --ranks ${many#2,4,8,} --baseline all_gather_scan --for 60"
  echo "--collectives $main --ranks ${many##*,} -b 64K -e 16M -f 4 --baseline all_gather_scan --for 60"
}

# The papers' methods with few tokens; all passes and modes of every method. A rank of a layer keeps two cores busy.
suite_of_operator_bench() {
  local ranks layers="--methods zeco,lasp1,lasp2,local --baseline local"
  local on_gpus="--dtype bf16 --tokens 16384 --heads 16 --mode all -J $gpu_operators --for 75"
  ranks=$(powers_of_two $((cores / 2)))
  if ((gpus > 1)); then
    echo "--executor peer $layers --ranks $(powers_of_two "$gpus") $on_gpus"
  elif ((gpus == 1)); then
    echo "--executor nccl --methods local --ranks 1 --topology $gpu_links --calibrate $gpu_calibration $on_gpus"
  fi
  ((gpus == 0)) || ranks=${ranks##*,}
  echo "$layers --tokens 512 --heads 4 --mode all --ranks $ranks --for 45"
  # On fewer than four cores layers compare nothing, so that one line shows them.
  ((gpus == 0 && cores >= 4)) || return 0
  echo "--methods all --tokens 256 --heads 4 --ranks ${ranks##*,} --baseline local --for 60"
}

# A small model, forward and backward, under the papers' methods. A rank keeps two cores busy.
suite_of_model_bench() {
  local ranks
  ranks=$(powers_of_two $((cores < 16 ? cores / 2 : 8)))
  echo "--methods zeco,lasp1,lasp2 --tokens 128 --rounds 10 --ranks ${ranks##*,} -J $models --for 10"
}

# One launch that measures links and kernels for the simulator.
calibrating() {
  echo "--methods zeco,lasp1,lasp2,local --tokens 512 --heads 4 --ranks $((cores < 8 ? 2 : 8))" \
    "--calibrate $calibration --launches 1 -J /dev/null"
}

# More GPUs than the one that was measured.
simulated_gpus() {
  echo "--executor simulator --topology $gpu_calibration --ranks 2,4,8,16,32,64,128,256 --methods zeco,lasp1,lasp2,local" \
    "--dtype bf16 --tokens 16384 --heads 16 --mode all --baseline local --launches 1 -J $simulated_gpu_operators"
}

# More ranks than the machine has, from its own calibration.
simulated() {
  local on="--executor simulator --topology $machine --ranks 2,4,8,16,32,64,128,256 --tokens 512 --launches 1"
  case $1 in
    collective_bench)
      echo "$on --collectives all_scan,ring_scan,all_gather_scan,recursive_doubling,two_shot" \
        "--baseline all_gather_scan -J $simulated_collectives"
      ;;
    operator_bench) echo "$on --methods zeco,lasp1,lasp2,local --heads 4 --baseline local -J $simulated_operators" ;;
  esac
}

# Builds each bench just before its launches, so that the first rows come after one build and not after two.
measure_all() {
  local program lines
  outcome=0
  mkdir -p "$results"
  say_how_long
  for program in "${benches[@]}" model_bench; do
    [[ $program != model_bench ]] || has_models || continue
    build "$preset" "$program"
    step "measuring with $program (records: $results/)"
    mapfile -t lines < <("suite_of_$program")
    launch_all "$program" "${lines[@]}"
    ((outcome != 130)) || return 0
  done
  step "tracing the fastest and the slowest, calibrating, simulating more ranks than there are here"
  trace_ends
  ((outcome != 130)) || return 0
  if ((gpus == 1)) && [[ -s $gpu_calibration ]]; then
    launch_all operator_bench "$(simulated_gpus)" >"$log_dir/simulated-gpus.log"
    ((outcome != 130)) || return 0
  fi
  launch_all operator_bench "$(calibrating)" >"$log_dir/calibrating.log"
  [[ -s $calibration ]] && ((outcome != 130)) || return 0
  python3 -m baton grow "$calibration" --out "$machine" || return 0
  for program in "${benches[@]}"; do
    launch_all "$program" "$(simulated "$program")" >"$log_dir/simulated-$program.log"
  done
}

# False if CMake found no library for the products of models.
has_models() {
  ! grep -q '^OpenBLAS_DIR:PATH=.*-NOTFOUND' "build/$preset/CMakeCache.txt"
}

# One more round of the fastest and of the slowest row of the answer, with the time of each step, for the page. A trace that
# fails costs the run nothing.
trace_ends() {
  local line words status
  : >"$log_dir/traces.log"
  while read -r line; do
    read -ra words <<<"$line"
    status=0
    (
      outcome=0
      launch "${words[@]}" -T 60 --launches 1 -J /dev/null
      exit "$outcome"
    ) >>"$log_dir/traces.log" || status=$?
    ((status != 130)) || outcome=130
    ((outcome != 130)) || return 0
  done < <(python3 -m baton report --traces --session "$session" "$results")
}

# measure ARGS...: one run of a bench with the user's own arguments.
measure() {
  local program=$1
  shift
  outcome=0
  mkdir -p "$results"
  build "$preset" "$program"
  step "measuring with $program (records: $results/)"
  launch "$program" "$@"
}

say_how_long() {
  local program seconds=$((gpus > 0 ? 2 * calibrating_seconds : calibrating_seconds)) line
  for program in "${benches[@]}" model_bench; do
    while read -r line; do seconds=$((seconds + ${line##*--for })); done < <("suite_of_$program")
  done
  echo "      measuring takes about $((seconds / 60)) min $((seconds % 60)) s after the build," \
    "on $cores cores and $gpus GPUs"
}

# launch_all PROGRAM LINE... Rows of a suite that cannot run here, all of a launch's too, are no failure.
launch_all() {
  local program=$1 arguments line before
  shift
  for line; do
    echo "      $program $line"
    [[ $line == *--launches* ]] || line="--launches 3 $line"
    read -ra arguments <<<"$line"
    before=$outcome
    launch "$program" -T 60 "${arguments[@]}"
    ((outcome != 6)) || outcome=$before
    ((outcome != 130)) || return 0
  done
}

# launch PROGRAM ARGS...: records go to results/local unless ARGS name another file. A launch with failed, wrong or
# interrupted cases has kept the others, so what follows still runs; `outcome` is the code to end with.
launch() {
  local program=$1 status=0 records=()
  shift
  names_records "$@" || records=(-J "$(records_of "$program")")
  # Ctrl-C reaches the bench, which ends in good order; this script then reports what there is.
  trap : INT
  "build/$preset/bin/$program" "$@" "${records[@]}" --session "$session" || status=$?
  trap - INT
  ((status == 0)) && return
  echo "run: $program ended with status $status; what it had measured is kept" >&2
  outcome=$status
  case $status in 3 | 4 | 5 | 6 | 130) ;; *) exit "$status" ;; esac
}

records_of() {
  case $1 in
    operator_bench) echo "$results/operators.jsonl" ;;
    model_bench) echo "$models" ;;
    *) echo "$results/collectives.jsonl" ;;
  esac
}

# True if ARGS name the file of the records.
names_records() {
  local word
  for word; do
    case $word in -J* | --json | --json=*) return 0 ;; esac
  done
  return 1
}

# True if ARGS measure something and leave records in results/local.
leaves_records() {
  local word
  for word; do
    case $word in -h | --help | --list | --dry-run | --benchmark_list_tests*) return 1 ;; esac
  done
  ! names_records "$@"
}
