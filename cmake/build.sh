# SPDX-License-Identifier: Apache-2.0
#
# How `./run` configures and builds what it runs, with what there is of GPUs.

# Sets `gpus`, and `preset` to cuda if there are GPUs and the tools to build for them, else to cpu.
choose_preset() {
  preset=cpu
  gpus=$(count_gpus)
  ((gpus > 0)) || return 0
  cudnn_frontend
  local mine built
  mine=$(cuda_architectures)
  built=$(sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[A-Z]*=//p' build/cuda/CMakeCache.txt 2>/dev/null || true)
  if { [[ -f build/cuda/build.ninja && (-z $built || $built == "$mine") ]] && ! came_cudnn; } ||
    logged configure-cuda cmake --preset cuda ${mine:+-D "CMAKE_CUDA_ARCHITECTURES=$mine"}; then
    preset=cuda
  else
    echo "      without this machine's $gpus GPUs: $(grep -m 1 'Preset cuda needs' $log_dir/configure-cuda.log ||
      echo "see $log_dir/configure-cuda.log")"
    gpus=0
  fi
}

# True if build/cuda is configured without headers of cuDNN that have come since.
came_cudnn() {
  grep -q '^CUDNN.*INCLUDE_DIR:.*-NOTFOUND$' build/cuda/CMakeCache.txt && has_cudnn_headers
}

# The GPUs that CUDA programs of this shell see, as CUDA reads CUDA_VISIBLE_DEVICES: numbers, or starts of names of GPUs, or
# one of a part of a GPU (MIG). It stops at the first that it does not have; one that is named twice leaves none.
count_gpus() {
  { nvidia-smi -L 2>/dev/null || true; } | awk '
    match($0, /UUID: [^)]*/) { names[++all] = substr($0, RSTART + 6, RLENGTH - 6) }
    /^GPU / { gpus[gpu_count++] = names[all] }
    function named(start,   i, found) {
      for (i = 1; i <= all; ++i)
        if (index(names[i], start) == 1 && length(start) > 4) {
          if (found) return ""
          found = names[i]
        }
      return found
    }
    function numbered(entry) {
      sub(/^[ \t]+/, "", entry)
      return match(entry, /^\+?[0-9]+/) ? gpus[substr(entry, 1, RLENGTH) + 0] : ""
    }
    END {
      if (!("CUDA_VISIBLE_DEVICES" in ENVIRON)) { print gpu_count + 0; exit }
      listed = split(ENVIRON["CUDA_VISIBLE_DEVICES"], entries, ",")
      kind = entries[1] ~ /^(GPU|MIG)-/ ? substr(entries[1], 1, 4) : ""
      for (i = 1; i <= listed; ++i) {
        found = kind == "" ? numbered(entries[i]) : index(entries[i], kind) == 1 ? named(entries[i]) : ""
        if (found == "") break
        if (found in seen) { count = 0; break }
        seen[found]
        if (kind != "MIG-" || count == 0) ++count
      }
      print count + 0
    }'
}

# The architectures of the GPUs here, as CMake has them: kernels for others would take most of the time of a build.
cuda_architectures() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    sed -nE 's/^9\.0$/9.0a/; s/^([89]|1[0-9])\.([0-9]a?)$/\1\2-real/p' | sort -u | paste -sd ';'
}

# Sets `cores` to those that programs started here may use, which a program of the build counts.
count_cores() {
  configure "$preset"
  quietly build-cores cmake --build "build/$preset" --target usable_cores || exit 1
  cores=$("build/$preset/bin/usable_cores")
}

# Ninja re-runs CMake when a CMakeLists.txt changed, but does not watch the presets.
configure() {
  [[ ! build/$1/build.ninja -nt CMakePresets.json ]] || return 0
  quietly "configure-$1" cmake --preset "$1" || exit 1
}

# build PRESET TARGET...: builds the targets, or all of them if none is named.
build() {
  local preset=$1 targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  case $PWD in
    *[][\;\"\\\#$'\n']* | *'$'{*) die "CMake cannot build in a folder whose path has one of [ ] ; \" \\ # \${ or an end of a line: ${PWD@Q}" ;;
  esac
  step "building preset $preset (some minutes the first time)"
  configure "$preset"
  quietly "build-$preset" cmake --build "build/$preset" "${targets[@]}" || exit 1
}
