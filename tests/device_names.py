# SPDX-License-Identifier: Apache-2.0
"""Names in CUDA sources: the rules of .clang-tidy as far as the text alone tells.

By hand, since clang-tidy 16 knows no CUDA newer than 12.0.

  every word of ours is snake_case, CamelCase or one capital; what functions are called is snake_case
  types and aliases are CamelCase; data members of a class that are not public end in an underscore
  a __global__ function ends in _kernel
"""

import re

from function_size import functions, without_hidden

SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?")
CAMEL = re.compile(r"[A-Z][A-Za-z0-9]*")
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
# Words of CUDA, NCCL, NVML, MPI, POSIX, GoogleTest and the compiler.
FOREIGN = re.compile(r"(__\w+|(cu|cuda|nccl|nvml|Nccl|ompi)[A-Z]\w*|(threadIdx|blockIdx|blockDim|gridDim|warpSize|dim3)"
                     r"|[A-Z][A-Z0-9]*_\w+|atomic[A-Z]\w*|SetUp|TearDown|\d\w*)")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class)?)\s+(?:alignas\s*\([^)]*\)\s*|\[\[\w+\]\]\s*)*(\w+)\s*"
                  r"(?:final\s*)?(?:<[^;{}]*>\s*)?(?::[^;{}()]*)?\{")
ALIAS = re.compile(r"\busing\s+(\w+)\s*=|\b(?:typename|class)\s+(\w+)\s*[,>=]")
KERNEL = re.compile(r"__global__[^;{]*?\bvoid\s+(?:__launch_bounds__\s*\([^;{]*?\)\s*)?(\w+)\s*\(")
CLASS = re.compile(r"^[ \t]*class\s+(?:\[\[\w+\]\]\s*)?(\w+)[^;{}()]*\{", re.MULTILINE)
ACCESS = re.compile(r"\s*(public|protected|private)\s*:(?!:)")
NO_MEMBER = re.compile(r"\s*(using|friend|static_assert|template|struct|class|enum|union|typedef)\b")


def complaints(text):
    """(line, what is wrong) for each name of a CUDA source that breaks the rules."""
    code = without_hidden(text)
    found = [*_words(code), *_types(code), *_functions(text), *_kernels(code), *_members(code)]
    return sorted((code.count("\n", 0, at) + 1, what) for at, what in found)


def _words(code):
    return [(word.start(), f"{word[0]} is neither snake_case nor CamelCase") for word in WORD.finditer(code)
            if not any(pattern.fullmatch(word[0]) for pattern in (SNAKE, CAMEL, FOREIGN))]


def _types(code):
    names = [(found.start(), found[1]) for found in TYPE.finditer(code)]
    names += [(found.start(), found[1] or found[2]) for found in ALIAS.finditer(code)]
    return [(at, f"type {name} is not CamelCase") for at, name in names if not CAMEL.fullmatch(name)]


def _functions(text):
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    types = set(TYPE.findall(text))
    for one in functions(text):
        head = re.sub(r"\b(__launch_bounds__|alignas|requires|explicit)\s*\([^()]*\)", "", one.head)
        name = re.search(r"(\w[\w:<>*&\s]*[\s*&])([a-zA-Z_]\w*)\s*\(", head.split("operator")[0])
        if name and name[2] not in types and not any(rule.fullmatch(name[2]) for rule in (SNAKE, FOREIGN)):
            yield offsets[one.line - 1], f"function {name[2]} is not snake_case"


def _kernels(code):
    return [(found.start(), f"kernel {found[1]} does not end in _kernel") for found in KERNEL.finditer(code)
            if not found[1].endswith("_kernel")]


def _members(code):
    for found in CLASS.finditer(code):
        access = "private"
        for at, statement in _statements(code, found.end()):
            while label := ACCESS.match(statement):
                access = label[1]
                at, statement = at + label.end(), statement[label.end():]
            name = _data_member(statement)
            if access != "public" and name and not name.endswith("_"):
                yield at, f"member {name} of {found[1]} is {access} and does not end in an underscore"


def _statements(code, begin):
    """(offset, text) of each statement directly in the class whose body begins there; what braces hold is left out."""
    depth, start, text = 0, begin, ""
    for at in range(begin, len(code)):
        character = code[at]
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return
        if depth == 0 and character in ";}":
            if character == ";" or "(" in text:
                yield start, text
                start, text = at + 1, ""
        elif depth == 0:
            text += character


def _data_member(statement):
    if NO_MEMBER.match(statement) or "static constexpr" in statement:
        return None
    declared = re.split(r"[={]", statement)[0]
    if "(" in re.sub(r"<[^<>]*>|alignas\s*\([^)]*\)", "", re.sub(r"<[^<>]*>", "", declared)):
        return None
    names = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^\]]*\]", "", declared))
    return names[-1] if len(names) > 1 else None
