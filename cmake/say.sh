# SPDX-License-Identifier: Apache-2.0
#
# What `./run` says while it works: steps, errors, and the output of commands, which goes to a log.

die() {
  echo "run: $*" >&2
  exit 2
}

steps() {
  steps_done=0
  steps_total=$1
  step_began=$SECONDS
}

# step TEXT: begins a step, after the time that the one before it took.
step() {
  ((SECONDS - step_began < 5)) || echo "      took $(duration $((SECONDS - step_began)))"
  step_began=$SECONDS
  steps_done=$((steps_done + 1))
  echo "[$steps_done/$steps_total] $*"
}

# duration SECONDS: in words, such as "2 min 5 s".
duration() {
  if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# logged NAME COMMAND...: writes the output of the command to build/log/NAME.log.
logged() {
  local log=$log_dir/$1.log
  shift
  mkdir -p "$log_dir"
  if [[ $1 == sudo ]]; then
    piped "$@" # which only a terminal's Ctrl-C may end
  else
    attended piped "$@"
  fi
}

piped() {
  "$@" 2>&1 </dev/null | tee "$log" | counter
}

# quietly NAME COMMAND...: the same, and on failure shows the end of the log and its name.
quietly() {
  logged "$@" && return
  local log=$log_dir/$1.log
  shift
  {
    echo "run: failed: $*"
    tail -n 30 "$log" | sed 's/^/  | /'
    echo "run: the whole log is $log"
  } >&2
  return 1
}

# On a terminal, shows the builder's [n/m] in place, with the time so far and the time left at this pace. Prints nothing
# else.
counter() {
  if [[ ! -t 1 ]]; then
    cat >/dev/null
    return
  fi
  local line began=$SECONDS passed left
  while IFS= read -r line; do
    [[ $line =~ ^\[([1-9][0-9]*)/([0-9]+)\] ]] || continue
    passed=$((SECONDS - began))
    left=$((passed * (BASH_REMATCH[2] - BASH_REMATCH[1]) / BASH_REMATCH[1]))
    printf '\r\033[K      %s %s, about %s left' "${BASH_REMATCH[0]}" "$(duration "$passed")" "$(duration "$left")"
  done
  printf '\r\033[K'
}
