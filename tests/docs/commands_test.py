# SPDX-License-Identifier: Apache-2.0
"""Every command of README.md and docs/ works or says why no test runs it: python3 commands_test.py COLLECTIVE_BENCH

The other benches lie beside collective_bench.
"""

import pathlib
import sys
import tempfile
import unittest

import commands

PROGRAMS = pathlib.Path(sys.argv.pop(1)).resolve().parent if len(sys.argv) > 1 else commands.ROOT / "build/cpu/bin"


class Commands(unittest.TestCase):
    def test_each_works_or_says_why_no_test_runs_it(self):
        found = [one for page in commands.pages() for one in commands.commands_of(page)]
        self.assertGreater(len(found), 50)
        self.assertFalse([one for one in found if one.mark and not commands.is_known(one.mark)])
        wrong = commands.problems([one for one in found if not one.mark], PROGRAMS)
        self.assertFalse(wrong, "\n" + "\n".join(wrong))


class Rules(unittest.TestCase):
    def commands_of(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(text, encoding="utf-8")
            return [(one.text, one.mark) for one in commands.commands_of(page)]

    def test_blocks(self):
        self.assertEqual(self.commands_of("Words:\n\n    ./run a \\\n      b\n    ./run c\n\n1. item\n     and more\n\n```cpp\n    code\n```\n"),
                         [("./run a b", ""), ("./run c", "")])
        self.assertEqual(self.commands_of("<!-- not run here: needs GPUs -->\n    nvidia-smi\n\n<!-- no command -->\n```bash\nx\ny\n```\n"),
                         [("nvidia-smi", "not run here: needs GPUs"), ("x", "no command"), ("y", "no command")])
        self.assertEqual(self.commands_of("<!-- a remark -->\n    ls\n"), [("ls", "")])

    def test_marks(self):
        for mark, is_known in (("not run here: needs GPUs", True), ("run by the test readme", True), ("run by the test none", False),
                               ("not run here: too long", False)):
            self.assertEqual(commands.is_known(mark), is_known, mark)

    def test_what_is_wrong_is_found(self):
        for text, said in (("./run benhc", "no command benhc"), ("./run bench --collectives none", "unknown collective"),
                           ("./run bench operator --no-such-flag", "--no-such-flag"), ("collective_bench --list", "with its path"),
                           ("mpirun -n 2 build/cpu/bin/model_bench --ranks x", "--ranks"), ("./run report none.jsonl", "No such file"),
                           ("./run compare A B [--no-flag]", "--no-flag"), ("./run test --fast", "takes"), ("frobnicate", "no rule")):
            (found,) = commands.problems([commands.Command("page.md", text, "")], PROGRAMS)
            self.assertIn(said, found)


if __name__ == "__main__":
    unittest.main()
