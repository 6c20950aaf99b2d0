# SPDX-License-Identifier: Apache-2.0
"""Writing of outputs: all of a program's files are whole before the first of them takes its name."""

import os
import pathlib


def write(folder, contents):
    """Writes {name: text or bytes} into the folder, which is made if it is not there. Throws OSError.

    A device or a pipe, such as /dev/stdout, is written as it is and stays what it is.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = {name: pathlib.Path(os.path.realpath(folder / name)) for name in contents}
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
