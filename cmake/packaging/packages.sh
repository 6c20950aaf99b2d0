# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What `./run` makes to be taken elsewhere: the Python package and the source archive.

wheel() {
  local cuda=OFF preset=cpu objects=(layers sp_methods harness collectives) # which the wheel takes
  [[ ${1:-} != --cuda ]] || { cuda=ON && preset=cuda && objects+=(collectives_cuda sp_methods_cuda) && shift; }
  (($# == 0)) || die "wheel takes --cuda or nothing, got ${*@Q}"
  steps 3
  packages
  [[ $cuda == OFF ]] || cudnn_frontend
  build "$preset" "${objects[@]}"
  step "building the wheel"
  mkdir -p build/wheel
  if [[ $(build/wheel/venv/bin/python -V 2>/dev/null) != "$(python3 -V)" ]]; then # of another python3 in PATH
    rm -rf build/wheel/tree
    quietly wheel-venv python3 -m venv --clear build/wheel/venv || exit 1
  fi
  quietly wheel build/wheel/venv/bin/pip wheel --no-deps --wheel-dir build/wheel -C build-dir=build/wheel/tree \
    -C cmake.define.BATON_CUDA=$cuda -C "cmake.define.BATON_OBJECTS=$PWD/build/$preset" . || exit 1
  # Brackets of extras are a pattern to shells, hence the quotes.
  echo "To install it in a virtual environment: pip install '$(newest_wheel)[frames,natives]'"
}

newest_wheel() {
  local made newest=
  for made in build/wheel/baton_bench-*.whl; do
    if [[ $made -nt $newest ]]; then newest=$made; fi
  done
  echo "$newest"
}

# The archive knows its commit (cmake/write_build_header.cmake), and is the same to the byte wherever it is made.
dist() {
  (($# == 0)) || die "dist takes no arguments, got ${*@Q}"
  local version archive
  version=$(sed -n 's/^project(baton VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
  archive=baton_$version.orig.tar.gz
  git diff --quiet HEAD -- || echo "baton: changes that are not committed are left out"
  mkdir -p build/dist
  git archive --prefix="baton-$version/" --output="build/dist/$archive" HEAD
  (cd build/dist && sha256sum "$archive" | tee "$archive.sha256")
}
