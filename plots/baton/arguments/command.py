# SPDX-License-Identifier: Apache-2.0
"""What a bench would refuse in its arguments, said before it is built; or its --help.

flags.json is what the benches print by --flags, and a test holds it. What only a built bench knows passes here: the bench has the
last word. A name is known if a source has it as a text, so that a new collective needs no list.
"""

import difflib
import functools
import json
import pathlib
import re

from baton import program

ROOT = pathlib.Path(__file__).resolve().parents[3]
FLAGS = pathlib.Path(__file__).with_name("flags.json")
# Flags whose values are names that sources register: the word for one of them, and the folders of the sources.
NAMES = {"--collectives": ("collective", ("collectives",)), "--methods": ("method", ("sp_methods",)), "--scan": ("scan", ("collectives",)),
         "--softmax": ("softmax", ("sp_methods",)), "--baseline": ("baseline", ("collectives", "sp_methods"))}
WORDS = re.compile(r"[\w|]+")


def main(words):
    """`arguments BENCH ARGS...` ends with 2 and a line if the bench would refuse them; `arguments --help BENCH` prints its help."""
    benches = json.loads(FLAGS.read_text(encoding="utf-8"))
    if words in ([], ["--help"], ["-h"]):
        print(f"usage: arguments BENCH ARGS... | --help BENCH, where BENCH is one of {', '.join(benches)}")
        return None
    if words[0] == "--help":
        print("\n".join(benches[words[1]]["help"]))
        return None
    reason = refusal(benches[words[0]]["flags"], words[1:])
    return program.end(f"baton: {reason}") if reason else None


def refusal(flags, words):
    """Why a bench with these flags refuses the words; None if it may take them."""
    known = {name: flag for flag in flags for name in flag["names"].split(",")}
    words = list(words)
    while words:
        word = words.pop(0)
        if word.startswith("--benchmark_"):
            continue
        name, given, flag = split(word, known)
        if flag is None:
            return unknown(word, known)
        if given is not None and not flag["values"]:
            return f"{name} takes no value"
        count = flag["values"] - (given is not None)
        values = [given] * (given is not None) + words[:count]
        del words[:count]
        if len(values) < flag["values"]:
            return f"{name} needs a value"
        for value in values:
            if reason := refused(name, flag, value):
                return reason
    return None


def split(word, known):
    """The flag's name in a word, the value in it (None if it is another word), and the flag (None if there is none)."""
    name, equals, given = word.partition("=")
    if name in known:
        return name, given if equals else None, known[name]
    if word[:1] == "-" and word[:2] != "--" and word[:2] in known:
        return word[:2], word[2:].removeprefix("="), known[word[:2]]
    return name, None, None


def unknown(word, known):
    shown = ascii(word)
    if not word.startswith("-"):
        return f"{shown} belongs to no flag; --help shows the flags"
    near = difflib.get_close_matches(word.partition("=")[0], known, n=1)
    return f"unknown flag {shown}{f', did you mean {near[0]!r}?' if near else ''}; --help shows the flags"


def refused(name, flag, value):
    """Why the flag refuses the value; None if it may take it."""
    if value.startswith("--") or not value:
        return f"{name} needs a value, found {ascii(value)}"
    for part in value.split(",") if flag["list"] else [value]:
        if flag["form"] and not re.fullmatch(flag["form"], part):
            of = f"one of {', '.join(flag['form'].split('|'))}" if WORDS.fullmatch(flag["form"]) else "a number that it takes"
            return f"{name}: {ascii(part)} is not {of}; --help shows the flags"
        what, folders = NAMES.get(name, ("", ()))
        if what and part != "all" and (known := texts(folders)) and part not in known:
            near = difflib.get_close_matches(part, stems(folders), n=1)
            return f"{name}: unknown {what} {ascii(part)}{f', did you mean {near[0]!r}?' if near else ''}; --list shows them"
    return None


@functools.cache
def texts(folders):
    """The texts of the sources in folders, of which each name is one; none where there are no sources."""
    files = (file for folder in folders for end in ("cpp", "cu") for file in (ROOT / folder).rglob(f"*.{end}"))
    return frozenset(name for file in files for name in re.findall(r'"([a-z][a-z0-9_]*)"', file.read_text(encoding="utf-8")))


def stems(folders):
    """The names that sources in folders are called after, and that they register."""
    return sorted({file.stem for folder in folders for file in (ROOT / folder).rglob("*.cpp") if file.stem in texts(folders)})
