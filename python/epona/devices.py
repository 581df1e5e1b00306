"""Devices and memory: OrtDevice, OrtMemoryInfo and the enumerations around them."""

from __future__ import annotations

import enum
from typing import Any

from epona import _epona


class OrtDeviceVendorId(enum.IntEnum):
    """PCI vendor ids."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtMemType(enum.IntEnum):
    """What memory is for."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtAllocatorType(enum.IntEnum):
    """How memory is allocated."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of device that have memory."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtDeviceMemoryType(enum.IntEnum):
    """Whether the host can read device memory."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


# The names that device_type arguments take: (kind, vendor).
_NAMES = {
    "cpu": (0, 0),
    "cuda": (1, OrtDeviceVendorId.NVIDIA),
    "cann": (3, OrtDeviceVendorId.HUAWEI),
    "dml": (1, OrtDeviceVendorId.MICROSOFT),
    "webgpu": (1, 0),
    "gpu": (1, 0),
    "npu": (3, 0),
}


class NativeOrtDevice:
    """A device by numbers: kind, memory, vendor and index."""

    def __init__(self, device_type: int, mem_type: int, vendor_or_id: int, device_id: int | None = None) -> None:
        self._type, self._memory = int(device_type), int(mem_type)
        self._vendor = int(vendor_or_id) if device_id is not None else 0
        self._id = int(vendor_or_id if device_id is None else device_id)
        self._name = ""

    def device_type(self) -> int:
        """The kind: cpu(), gpu(), fpga() or npu()."""
        return self._type

    def mem_type(self) -> int:
        """The kind of memory."""
        return self._memory

    def vendor_id(self) -> int:
        """The PCI vendor id; 0 when any will do."""
        return self._vendor

    def device_id(self) -> int:
        """The index among devices of the kind."""
        return self._id

    @staticmethod
    def cpu() -> int:
        """The number of the kind CPU."""
        return 0

    @staticmethod
    def cuda() -> int:
        """The number of the kind GPU."""
        return 1

    @staticmethod
    def gpu() -> int:
        """The number of the kind GPU."""
        return 1

    @staticmethod
    def webgpu() -> int:
        """The number of the kind GPU."""
        return 1

    @staticmethod
    def fpga() -> int:
        """The number of the kind FPGA."""
        return 2

    @staticmethod
    def npu() -> int:
        """The number of the kind NPU."""
        return 3

    @staticmethod
    def cann() -> int:
        """The number of the kind NPU."""
        return 3

    @staticmethod
    def dml() -> int:
        """The number that DirectML devices have."""
        return 4

    @staticmethod
    def default_memory() -> int:
        """The number of the ordinary memory of a device."""
        return 0


class OrtDevice:
    """A device that values live on."""

    def __init__(self, c_ort_device: NativeOrtDevice) -> None:
        if not isinstance(c_ort_device, NativeOrtDevice):
            raise ValueError("OrtDevice wraps a native device: use OrtDevice.make(name, id)")
        self._ort_device = c_ort_device

    def _get_c_device(self) -> NativeOrtDevice:
        return self._ort_device

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int | OrtDeviceVendorId = -1) -> OrtDevice:
        """The device of a kind ("cpu", "cuda", "gpu", "npu", ...) with an index."""
        if ort_device_name not in _NAMES and not _epona._is_device_type(ort_device_name):
            raise Exception(f"Unsupported device type: {ort_device_name}")
        kind, vendor = _NAMES.get(ort_device_name, (1, 0))
        if vendor_id != -1:
            vendor = vendor_id
        native = NativeOrtDevice(kind, 0, vendor, device_id)
        if ort_device_name != "gpu" or vendor_id == -1:
            native._name = ort_device_name
        return OrtDevice(native)

    def device_id(self) -> int:
        """The index among devices of the kind."""
        return self._ort_device.device_id()

    def device_type(self) -> int:
        """The kind: 0 CPU, 1 GPU, 2 FPGA, 3 NPU."""
        return self._ort_device.device_type()

    def device_vendor_id(self) -> int:
        """The PCI vendor id; 0 when any will do."""
        return self._ort_device.vendor_id()

    def device_mem_type(self) -> int:
        """The kind of memory."""
        return self._ort_device.mem_type()


class OrtMemoryInfo:
    """A kind of memory: name, device and purpose."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType) -> None:
        kinds = {"Cpu": 0, "Cuda": 1, "CudaPinned": 0, "Gpu": 1, "OpenVINO_CPU": 0, "OpenVINO_GPU": 1, "DML": 1}
        if name not in kinds:
            raise RuntimeError(f"Specified device is not supported: {name!r}. Try OrtMemoryInfo.create_v2.")
        self._fill(name, OrtMemoryInfoDeviceType(kinds[name]), 0, device_id, 0, allocator_type)
        self._mem_type = OrtMemType(mem_type)

    def _fill(self, name, device_type, vendor, device_id, memory, allocator_type) -> None:
        self._name, self._device_type, self._vendor = name, OrtMemoryInfoDeviceType(device_type), int(vendor)
        self._device_id, self._memory = int(device_id), OrtDeviceMemoryType(memory)
        self._allocator_type, self._mem_type = OrtAllocatorType(allocator_type), OrtMemType.DEFAULT

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
    ) -> OrtMemoryInfo:
        """Memory under any name, with all its numbers given."""
        info = OrtMemoryInfo.__new__(OrtMemoryInfo)
        info._fill(name, device_type, vendor_id, device_id, device_mem_type, allocator_type)
        return info

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def device_id(self) -> int:
        """The index of the device."""
        return self._device_id

    @property
    def mem_type(self) -> OrtMemType:
        """What it is for."""
        return self._mem_type

    @property
    def allocator_type(self) -> OrtAllocatorType:
        """How it is allocated."""
        return self._allocator_type

    @property
    def device_mem_type(self) -> OrtDeviceMemoryType:
        """Whether the host can read it."""
        return self._memory

    @property
    def device_vendor_id(self) -> int:
        """The PCI vendor id of the device."""
        return self._vendor


class OrtArenaCfg:
    """Sizes of a memory arena: accepted and readable. Epona plans memory per model, so they change nothing."""

    max_mem: int = 0
    arena_extend_strategy: int = -1
    initial_chunk_size_bytes: int = -1
    max_dead_bytes_per_chunk: int = -1
    initial_growth_chunk_size_bytes: int = -1
    max_power_of_two_extend_bytes: int = -1

    _KEYS = {
        "max_mem": 0,
        "arena_extend_strategy": -1,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
        "initial_growth_chunk_size_bytes": -1,
        "max_power_of_two_extend_bytes": -1,
    }

    def __init__(self, *args) -> None:
        values = dict(self._KEYS)
        if len(args) == 1 and isinstance(args[0], dict):
            for key, value in args[0].items():
                if key not in values:
                    raise ValueError(f"OrtArenaCfg has no key {key!r}; it has {', '.join(values)}")
                values[key] = int(value)
        elif len(args) == 4:
            values.update(zip(values, map(int, args)))
        else:
            raise TypeError("OrtArenaCfg takes a dict, or max_mem, strategy, initial chunk and dead bytes per chunk")
        for key, value in values.items():
            setattr(self, key, value)


def device_argument(device_type: str, device_id: int = 0, vendor_id: int = -1) -> tuple[str, int, int] | None:
    """A device as native functions take it: None for host memory. An unknown name is an error."""
    name = device_type.lower()
    if name not in _NAMES and not _epona._is_device_type(name):
        raise Exception(f"Unsupported device type: {device_type}")
    if name == "cpu":
        return None
    return name, int(device_id), max(0, int(vendor_id))


def describe_device(device: Any) -> tuple[str, int, int]:
    """The name, index and vendor of an OrtDevice, its native part, or an OrtMemoryInfo."""
    if isinstance(device, OrtMemoryInfo):
        kind, vendor, index = int(device._device_type), device._vendor, device._device_id
    else:
        native = device._get_c_device() if isinstance(device, OrtDevice) else device
        if not isinstance(native, NativeOrtDevice):
            raise TypeError(f"a device must be an OrtDevice, found {type(device)}")
        if native._name:
            return native._name, native._id, 0
        kind, vendor, index = native._type, native._vendor, native._id
    names = {0: "cpu", 1: "gpu", 3: "npu", 4: "dml"}
    if kind not in names:
        raise RuntimeError(f"no provider of Epona works on devices of kind {kind} (FPGA)")
    return names[kind], index, vendor


def kind_of_device(name: str) -> tuple[OrtMemoryInfoDeviceType, int]:
    """The kind and vendor of the devices of a name."""
    kind, vendor = _NAMES.get(name, (OrtMemoryInfoDeviceType.GPU, 0))
    return OrtMemoryInfoDeviceType(kind), int(vendor)
