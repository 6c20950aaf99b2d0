# SPDX-License-Identifier: Apache-2.0
"""Looks at a page in a headless Chromium: what overlaps, what is cut, what is too wide, what a script complains of.

A copy of the page gets the script of browser_look.js and is shown in a frame of the wanted width, since a window has
a least width of its own. The script tells the page around the frame what it found, and --dump-dom prints that.

  python3 tests/browser.py PAGE [WIDTH [PNG]]      prints what is found, and takes a picture
"""

import functools
import html
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

LOOK = pathlib.Path(__file__).with_name("browser_look.js").read_text(encoding="utf-8")
NAMES = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (1280, 390)  # a laptop's and a telephone's
SECONDS = 300

AROUND = """<!DOCTYPE html><html><head><meta charset="utf-8"><style>body {{ margin: 0 }} iframe {{ border: 0; display: block }}
</style></head><body><iframe src="page.html" style="width: {width}px; height: {height}px"></iframe><pre id="found"></pre>
<script>addEventListener("message", (event) => {{
document.getElementById("found").textContent = JSON.stringify(event.data); }});</script></body></html>"""


@functools.cache
def program():
    """The path of a Chromium that starts, or None. One that a snap holds cannot read the pages that tests write."""
    return next((found for found in map(shutil.which, NAMES) if found and starts(found)), None)


def starts(path):
    with open(path, "rb") as file:
        if b"snap" in file.read(4096):
            return False
    try:
        return subprocess.run([path, "--version"], capture_output=True, timeout=SECONDS, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


needed = unittest.skipUnless(program(), "no Chromium here: install the package chromium")


def look(page, width, before=""):
    """Returns what is wrong with a page of HTML, a list of lines; the script `before` runs when it is loaded."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, page, width, 20000, LOOK, f"look(() => {{ {before} }});")
        shown = chromium(folder, "--dump-dom", "--virtual-time-budget=2000", str(folder / "around.html"))
    found = re.search(r'<pre id="found">(.+?)</pre>', shown, re.DOTALL)
    if not found:
        raise AssertionError(f"the page did not answer:\n{shown[-2000:]}")
    return json.loads(html.unescape(found[1]))


def picture(page, width, height, png, before=""):
    """Writes the upper `height` pixels of a page to a PNG file."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(folder, page, width, height, "", before)
        chromium(folder, f"--screenshot={pathlib.Path(png).resolve()}", f"--window-size={max(width, 500)},{height}",
                 "--virtual-time-budget=1000", str(folder / "around.html"))


def write(folder, page, width, height, at_first, at_last):
    """Writes the page with a script at its beginning and one at its end, and the page with the frame around it."""
    (folder / "around.html").write_text(AROUND.format(width=width, height=height), encoding="utf-8")
    head, body = page.split("<head>", 1)
    body, end = body.rsplit("</body>", 1)
    (folder / "page.html").write_text(f"{head}<head><script>{at_first}</script>{body}<script>{at_last}</script></body>{end}",
                                      encoding="utf-8")


def chromium(folder, *arguments):
    """Runs a Chromium of its own: nothing of the user's is read, and nothing outlives it."""
    command = [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
               "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", *arguments]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True, env={**os.environ, "HOME": str(folder)})
    try:
        return started.communicate(timeout=SECONDS)[0]
    finally:
        try:
            os.killpg(started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        started.wait()


def main():
    page = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    widths = [int(sys.argv[2])] if len(sys.argv) > 2 else WIDTHS
    for width in widths:
        for line in look(page, width):
            print(f"{width} pixels: {line}")
    if len(sys.argv) > 3:
        picture(page, widths[0], 3000, sys.argv[3])


if __name__ == "__main__":
    main()
