# SPDX-License-Identifier: Apache-2.0
#
# How `./run` configures and builds what it runs, with what there is of GPUs.

# Sets `cores`, `gpus`, and `preset` to cuda if there are GPUs and the tools to build for them, else to cpu.
choose_preset() {
  preset=cpu
  cores=$(nproc)
  gpus=$(count_gpus)
  ((gpus > 0)) || return 0
  cudnn_frontend
  local mine built
  mine=$(cuda_architectures)
  built=$(sed -n 's/^CMAKE_CUDA_ARCHITECTURES:[A-Z]*=//p' build/cuda/CMakeCache.txt 2>/dev/null || true)
  if [[ -f build/cuda/build.ninja && (-z $built || $built == "$mine") ]] ||
    logged configure-cuda cmake --preset cuda ${mine:+-D "CMAKE_CUDA_ARCHITECTURES=$mine"}; then
    preset=cuda
  else
    echo "      without this machine's $gpus GPUs: $(grep -m 1 'Preset cuda needs' $log_dir/configure-cuda.log ||
      echo "see $log_dir/configure-cuda.log")"
    gpus=0
  fi
}

# The GPUs that CUDA programs of this shell see.
count_gpus() {
  if [[ -n ${CUDA_VISIBLE_DEVICES+set} ]]; then
    tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | grep -c . || true
  else
    { nvidia-smi -L 2>/dev/null || true; } | grep -c '^GPU ' || true
  fi
}

# The architectures of the GPUs here, as CMake has them: kernels for others would take most of the time of a build.
cuda_architectures() {
  { nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true; } |
    sed -nE 's/^9\.0$/9.0a/; s/^([89]|1[0-9])\.([0-9]a?)$/\1\2-real/p' | sort -u | paste -sd ';'
}

# build PRESET TARGET...: builds the targets, or all of them if none is named.
build() {
  local preset=$1 targets=()
  shift
  (($# == 0)) || targets=(--target "$@")
  step "building preset $preset (some minutes the first time)"
  # Ninja re-runs CMake when a CMakeLists.txt changed, but does not watch the presets.
  if [[ ! build/$preset/build.ninja -nt CMakePresets.json ]]; then
    quietly "configure-$preset" cmake --preset "$preset" || exit 1
  fi
  quietly "build-$preset" cmake --build "build/$preset" "${targets[@]}" || exit 1
}
