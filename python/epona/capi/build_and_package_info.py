"""Name and version that programs read."""

from epona.drop_in import API_VERSION as __version__  # noqa: F401

package_name = "onnxruntime"
