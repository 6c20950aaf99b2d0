# SPDX-License-Identifier: Apache-2.0
"""The examples in torch, started by themselves and by torchrun: torch_test.py FOLDER_OF_THE_WHEEL

The Python is the one in PATH, or that of BATON_TORCH_PYTHON. It must have torch, and the wheel must be for it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("BATON_TORCH_PYTHON", "python3")
WHEELS = sorted(pathlib.Path(sys.argv[1]).glob("baton_bench-*.whl"), key=os.path.getmtime)
ROWS = """
import baton
for record in baton.read("records.jsonl"):
    print(record["name"], record["ranks"], record.get("wrong"), "seconds" in record)
"""
SHORT = ["--heads", "2", "-n", "10", "-w", "2", "-J", "records.jsonl"]
SMALL = ["--tokens", "40", "--d-k", "8", "--d-v", "8"]
TORCHRUN = ("-m", "torch.distributed.run", "--standalone")


def python(*words, **options):
    return subprocess.run([PYTHON, *map(str, words)], capture_output=True, text=True, check=False, **options)


def missing():
    """Why nothing can be tested here, in one line; empty if all can."""
    if not WHEELS:
        return "no wheel here: ./run wheel makes one"
    if python("-c", "import torch.distributed as dist; assert dist.is_gloo_available()").returncode != 0:
        return f"no torch here: {PYTHON} cannot import it; BATON_TORCH_PYTHON may name one that can"
    return ""


class Torch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        cls.addClassCleanup(cls.folder.cleanup)
        cls.package = f"{cls.folder.name}/package"
        installed = python("-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", cls.package, WHEELS[-1])
        if "is not a supported wheel" in installed.stderr:
            raise unittest.SkipTest("the wheel is for another Python")
        assert installed.returncode == 0, installed.stderr

    def rows(self, ranks, example, *words, launcher=None, lines=26, short=SHORT):
        """What is recorded of each row of an example, which starts its ranks itself if there is no launcher."""
        path = ROOT / "docs/examples" / example
        self.assertLessEqual(len([line for line in path.read_text().splitlines() if line]), lines)
        environment = {**os.environ, "PYTHONPATH": self.package, "OMP_NUM_THREADS": "1"}
        command = [*launcher, "--nproc-per-node", ranks, path] if launcher else [path, "--ranks", ranks]
        pathlib.Path(self.folder.name, "records.jsonl").unlink(missing_ok=True)  # of a run that failed
        done = python(*command, *short, *words, env=environment, cwd=self.folder.name, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        told = python("-c", ROWS, env=environment, cwd=self.folder.name)
        return told.stdout.splitlines(), done.stdout

    def assert_timed(self, found, names, *ranks, passes=1):
        self.assertEqual(sorted(found[0]), sorted(passes * [f"{name} {count} 0 True" for name in names for count in ranks]), found[1])

    def test_numpy(self):
        self.assert_timed(self.rows(2, "numpy_chain.py"), ("all_scan", "my_scan"), 2)

    def test_gloo_under_torchrun(self):
        found = self.rows(2, "torch_gloo.py", launcher=TORCHRUN)
        self.assert_timed(found, ("all_scan", "gloo_chain", "torch_gather"), 2)

    def test_gloo_and_functional_collectives(self):
        self.assert_timed(self.rows("2,3", "torch_gloo.py"), ("all_scan", "gloo_chain", "torch_gather"), 2, 3)

    def test_ranks_of_torch_where_the_scan_runs_against_them(self):
        self.assert_timed(self.rows(3, "torch_gloo.py", "--direction", "reverse"), ("all_scan", "gloo_chain", "torch_gather"), 3)

    def test_gathered_keys_and_values_by_autograd(self):
        found = self.rows("2,4", "torch_gather_kv.py", *SMALL, "--pass", "all", "--methods", "ring_attention_softmax,torch_gather_kv",
                          lines=31)
        self.assert_timed(found, ("ring_attention_softmax", "torch_gather_kv"), 2, 4, passes=3)
        found = self.rows(2, "torch_gather_kv.py", *SMALL, launcher=TORCHRUN, lines=31)
        self.assert_timed(found, ("ring_attention_softmax", "ulysses_softmax", "torch_gather_kv"), 2)

    def test_a_backward_pass_of_more_heads_than_are_solved(self):
        """A method in Python makes its own forward pass: of heads that are not solved Baton's own have other outputs."""
        short = ["--tokens", "1K", "--heads", "16", "--d-k", "64", "--d-v", "64", "-n", "3", "-w", "1", "-J", "records.jsonl"]
        found = self.rows(1, "torch_gather_kv.py", "--pass", "backward", "--methods", "ring_attention_softmax,torch_gather_kv",
                          lines=31, short=short)
        self.assert_timed(found, ("ring_attention_softmax", "torch_gather_kv"), 1)

    def test_gathered_states_by_autograd(self):
        found = self.rows("2,4", "torch_gather_states.py", *SMALL, "--pass", "all", lines=45)
        self.assert_timed(found, ("local", "zeco", "lasp2", "torch_gather_states"), 2, 4, passes=3)

    def test_a_chain_of_states_by_a_backward_function(self):
        found = self.rows("2,4", "torch_delta_chain.py", *SMALL, "--pass", "all", lines=50)
        self.assert_timed(found, ("local", "zeco", "lasp2", "torch_delta_chain"), 2, 4, passes=3)

    def test_an_all_to_all_of_heads(self):
        found = self.rows("2", "adapters/torch_all_to_all.py", *SMALL, "--pass", "all", lines=40)
        self.assert_timed(found, ("ring_attention_softmax", "ulysses_softmax", "torch_all_to_all"), 2, passes=3)

    def test_flash_linear_attention_by_a_stand_in(self):
        """The order of inputs, their shapes and types, the scale and the context of several ranks are the adapter's."""
        stand_in = pathlib.Path(self.package) / "fla"
        stand_in.mkdir()
        self.addCleanup(shutil.rmtree, stand_in)
        (stand_in / "__init__.py").write_text((ROOT / "tests/packaging/fla_stub.py").read_text(encoding="utf-8"), encoding="utf-8")
        for attention, name, ranks in (("gdn", "chunk_gated_delta_rule", (1, 2)), ("kda", "chunk_kda", (1, 2)),
                                       ("rwkv7", "chunk_rwkv7", (1, 2)), ("linear", "chunk_gla", (1,))):
            found = self.rows(",".join(map(str, ranks)), "adapters/fla_layers.py", *SMALL, "--attention", attention, lines=40)
            self.assert_timed(found, ("local", "zeco", "lasp2", name), *ranks)

    def test_what_is_not_installed_is_a_skipped_row(self):
        _, printed = self.rows(1, "adapters/fla_layers.py", *SMALL, "--attention", "gdn", lines=40)
        self.assertIn("skipped: this Python has no module fla", " ".join(printed.split()))

    def test_the_page_shows_the_example_and_what_it_prints(self):
        page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
        example = (ROOT / "docs/examples/torch_gather_kv.py").read_text(encoding="utf-8")
        self.assertIn(f"```python\n{example[example.index('import torch'):]}```", page)
        command, = re.findall(r"^    python3 docs/examples/torch_gather_kv.py (.*)$", page, re.MULTILINE)
        shown = page[page.index("printed by that command"):].split("```")[1].splitlines()
        done = python(ROOT / "docs/examples/torch_gather_kv.py", *command.split(), env={**os.environ, "PYTHONPATH": self.package})
        self.assertEqual(done.returncode, 0, done.stderr)

        def rows(lines):
            """The names of rows and what runs them: all else differs from run to run."""
            return sorted(re.findall(r"^(\w+ +tcp(?: Python)?)", "\n".join(lines), re.MULTILINE))
        self.assertEqual(rows(shown), rows(done.stdout.splitlines()))
        self.assertEqual(len(rows(done.stdout.splitlines())), 3)


if __name__ == "__main__":
    if missing():
        print(missing())
        sys.exit(0)
    unittest.main(argv=sys.argv[:1], verbosity=2)
