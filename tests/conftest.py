"""Set before the package is asked for its first provider."""

import os

os.environ["EPONA_TEST_PROVIDERS"] = "1"  # the providers of src/providers/testing
