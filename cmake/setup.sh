# SPDX-License-Identifier: Apache-2.0
#
# Installs what the build and the pages need: sourced by ./run.

readonly venv=build/venv
readonly cudnn_package=nvidia-cudnn-frontend==1.32.0
readonly cudnn_folder=build/cudnn_frontend
readonly no_cudnn=build/cudnn_frontend.failed
readonly chakra_packages=(mlc-chakra==1.0.0 protobuf==7.36.2)
readonly chakra_folder=build/chakra
readonly page_modules=(jinja2 matplotlib scipy)

packages() {
  step "looking for the packages of cmake/packages.txt"
  local wanted missing
  mapfile -t wanted < <(wanted_packages cmake/packages.txt)
  if ! command -v dpkg-query >/dev/null; then
    echo "      no dpkg here, so going on in the hope of finding: ${wanted[*]}"
    return
  fi
  mapfile -t missing < <(not_installed "${wanted[@]}")
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
  optional_packages cmake/optional_packages.txt "model_bench or --export chakra is left out"
}

# optional_packages FILE WITHOUT [ask]: what a part of the project needs. Failing is no error and is not tried each time,
# since that part is then left out, as the words of WITHOUT say. With `ask` the user may refuse.
optional_packages() {
  local file=$1 without=$2 mark missing
  mark=build/$(basename "$file" .txt).failed
  mapfile -t missing < <(wanted_packages "$file")
  ((${#missing[@]} == 0)) || command -v dpkg-query >/dev/null || return 0
  ((${#missing[@]} == 0)) || mapfile -t missing < <(not_installed "${missing[@]}")
  ((${#missing[@]} > 0)) || return 0
  if [[ ${3:-} == ask ]] && ! may_install "${missing[@]}"; then
    echo "      without ${missing[*]} $without ('CI=true' in the environment installs them unasked)"
    return 0
  fi
  cmp -s "$file" "$mark" || try_packages "${missing[@]}" || { mkdir -p build && cp "$file" "$mark"; }
  [[ ! -f $mark ]] || echo "      without ${missing[*]} $without ('./run setup' lets the next run try again)"
}

# may_install PACKAGE...: asks at a terminal, and installs nothing without one, but in CI.
may_install() {
  local reply=
  [[ ${CI:-} != true ]] || return 0
  [[ -t 0 ]] || return 1
  read -rp "      install $*, which some tests need? [y/N] " reply
  [[ $reply == [yY]* ]]
}

# Installs without asking anybody for anything.
try_packages() {
  local sudo=()
  ((EUID == 0)) || sudo=(sudo -n)
  echo "      installing $*"
  { logged apt-update "${sudo[@]}" apt-get update || true; } &&
    logged apt-optional "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get install -y --no-install-recommends "$@"
}

wanted_packages() {
  grep -v -e '^#' -e '^$' "$1" | without_known_commands
}

# Reads lines "package [command]" and prints the packages without a command, or whose command is missing.
without_known_commands() {
  local package command
  while read -r package command; do
    [[ -n $command ]] && command -v "$command" >/dev/null || echo "$package"
  done
}

not_installed() {
  # dpkg-query fails if it does not know a name. That name is then not among the installed.
  comm -23 <(printf '%s\n' "$@" | sort) \
    <({ dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true; } |
      sed -n 's/ installed$//p' | sort)
}

install_packages() {
  local sudo=()
  if ((EUID != 0)); then
    may_sudo || ask_for_packages "$@"
    sudo=(sudo)
  fi
  echo "      installing $*"
  # Old lists are not fatal: the installation below names what it cannot install.
  logged apt-update "${sudo[@]}" apt-get update || true
  quietly apt-install "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "$@" || ask_for_packages "$@"
}

# True if sudo works without a password, or can ask for one at this terminal.
may_sudo() {
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; }; }
}

ask_for_packages() {
  die "packages are missing and cannot be installed from here; type this line, then try again:
  sudo apt-get update && sudo apt-get install -y $*"
}

# Sets `python` to one that has what pages are made with: the one of this shell, else the system's, whose packages another
# one in PATH does not see, else that of a virtual environment, for systems without these packages.
choose_python() {
  find_python && return
  optional_packages cmake/page_packages.txt "as packages"
  find_python && return
  echo "      making a virtual environment with ${page_modules[*]}: $venv"
  logged python python3 -m venv "$venv" &&
    logged python "$venv/bin/pip" install --disable-pip-version-check --retries 1 --timeout 10 "${page_modules[@]}" &&
    find_python && return
  rm -rf "$venv"
  python=python3
  echo "      not to be had (see $log_dir/python.log), so there are no pages"
}

find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 "$venv/bin/python3"; do
    python=$(python_with_pages "$candidate") && return
  done
  return 1
}

# Prints which program a Python is, if it has the modules of pages.
python_with_pages() {
  "$1" -c 'import sys
from importlib.util import find_spec
sys.exit(not all(map(find_spec, sys.argv[1:])) or print(sys.executable))' "${page_modules[@]}" 2>/dev/null
}

# True if the headers for softmax blocks by cuDNN are on this machine.
has_cudnn_headers() {
  cmake -P cmake/cudnn.cmake 2>&1 | grep -q 'by cuDNN too'
}

# Unpacks the headers of cudnn-frontend once, for softmax blocks by cuDNN on GPUs, unless a Python has them. Failing is no
# error and is not tried each time: our own kernels compute them then.
cudnn_frontend() {
  [[ ! -e $cudnn_folder && ! -e $no_cudnn ]] || return 0
  ! has_cudnn_headers || return 0
  echo "      looking for the headers of cudnn-frontend"
  logged cudnn_frontend python3 -m pip install --disable-pip-version-check --retries 1 --timeout 10 --no-deps \
    --target "$cudnn_folder" "$cudnn_package" && return
  rm -rf "$cudnn_folder"
  mkdir -p build && touch "$no_cudnn"
  echo "      not to be had (see $log_dir/cudnn_frontend.log; './run setup' tries again)"
}

# Unpacks Chakra's own schema once, with which a test reads what --export wrote. Failing is no error and is not tried each
# time: the test is skipped then.
chakra_schema() {
  [[ ! -e $chakra_folder && ! -e $chakra_folder.failed ]] || return 0
  echo "      looking for the schema of Chakra"
  logged chakra python3 -m pip install --disable-pip-version-check --retries 1 --timeout 10 --no-deps --only-binary :all: \
    --target "$chakra_folder" "${chakra_packages[@]}" && return
  rm -rf "$chakra_folder"
  mkdir -p build && touch "$chakra_folder.failed"
  echo "      not to be had (see $log_dir/chakra.log; './run setup' tries again)"
}
