"""The `epona` program that belongs to the package under test."""

import pathlib
import shutil
import subprocess
import sys

import epona
import pytest


def path():
    module = pathlib.Path(epona._epona.__file__).resolve()
    for candidate in (module.parents[2] / "bin" / "epona", pathlib.Path(sys.executable).parent / "epona"):
        if candidate.exists():
            return str(candidate)
    return shutil.which("epona") or pytest.skip("the program is not beside this build of the package")


def run(*words, **arguments):
    arguments = {"capture_output": True, "text": True, "check": False, "timeout": 120, **arguments}
    return subprocess.run([path(), *map(str, words)], **arguments)
