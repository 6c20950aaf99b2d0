# SPDX-License-Identifier: Apache-2.0
"""Outputs are whole or not there, and what is no file stays what it is."""

import os
import pathlib
import subprocess
import threading
import unittest

from baton import files
from plots.example import InFolder, python


class Writing(InFolder):
    def test_a_pipe_is_written_and_stays_a_pipe(self):
        path, read = self.folder / "pipe", []
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: read.append(path.read_text(encoding="utf-8")), daemon=True)
        reader.start()
        files.write(self.folder, {"pipe": "words"})
        self.assertTrue(path.is_fifo())
        reader.join(10)
        self.assertEqual(read, ["words"])

    def test_a_pipe_without_a_name_of_its_own_is_written(self):
        code = "import pathlib; from baton import files; files.write(pathlib.Path('/dev'), {'stdout': 'whole'})"
        done = subprocess.run(python(code), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "whole", ""))

    def test_a_link_stays_and_its_file_is_written(self):
        (self.folder / "link").symlink_to(self.folder / "file")
        files.write(self.folder, {"link": "words"})
        self.assertTrue((self.folder / "link").is_symlink())
        self.assertEqual((self.folder / "file").read_text(encoding="utf-8"), "words")

    def test_a_folder_in_the_way_of_one_file_keeps_the_others_as_they_were(self):
        (self.folder / "folder").mkdir()
        (self.folder / "a").write_text("before", encoding="utf-8")
        with self.assertRaises(IsADirectoryError):
            files.write(self.folder, {"a": "after", "folder": "words"})
        self.assertEqual((self.folder / "a").read_text(encoding="utf-8"), "before")
        self.assertEqual({path.name for path in self.folder.iterdir()}, {"a", "folder"})


class Replacing(InFolder):
    def setUp(self):
        super().setUp()
        self.input = self.folder / "records"
        self.input.write_text("kept", encoding="utf-8")
        files.reading(self.input)

    def test_no_path_through_folders_that_are_not_there_leads_to_an_input(self):
        (self.folder / "other").mkdir()
        (self.folder / "link").symlink_to(self.folder / "other")
        os.link(self.input, self.folder / "other" / "hard")
        for path in ("new/../records", "new/deep/../../records", "link/new/../../records", "other/new/../../records",
                     "new/../other/hard", "new/../link/new/../hard", "new/.././records"):
            with self.subTest(path), self.assertRaisesRegex(OSError, "which is an input"):
                files.write((self.folder / path).parent, {pathlib.Path(path).name: "lost"})
        self.assertEqual(self.input.read_text(encoding="utf-8"), "kept")
        self.assertFalse((self.folder / "new").exists())

    def test_another_file_behind_such_a_path_is_written(self):
        files.write(self.folder / "new" / "..", {"page": "words"})
        self.assertEqual((self.folder / "page").read_text(encoding="utf-8"), "words")


class Reading(InFolder):
    def test_a_pipe_in_a_folder_is_refused_and_that_of_a_shell_is_not(self):
        os.mkfifo(self.folder / "pipe")  # which has no writer
        with self.assertRaisesRegex(OSError, "it is no file"):
            files.reading(self.folder / "pipe")
        ends = os.pipe()
        self.addCleanup(lambda: [os.close(end) for end in ends])
        self.assertEqual(files.reading(f"/dev/fd/{ends[0]}"), f"/dev/fd/{ends[0]}")


if __name__ == "__main__":
    unittest.main()
