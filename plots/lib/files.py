# SPDX-License-Identifier: Apache-2.0
"""Writing of outputs: all of a program's files are whole before the first of them takes its name."""

import os


def write(folder, contents):
    """Writes {name: text or bytes} into the folder, which is made if it is not there. Throws OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = {folder / name: folder / f".{name}.{os.getpid()}.part" for name in contents}
    try:
        for content, part in zip(contents.values(), parts.values()):
            part.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        for path in parts:
            if path.is_dir():
                raise IsADirectoryError(None, "it is a directory, expected a file", str(path))
        for path, part in parts.items():
            part.replace(path)
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
