#!/usr/bin/env python3
"""Compare the public names of onnxruntime's Python package with Epona's, and write docs/compatibility.md.

Modules, classes, methods, properties, enumeration values and signatures are compared; every difference needs a reason here.
`--check` writes nothing and fails when the page is out of date or a difference has no reason.
"""

import argparse
import importlib
import inspect
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/compatibility.md"

# Their module and ours.
MODULES = [
    ("onnxruntime", "epona"),
    ("onnxruntime.capi.onnxruntime_inference_collection", "epona.capi.onnxruntime_inference_collection"),
    ("onnxruntime.capi.onnxruntime_pybind11_state", "epona.capi.onnxruntime_pybind11_state"),
    ("onnxruntime.backend", "epona.backend"),
]

PACKAGES = "model packages (folders with variants of a model for several providers) are not read; open the model of a variant"
CONTEXT = "no provider here writes or reads the data of EPContext nodes"
PACKING = "packs weights for onnxruntime's own kernels, for its quantisation tools"
KERNELS = "describes the kernels of onnxruntime's build"
INTERNAL = "an internal of onnxruntime's Python layer"
NATIVE = "the native class is made and used by InferenceSession here; its members differ"
DROP_IN = "set when Epona runs under the name onnxruntime (`epona.as_onnxruntime()`, compat/onnxruntime)"

# Names that are missing: pattern on "module:name" or "module:Class.member", and why.
REASONS = [
    (r"[\w.]+:ModelPackage\w*(\.\w+)?", PACKAGES),
    (r"[\w.]+:OrtEpContextData(Buffer)?(\.\w+)?", CONTEXT),
    (r"onnxruntime:(cuda_version|package_name|version)", DROP_IN),
    (r"onnxruntime:import_capi_exception", INTERNAL),
    (r"[\w.]+:(quantize|pack)_\w+", PACKING),
    (r"[\w.]+:(get_all_opkernel_def|get_all_operator_schema|get_registered_ep_kernel_defs)", KERNELS),
    (r"[\w.]+:(SessionObjectInitializer|get_session_initializer)", INTERNAL),
    (r"[\w.]+:(ArenaExtendStrategy|kNextPowerOfTwo|kSameAsRequested)", "names for a number of OrtArenaCfg, which takes numbers"),
    (r"[\w.]+:get_(model_)?compatibility_(info|for)_\w+", "no provider here makes models that are compiled for a device"),
    (r"[\w.]+pybind11_state:InferenceSession\.\w+", NATIVE),
    (r"[\w.]+pybind11_state:SessionIOBinding\.\w+", "bound by IOBinding, whose members are all there"),
    (r"[\w.]+inference_collection:(check_and_normalize_provider_args|get_ort_device_type|get_vendor_id_for_device_type)", INTERNAL),
    (r"[\w.]+inference_collection:make_get_initializer_location_func_wrapper", INTERNAL),
    (r"[\w.]+inference_collection:GetInitializerLocation\w+", INTERNAL),
    (r"[\w.]+inference_collection:Session\.\w+", "a member of InferenceSession, the only kind of session"),
    (r"[\w.]+pybind11_state:ModelCompiler", "the native half of ModelCompiler"),
    (r"[\w.]+pybind11_state:OrtValue\.\w*sparse_tensor", "values of sparse tensors are a class of their own"),
    (r"[\w.]+pybind11_state:OrtValue\.ortvalue_from_shape_and_\w+", "ortvalue_from_shape_and_onnx_type is there; the others are reached through OrtValue"),
]

# Signatures that differ on purpose.
SIGNATURES: list[tuple[str, str]] = []

SUBMODULES = {
    "onnxruntime.quantization": "makes quantised models; use onnxruntime's package for that, Epona runs the result",
    "onnxruntime.transformers": "rewrites transformer models for one runtime; Epona's passes do this when a model is loaded",
    "onnxruntime.tools": "command-line tools of onnxruntime; see `epona --help`",
    "onnxruntime.datasets": "example models of onnxruntime; Epona ships none",
    "onnxruntime.training": "not in onnxruntime's inference package either",
}


# Taken and kept, so that programs which set them run; Epona has nothing for them to change.
WITHOUT_EFFECT = [
    ("SessionOptions.enable_cpu_mem_arena, enable_mem_pattern, enable_mem_reuse", "memory is planned for each model and reused always"),
    ("SessionOptions.execution_mode, execution_order, inter_op_num_threads", "nodes run one after another, each on all threads"),
    ("SessionOptions.use_per_session_threads", "every session has its own threads; set_global_thread_pool_sizes sets how many by default"),
    ("RunOptions.only_execute_path_to_fetches", "all outputs are computed, those not asked for are dropped"),
    ("create_and_register_allocator, create_and_register_allocator_v2, OrtArenaCfg", "sessions share no arena"),
    ("log_verbosity_level, set_default_logger_verbosity", "verbose messages have one level"),
    ("enable_telemetry_events, disable_telemetry_events", "there is no telemetry"),
    ("preload_dlls", "providers open their vendor's libraries themselves"),
    ("release_captured_graph, get_tuning_results, set_tuning_results", "no provider captures graphs or searches for kernels"),
]


def public(owner):
    """Public members: no modules, no members that every object or native object has."""
    common = set(dir(object)) | {"__pybind11_module_local__"}
    names = []
    for name in dir(owner):
        keep = not name.startswith("_") or name in ("__init__", "__dlpack__", "__dlpack_device__")
        if keep and not (name in common and name != "__init__") and not isinstance(inspect.getattr_static(owner, name), types.ModuleType):
            names.append(name)
    return names


def enum_values(cls):
    members = getattr(cls, "__members__", None)
    return {name: int(value) for name, value in members.items()} if members else None


def parameters(function):
    """Names of parameters, where Python knows them and they say anything."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    names = [p.name for p in signature.parameters.values() if p.name not in ("self", "cls")]
    variadic = any(p.kind == p.VAR_POSITIONAL for p in signature.parameters.values())
    return None if variadic or any(re.fullmatch(r"arg\d+", name) for name in names) else names


def own_names(module):
    """What belongs to the module's API: not what it imported for its own use."""
    for name in public(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", "") or ""
        if home.split(".")[0] in ("onnxruntime", "") or module.__name__ == "onnxruntime" or not callable(value):
            if home.split(".")[0] not in ("typing", "collections", "contextlib", "numpy", "enum", "pathlib", "os"):
                yield name, value


def compare(theirs, ours):
    """Yields (kind, place, detail): kind is missing, values or signature."""
    where = theirs.__name__
    for name, value in own_names(theirs):
        if name in ("annotations", "TYPE_CHECKING") or repr(value).startswith("typing."):
            continue
        place = f"{where}:{name}"
        if not hasattr(ours, name):
            yield "missing", place, ""
            continue
        other = getattr(ours, name)
        if inspect.isclass(value):
            if enum_values(value) is not None:
                if enum_values(value) != enum_values(other):
                    yield "values", place, f"{enum_values(value)} and {enum_values(other)}"
                continue
            if issubclass(value, Exception):
                continue
            for member in public(value):
                if not hasattr(other, member):
                    yield "missing", f"{place}.{member}", ""
                elif callable(getattr(value, member)):
                    yield from compare_signatures(f"{place}.{member}", getattr(value, member), getattr(other, member))
        elif callable(value):
            yield from compare_signatures(place, value, other)


def compare_signatures(place, theirs, ours):
    expected, found = parameters(theirs), parameters(ours)
    if expected is not None and found is not None and expected != found[: len(expected)]:
        yield "signature", place, f"({', '.join(expected)}) and ({', '.join(found)})"


def reason_for(place, table):
    for pattern, reason in table:
        if re.fullmatch(pattern, place):
            return reason
    return None


def count(module):
    total = 0
    for _, value in own_names(module):
        total += 1
        if inspect.isclass(value) and not issubclass(value, Exception):
            total += len(public(value)) if enum_values(value) is None else len(enum_values(value))
    return total


def collect():
    """All differences as (kind, module, place, detail, reason), and a line for each module."""
    rows, summary = [], []
    for their_name, our_name in MODULES:
        theirs, ours = importlib.import_module(their_name), importlib.import_module(our_name)
        found = list(compare(theirs, ours))
        for kind, place, detail in found:
            rows.append((kind, their_name, place, detail, reason_for(place, REASONS if kind != "signature" else SIGNATURES)))
        missing = sum(1 for kind, *_ in found if kind == "missing")
        summary.append((their_name, our_name, count(theirs), missing))
    return rows, summary


def behaviour():
    sys.path.insert(0, str(ROOT / "tests/python"))
    try:
        return importlib.import_module("differential").DIFFERENT
    finally:
        sys.path.pop(0)


def page():
    """The text of docs/compatibility.md, and the differences that have no reason."""
    import onnxruntime

    rows, summary = collect()
    lines = [
        "# Compatibility with onnxruntime",
        "",
        "Made by `scripts/compare_api.py`; do not edit. Every public name of the Python package of onnxruntime "
        f"{onnxruntime.__version__}",
        "is there under the same name in Epona, with the same arguments, or is listed here with the reason.",
        "",
        "## Names",
        "",
        "| module | Epona's | names | missing |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{theirs}` | `{ours}` | {total} | {missing} |" for theirs, ours, total, missing in summary]
    for title, kind in (("Missing", "missing"), ("Other values", "values"), ("Other signatures", "signature")):
        selected = [row for row in rows if row[0] == kind]
        if not selected:
            continue
        grouped = {}
        for _, module, place, detail, reason in selected:
            name = place.split(":", 1)[1]
            grouped.setdefault((module, reason or "NO REASON GIVEN"), []).append(f"`{name}`" + (f" {detail}" if detail else ""))
        lines += ["", f"### {title}", "", "| module | names | reason |", "|---|---|---|"]
        lines += [f"| `{module}` | {', '.join(sorted(names))} | {reason} |" for (module, reason), names in grouped.items()]
    lines += ["", "### Submodules that are not there", "", "| module | reason |", "|---|---|"]
    lines += [f"| `{name}` | {reason} |" for name, reason in SUBMODULES.items()]
    lines += ["", "## Accepted without effect", "", "| names | why |", "|---|---|"]
    lines += [f"| {names} | {why} |" for names, why in WITHOUT_EFFECT]
    lines += [
        "",
        "## Behaviour",
        "",
        "`tests/python/test_differential.py` runs the same calls on both packages. These differ on purpose:",
        "",
        "| call | onnxruntime | Epona | why |",
        "|---|---|---|---|",
    ]
    cell = lambda text: text.replace("|", "\\|").replace("\n", " ")  # noqa: E731
    lines += [f"| {cell(row.title)} | {cell(row.theirs)} | {cell(row.ours)} | {cell(row.why)} |" for row in behaviour()]
    unexplained = [place for _, _, place, _, reason in rows if reason is None]
    return "\n".join(lines) + "\n", unexplained


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page is out of date")
    arguments = parser.parse_args()
    text, unexplained = page()
    for place in unexplained:
        print(f"no reason for {place}", file=sys.stderr)
    if arguments.check:
        current = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
        if current != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run scripts/compare_api.py", file=sys.stderr)
        return 1 if unexplained or current != text else 0
    PAGE.write_text(text, encoding="utf-8")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
