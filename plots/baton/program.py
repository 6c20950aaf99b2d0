# SPDX-License-Identifier: Apache-2.0
"""How a command of the package ends: its exit code, and one line on standard error where it cannot go on."""

import argparse
import logging
import os
import pathlib
import signal
import sys
import traceback

from baton import checks

FAILED, BAD_INPUT = 1, 2  # exit codes, as of the benches
PACKAGE = pathlib.Path(__file__).parent


def run(name, main):
    """Runs a command, and ends with the code that `main` returns, if it returns one.

    An input or an output that cannot be used ends it with its error on standard error, mostly one line, and so does a
    fault of the command.
    """
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # which tells of its caches where no home can be written to
    try:
        if sys.stdout is None:
            raise OSError(None, "the standard output is closed")
        code = main()
        sys.stdout.flush()
    except checks.ResultsError as error:
        first, *more = error.args
        end(f"{name}: {first}", *more)
    except ModuleNotFoundError as error:
        end(f"{name}: {sys.executable} has no {error.name}; './run setup' installs it")
    except BrokenPipeError:  # the reader left, as head(1) does
        drop_output()
        sys.exit(128 + signal.SIGPIPE)
    except OSError as error:
        drop_output()
        end(f"{name}: {error.filename or 'output'}: {error.strerror or error}")
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except Exception as error:  # pylint: disable=broad-exception-caught
        drop_output()
        end(f"{name}: {fault(error)}", code=FAILED)
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


def fault(error):
    """What no input should lead to, in words, with the line of this package that it came from."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for it"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if PACKAGE in pathlib.Path(frame.filename).parents]
    place = f" in {pathlib.Path(own[-1].filename).relative_to(PACKAGE.parent)}:{own[-1].lineno}" if own else ""
    return f"a fault of Baton{place}, please report it with this input: {type(error).__name__}: {error}"


def end(*lines, code=BAD_INPUT):
    """Ends the program with these lines. An end of a line within one of them, such as in the name of a file, is escaped."""
    for line in lines:
        print(printable(line, sys.stderr).replace("\n", "\\n"), file=sys.stderr)
    sys.exit(code)


def printable(text, stream):
    """The text with escapes in place of characters that a terminal obeys, but for ends of lines, and of those that the
    stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    shown = checks.NO_TEXT.sub(lambda found: found[0] if found[0] == "\n" else ascii(found[0])[1:-1], text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)
