# SPDX-License-Identifier: Apache-2.0
"""Writing of outputs: all of a program's files are whole before the first of them takes its name, and none of them
replaces a file that was read."""

import os
import pathlib
import stat

NO_FILE = "it is no file"

_read = set()  # the files that were read


def reading(path):
    """Returns the path of a file that is about to be read, which no later output may replace. Throws OSError for a pipe in a
    folder, which may never have a writer; a shell's `<(COMMAND)` has one."""
    if os.path.isfile(path):  # a device or a pipe is not replaced
        _read.add(os.path.realpath(path))
    elif os.path.exists(real := os.path.realpath(path)) and stat.S_ISFIFO(os.stat(real).st_mode):
        raise OSError(None, NO_FILE, str(path))
    return path


def text_of(path):
    """The text of a file. Throws OSError for anything else."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(None, NO_FILE, str(path))
    with open(reading(path), encoding="utf-8") as file:
        return file.read()


def _refuse_what_was_read(path):
    """Looks where the path leads once its folders are made: before that, none with `..` behind one of them is there."""
    for place in filter(os.path.exists, (path, os.path.realpath(path))):
        if any(os.path.exists(one) and os.path.samefile(place, one) for one in _read):
            raise OSError(None, "the output would replace this file, which is an input", str(path))


def _place(path):
    """The file that a link leads to. A pipe stays as it is named: /dev/stdout may lead to one that has no other name."""
    return pathlib.Path(os.path.realpath(path)) if path.is_file() or not path.exists() else path


def write(folder, contents):
    """Writes {name: text or bytes} into the folder, which is made if it is not there. Throws OSError.

    A device or a pipe, such as /dev/stdout, is written as it is and stays what it is.
    """
    for name in contents:
        _refuse_what_was_read(folder / name)
    folder.mkdir(parents=True, exist_ok=True)
    places = {name: _place(folder / name) for name in contents}
    parts = {name: path.with_name(f".{path.name}.{os.getpid()}.part") if path.is_file() or not path.exists() else path
             for name, path in places.items()}
    renamed = [name for name in contents if parts[name] != places[name]]
    try:
        for name, content in contents.items():
            if places[name].is_dir():
                raise IsADirectoryError(None, "it is a directory, expected a file", str(folder / name))
            parts[name].write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        for name in renamed:
            parts[name].replace(places[name])
    finally:
        for name in renamed:
            parts[name].unlink(missing_ok=True)
