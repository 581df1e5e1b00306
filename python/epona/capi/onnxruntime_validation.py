"""What the package is."""


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """Name and version of the distribution, and the CUDA version it was built for (none)."""
    from epona.drop_in import API_VERSION

    return "onnxruntime", API_VERSION, ""


def check_distro_info() -> None:
    """Nothing to check: the wheel's tag says where it runs."""


def check_training_module() -> tuple[bool, str | None, str]:
    """There is no training."""
    return False, None, ""
