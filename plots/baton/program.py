# SPDX-License-Identifier: Apache-2.0
"""How a command of the package ends: its exit code, and one line on standard error where it cannot go on."""

import argparse
import os
import signal
import sys

from baton import checks

BAD_INPUT = 2  # the exit code, as of the benches


def run(name, main):
    """Runs a command, and ends with the code that `main` returns, if it returns one.

    An input or an output that cannot be used ends it with one line on standard error.
    """
    try:
        if sys.stdout is None:
            raise OSError(None, "the standard output is closed")
        code = main()
        sys.stdout.flush()
    except checks.ResultsError as error:
        end(f"{name}: {error}")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("baton"):
            raise
        end(f"{name}: {sys.executable} has no {error.name}; './run setup' installs it")
    except BrokenPipeError:  # the reader left, as head(1) does
        drop_output()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        drop_output()
        end(f"{name}: {error.filename or 'output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    if code:
        sys.exit(code)


def positive(word):
    """The type of an argument that is a whole number from 1. Throws argparse.ArgumentTypeError."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"takes a whole number from 1, not '{word}'")
    return int(word)


def drop_output():
    """Leaves nothing that Python would write, and fail to write, when it ends."""
    if sys.stdout is sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(line):
    print(printable(line, sys.stderr).replace("\n", "\\n"), file=sys.stderr)
    sys.exit(BAD_INPUT)


def printable(text, stream):
    """The text with escapes in place of characters that a terminal obeys, but for ends of lines, and of those that the
    stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = checks.NO_TEXT.sub(lambda found: found[0] if found[0] == "\n" else ascii(found[0])[1:-1], text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)
