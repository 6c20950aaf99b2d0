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
}

step() {
  steps_done=$((steps_done + 1))
  echo "[$steps_done/$steps_total] $*"
}

# logged NAME COMMAND...: writes the output of the command to build/log/NAME.log.
logged() {
  local log=$log_dir/$1.log
  shift
  mkdir -p "$log_dir"
  # One foreground pipeline, so that Ctrl-C reaches the command too.
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

# On a terminal, shows the builder's [n/m] in place. Prints nothing else.
counter() {
  if [[ ! -t 1 ]]; then
    cat >/dev/null
    return
  fi
  local line
  while IFS= read -r line; do
    if [[ $line =~ ^\[[0-9]+/[0-9]+\] ]]; then printf '\r      %s' "${BASH_REMATCH[0]}"; fi
  done
  printf '\r\033[K'
}
