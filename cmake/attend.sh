# SPDX-License-Identifier: Apache-2.0
#
# How a signal to `./run` ends all that it has started.

readonly -A signal_numbers=([HUP]=1 [INT]=2 [QUIT]=3 [TERM]=15)

# leave_on_signals: from here on a signal ends this script with its code; `attended` looks after what runs meanwhile.
leave_on_signals() {
  local name
  for name in "${!signal_numbers[@]}"; do
    # shellcheck disable=SC2064 # the name is that of now
    trap "exit $((128 + signal_numbers["$name"]))" "$name"
  done
}

# attended COMMAND...: runs the command in the foreground of this script, and returns its status. It is a process group of
# its own, which gets a SIGTERM for each signal to this script: from a terminal, which then reaches this script alone, or
# from anywhere else. Nothing of it is left afterwards, and this script ends too, unless `after_interrupt` is `go on` and
# the signal was Ctrl-C.
attended() {
  local job='' status input name caught=
  # A group in the background that reads from the terminal would be stopped.
  if [[ -t 0 || ! -e /proc/$$/fd/0 ]]; then exec {input}</dev/null; else exec {input}<&0; fi
  for name in "${!signal_numbers[@]}"; do
    # shellcheck disable=SC2064
    trap "caught=$name; [[ -z \$job ]] || kill -TERM -- -\$job 2>/dev/null || true" "$name"
  done
  set -m
  "$@" <&"$input" {input}<&- &
  job=$!
  set +m
  exec {input}<&-
  [[ -z $caught ]] || kill -TERM -- "-$job" 2>/dev/null || true # a signal that came before the job had its number
  while true; do
    status=0
    wait "$job" || status=$?
    kill -0 "$job" 2>/dev/null || break # a signal has ended the wait, and not the command
  done
  [[ -z $caught ]] || wait_for_group "$job"
  leave_on_signals
  [[ -n $caught ]] || return "$status"
  status=$((128 + signal_numbers["$caught"]))
  [[ $caught == INT && ${after_interrupt:-} == "go on" ]] || exit "$status"
  return "$status"
}

# Waits until the processes of a group are gone, and kills those that are there after 20 s.
wait_for_group() {
  local look
  for ((look = 0; look < 200; look++)); do
    kill -0 -- "-$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL -- "-$1" 2>/dev/null || true
}
