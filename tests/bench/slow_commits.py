"""A disk whose commits take as long as is asked for: `fsync` and `fdatasync` of the C library, longer by a nap.

The nap comes after the real call, through LD_PRELOAD, for every program of the run alike: for bare sqlite3 as for the
journal. It stands for the disks of other machines, and is no disk; figures that were made so say it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static int nap(int done) {
    const char *said = getenv("COMMIT_MICROSECONDS");
    long microseconds = said == NULL ? 0 : atol(said);
    struct timespec left = {microseconds / 1000000, microseconds % 1000000 * 1000};
    if (microseconds > 0) nanosleep(&left, NULL);
    return done;
}
int fsync(int file) { return nap(((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file)); }
int fdatasync(int file) { return nap(((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file)); }
"""


def run_with(commit_ms: float, *arguments: str) -> int:
    """Run this interpreter with arguments where a wait for the disk takes so much longer; returns its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "nap.c"), Path(folder, "nap.so")
        source.write_text(_SOURCE)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        waits = {"LD_PRELOAD": str(library), "COMMIT_MICROSECONDS": str(round(commit_ms * 1000))}
        return subprocess.run([sys.executable, *arguments], env=os.environ | waits, check=False).returncode
