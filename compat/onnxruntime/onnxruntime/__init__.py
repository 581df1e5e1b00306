"""Epona under the name onnxruntime, for programs written for that package."""

import sys

from epona.drop_in import fill

_is_epona = True
fill(sys.modules[__name__])
