"""The rating page's server in a process of its own, as the command serves it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

SERVER = """
import sys
from assetscore.studies.rating.app import serve
from assetscore.studies.rating.store import Store
from assetscore.studies.rating.study import read_study
folder, port = sys.argv[1], int(sys.argv[2])
serve(read_study(folder), Store(folder + "/answers.sqlite"), port=port, ready=lambda url: print(url, flush=True))
"""


@contextmanager
def serving(folder, port=0, kill=False):
    """Yields (its address, its process)."""
    command = [sys.executable, "-c", SERVER, str(folder), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.getcwd())
    try:
        url = process.stdout.readline().strip()
        assert url, "the server did not start"
        yield url, process
    finally:
        process.send_signal(signal.SIGKILL if kill else signal.SIGINT)
        process.wait(timeout=15)
        process.stdout.close()
