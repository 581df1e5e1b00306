"""Hardware devices, what providers offer on them, and policies that choose among these."""

from __future__ import annotations

import enum
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from epona import _epona
from epona.devices import OrtAllocatorType, OrtDeviceMemoryType, OrtMemoryInfo, OrtMemoryInfoDeviceType
from epona.providers import get_all_providers, get_available_providers

_VENDOR_IDS = {"GenuineIntel": ("Intel", 0x8086), "AuthenticAMD": ("AMD", 0x1022)}


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of hardware."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """What to look for when the runtime chooses the providers."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class OrtCompiledModelCompatibility(enum.IntEnum):
    """Whether a compiled model fits a device."""

    EP_NOT_APPLICABLE = 0
    EP_SUPPORTED_OPTIMAL = 1
    EP_SUPPORTED_PREFER_RECOMPILATION = 2
    EP_UNSUPPORTED = 3


class OrtDeviceEpIncompatibilityReason(enum.IntFlag):
    """Why a provider cannot use a device."""

    NONE = 0
    DRIVER_INCOMPATIBLE = 1
    DEVICE_INCOMPATIBLE = 2
    MISSING_DEPENDENCY = 4
    UNKNOWN = -2147483648


class _Record:
    """An object with read-only attributes."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update({"_" + key: value for key, value in values.items()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k[1:]}={v!r}' for k, v in self.__dict__.items())})"


class OrtHardwareDevice(_Record):
    """A CPU, GPU or NPU of this machine."""

    type = property(lambda self: self._type, doc="The kind.")
    vendor_id = property(lambda self: self._vendor_id, doc="The PCI vendor id.")
    vendor = property(lambda self: self._vendor, doc="The vendor's name.")
    device_id = property(lambda self: self._device_id, doc="The PCI device id.")
    metadata = property(lambda self: dict(self._metadata), doc="More about it.")


class OrtSyncStream:
    """A queue of work on a device. The host has none, so that there is nothing to wait for."""

    def get_handle(self) -> int:
        """The device's own handle: 0 on the host."""
        return 0


class OrtEpDevice(_Record):
    """A provider on a device."""

    ep_name = property(lambda self: self._ep_name, doc="The provider's name.")
    ep_vendor = property(lambda self: self._ep_vendor, doc="Who made the provider.")
    ep_metadata = property(lambda self: dict(self._ep_metadata), doc="More about the provider.")
    ep_options = property(lambda self: dict(self._ep_options), doc="Options it would be made with.")
    device = property(lambda self: self._device, doc="The hardware.")

    def memory_info(self, memory_type: OrtDeviceMemoryType) -> OrtMemoryInfo | None:
        """The memory that values for it live in; None for memory it does not have."""
        if self._device.type != OrtHardwareDeviceType.CPU or memory_type != OrtDeviceMemoryType.DEFAULT:
            return None
        arguments = ("Cpu", OrtMemoryInfoDeviceType.CPU, 0, 0, memory_type, 64, OrtAllocatorType.ORT_DEVICE_ALLOCATOR)
        return OrtMemoryInfo.create_v2(*arguments)

    def create_sync_stream(self) -> OrtSyncStream:
        """A queue on the device."""
        return OrtSyncStream()


class OrtEpAssignedNode(_Record):
    """A node of the model as a provider got it."""

    name = property(lambda self: self._name, doc="Its name.")
    domain = property(lambda self: self._domain, doc="Its operator's domain.")
    op_type = property(lambda self: self._op_type, doc="Its operator.")


class OrtEpAssignedSubgraph(_Record):
    """Nodes that a provider runs as one."""

    ep_name = property(lambda self: self._ep_name, doc="The provider's name.")

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes."""
        return list(self._nodes)


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """The devices of this machine that an available provider can use."""
    metadata, vendor = {}, ("", 0)
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "vendor_id":
                    vendor = _VENDOR_IDS.get(value.strip(), (value.strip(), 0))
                elif key.strip() == "model name":
                    metadata["Description"] = value.strip()
                    break
    except OSError:
        pass
    metadata["cores"] = str(os.cpu_count() or 1)
    device = OrtHardwareDevice(
        type=OrtHardwareDeviceType.CPU, vendor_id=vendor[1], vendor=vendor[0], device_id=0, metadata=metadata
    )
    return [device]


def get_ep_devices() -> list[OrtEpDevice]:
    """Every available provider with the device it uses by default."""
    (cpu,) = get_hardware_devices()
    return [
        OrtEpDevice(
            ep_name=name, ep_vendor="Epona", ep_metadata={"version": _epona.__version__}, ep_options={}, device=cpu
        )
        for name in get_available_providers()
    ]


def get_hardware_device_ep_incompatibility_details(ep_name: str, device: OrtHardwareDevice) -> dict[str, Any]:
    """Why a provider cannot use a device: a bit mask of OrtDeviceEpIncompatibilityReason, and a sentence."""
    if ep_name not in get_all_providers():
        raise _epona.InvalidArgument(f"[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : Unknown provider: {ep_name}")
    there = ep_name in get_available_providers()
    reasons = OrtDeviceEpIncompatibilityReason.NONE if there else OrtDeviceEpIncompatibilityReason.MISSING_DEPENDENCY
    return {"reasons_bitmask": int(reasons), "notes": "" if there else f"see `epona doctor {ep_name}`", "error_code": 0}


Delegate = Callable[[Sequence[OrtEpDevice], Mapping[str, str], Mapping[str, str], int], Sequence[OrtEpDevice]]
_delegates: weakref.WeakKeyDictionary[_epona.SessionOptions, Delegate] = weakref.WeakKeyDictionary()
_MAX_SELECTED = 8


def set_delegate(options: _epona.SessionOptions, delegate: Delegate | None) -> None:
    """Remembers the function that chooses devices for sessions made with these options."""
    if delegate is None:
        _delegates.pop(options, None)
    else:
        _delegates[options] = delegate


def choose_devices(options: _epona.SessionOptions) -> list[OrtEpDevice] | None:
    """The devices that the policy or the function of these options chooses; None when there is neither."""
    devices = get_ep_devices()
    if options in _delegates:
        chosen = list(_delegates[options](devices, {}, {}, _MAX_SELECTED))
        if not 0 < len(chosen) <= _MAX_SELECTED or not all(isinstance(device, OrtEpDevice) for device in chosen):
            raise _epona.Fail(
                "[ONNXRuntimeError] : 1 : FAIL : the provider selection function must return 1 to"
                f" {_MAX_SELECTED} OrtEpDevice, it returned {chosen!r}"
            )
        return chosen
    name = options.config_or("session.provider_policy", "")
    if not name:
        return None
    policy = OrtExecutionProviderDevicePolicy[name]
    wanted = {
        OrtExecutionProviderDevicePolicy.PREFER_NPU: OrtHardwareDeviceType.NPU,
        OrtExecutionProviderDevicePolicy.MAX_EFFICIENCY: OrtHardwareDeviceType.NPU,
        OrtExecutionProviderDevicePolicy.MIN_OVERALL_POWER: OrtHardwareDeviceType.NPU,
        OrtExecutionProviderDevicePolicy.PREFER_GPU: OrtHardwareDeviceType.GPU,
        OrtExecutionProviderDevicePolicy.MAX_PERFORMANCE: OrtHardwareDeviceType.GPU,
    }.get(policy, OrtHardwareDeviceType.CPU)
    own = [device for device in devices if device.ep_name == "CPUExecutionProvider"]
    first = [device for device in devices if device.device.type == wanted and device not in own][:1]
    return first + own if wanted != OrtHardwareDeviceType.CPU else own
