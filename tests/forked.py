"""Runs the command line in processes of its own, forked from one that has imported everything: many cost little.

Reads one JSON list of jobs a line, runs them at once, and answers with the list of their exit codes (negative: a signal).
A job is {"arguments": [...], "home": ASSETSCORE_HOME, "log": path, "limit": bytes a file may have, "kill": seconds}.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import faiss  # noqa: F401
import pyarrow.parquet  # noqa: F401

import assetscore.report
import assetscore.submissions.minecraft
import assetscore.table  # noqa: F401
from assetscore.benchmark import run_benchmark  # noqa: F401
from assetscore.cli import main


def start(job: dict[str, Any]) -> int:
    process = os.fork()
    if process:
        return process
    code: object = 70
    try:
        with Path(job["log"]).open("wb") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        os.environ["ASSETSCORE_HOME"] = job["home"]
        if job.get("limit"):
            resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
        main(job["arguments"])
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    for line in sys.stdin:
        jobs = json.loads(line)
        processes = [start(job) for job in jobs]
        for job, process in zip(jobs, processes, strict=True):
            if "kill" in job:
                threading.Event().wait(job["kill"])
                os.kill(process, signal.SIGKILL)
        codes = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()
