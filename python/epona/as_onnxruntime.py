"""`python -m epona.as_onnxruntime script.py ARGS` (or `-m module ARGS`) runs a program with Epona as its onnxruntime."""

import os
import runpy
import sys
import types

from epona.drop_in import as_onnxruntime


def main() -> None:
    """Runs the program named on the command line."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m epona.as_onnxruntime (SCRIPT.py | -m MODULE) [ARGUMENT...]", file=sys.stderr)
        sys.exit(0 if arguments else 2)
    as_onnxruntime()
    if arguments[0] == "-m":
        if len(arguments) < 2:
            sys.exit("epona.as_onnxruntime: -m needs the name of a module")
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
else:

    class _Callable(types.ModuleType):
        """epona.as_onnxruntime stays a function when the module of that name has been imported."""

        def __call__(self) -> types.ModuleType:
            return as_onnxruntime()

    sys.modules[__name__].__class__ = _Callable
