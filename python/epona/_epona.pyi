from collections.abc import Mapping, Sequence
import enum
from typing import overload

from epona.capi.onnxruntime_pybind11_state import (
    DeviceReset as DeviceReset,
    EPFail as EPFail,
    EngineError as EngineError,
    Fail as Fail,
    InvalidArgument as InvalidArgument,
    InvalidGraph as InvalidGraph,
    InvalidProtobuf as InvalidProtobuf,
    ModelLoadCanceled as ModelLoadCanceled,
    ModelLoaded as ModelLoaded,
    ModelRequiresCompilation as ModelRequiresCompilation,
    NoModel as NoModel,
    NoSuchFile as NoSuchFile,
    NotFound as NotFound,
    NotImplemented as NotImplemented,
    RuntimeException as RuntimeException
)
from epona import session_options as _options


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0

    ORT_ENABLE_BASIC = 1

    ORT_ENABLE_EXTENDED = 2

    ORT_ENABLE_LAYOUT = 3

    ORT_ENABLE_ALL = 99

class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0

    ORT_PARALLEL = 1

class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0

    PRIORITY_BASED = 1

    MEMORY_EFFICIENT = 2

class SessionOptions:
    """Everything that can be set before a session is made."""

    def __init__(self) -> None: ...

    @property
    def graph_optimization_level(self) -> GraphOptimizationLevel: ...

    @graph_optimization_level.setter
    def graph_optimization_level(self, arg: GraphOptimizationLevel, /) -> None: ...

    @property
    def intra_op_num_threads(self) -> int: ...

    @intra_op_num_threads.setter
    def intra_op_num_threads(self, arg: int, /) -> None: ...

    @property
    def inter_op_num_threads(self) -> int: ...

    @inter_op_num_threads.setter
    def inter_op_num_threads(self, arg: int, /) -> None: ...

    @property
    def execution_mode(self) -> ExecutionMode: ...

    @execution_mode.setter
    def execution_mode(self, arg: ExecutionMode, /) -> None: ...

    @property
    def execution_order(self) -> ExecutionOrder:
        """Nodes run in the order of the plan; the setting is kept."""

    @execution_order.setter
    def execution_order(self, arg: ExecutionOrder, /) -> None: ...

    @property
    def use_per_session_threads(self) -> bool: ...

    @use_per_session_threads.setter
    def use_per_session_threads(self, arg: bool, /) -> None: ...

    @property
    def enable_cpu_mem_arena(self) -> bool: ...

    @enable_cpu_mem_arena.setter
    def enable_cpu_mem_arena(self, arg: bool, /) -> None: ...

    @property
    def enable_mem_pattern(self) -> bool: ...

    @enable_mem_pattern.setter
    def enable_mem_pattern(self, arg: bool, /) -> None: ...

    @property
    def enable_mem_reuse(self) -> bool: ...

    @enable_mem_reuse.setter
    def enable_mem_reuse(self, arg: bool, /) -> None: ...

    @property
    def enable_profiling(self) -> bool: ...

    @enable_profiling.setter
    def enable_profiling(self, arg: bool, /) -> None: ...

    @property
    def profile_file_prefix(self) -> str: ...

    @profile_file_prefix.setter
    def profile_file_prefix(self, arg: str, /) -> None: ...

    @property
    def optimized_model_filepath(self) -> str: ...

    @optimized_model_filepath.setter
    def optimized_model_filepath(self, arg: str, /) -> None: ...

    @property
    def logid(self) -> str: ...

    @logid.setter
    def logid(self, arg: str, /) -> None: ...

    @property
    def log_severity_level(self) -> int: ...

    @log_severity_level.setter
    def log_severity_level(self, arg: int, /) -> None: ...

    @property
    def log_verbosity_level(self) -> int: ...

    @log_verbosity_level.setter
    def log_verbosity_level(self, arg: int, /) -> None: ...

    @property
    def use_deterministic_compute(self) -> bool: ...

    @use_deterministic_compute.setter
    def use_deterministic_compute(self, arg: bool, /) -> None: ...

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets a configuration entry."""

    def add_initializer(self, name: str, ort_value: object) -> None:
        """Takes a value in the place of the model's initialiser of that name."""

    def get_session_config_entry(self, key: str) -> str:
        """The value of a configuration entry; RuntimeError when it is not set."""

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Fixes a symbolic dimension of the inputs by its name."""

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Fixes a symbolic dimension of the inputs by its denotation."""

    def set_load_cancellation_flag(self, is_cancel: bool) -> None:
        """
        While set, by any thread, sessions that are being made with these options stop with ModelLoadCanceled.
        """

    def config_or(self, arg0: str, arg1: str, /) -> str: ...

    def has_providers(self) -> bool: ...

    def has_config(self, arg0: str, arg1: str, /) -> bool: ...

    def has_config_key(self, arg: str, /) -> bool: ...

    def config_value(self, arg0: str, arg1: str, /) -> str: ...

    add_external_initializers = _options.add_external_initializers

    add_external_initializers_from_files_in_memory = _options.add_external_initializers_from_files_in_memory

    add_provider_for_devices = _options.add_provider_for_devices

    clear_ep_context_data_read_func = _options.clear_ep_context_data_read_func

    register_custom_ops_library = _options.register_custom_ops_library

    set_ep_context_data_read_func = _options.set_ep_context_data_read_func

    set_provider_selection_policy = _options.set_provider_selection_policy

    set_provider_selection_policy_delegate = _options.set_provider_selection_policy_delegate

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Adds a provider with options, after those added before."""

class RunOptions:
    """Options of one run."""

    def __init__(self) -> None: ...

    @property
    def terminate(self) -> bool: ...

    @terminate.setter
    def terminate(self, arg: bool, /) -> None: ...

    @property
    def logid(self) -> str: ...

    @logid.setter
    def logid(self, arg: str, /) -> None: ...

    @property
    def tag(self) -> str: ...

    @tag.setter
    def tag(self, arg: str, /) -> None: ...

    @property
    def log_severity_level(self) -> int: ...

    @log_severity_level.setter
    def log_severity_level(self, arg: int, /) -> None: ...

    @property
    def log_verbosity_level(self) -> int: ...

    @log_verbosity_level.setter
    def log_verbosity_level(self, arg: int, /) -> None: ...

    @property
    def only_execute_path_to_fetches(self) -> bool: ...

    @only_execute_path_to_fetches.setter
    def only_execute_path_to_fetches(self, arg: bool, /) -> None: ...

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets a configuration entry of the run."""

    def get_run_config_entry(self, key: str) -> str: ...

    add_active_adapter = _options.add_active_adapter

def set_seed(seed: int) -> None:
    """Sets the seed of random operators whose node has none."""

def set_default_logger_severity(severity: int) -> None:
    """
    Sets the process-wide log threshold: 0 verbose, 1 info, 2 warning, 3 error, 4 fatal.
    """

class OrtValue:
    """A tensor, sequence or map in the runtime's memory."""

    @staticmethod
    def ortvalue_from_numpy(array: object | None, device: object | None = None) -> OrtValue:
        """Shares the memory of a numpy array, or copies it to a device."""

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(array: object, onnx_element_type: int) -> OrtValue:
        """
        Shares the memory of an array and takes its bits for another type of that size.
        """

    @staticmethod
    def ortvalue_from_shape_and_onnx_type(shape: Sequence[int], type: int, device: object | None = None, session: Session | None = None) -> OrtValue:
        """
        An uninitialised tensor; one of a session's device counts in the memory limit of that session.
        """

    @staticmethod
    def ortvalue_from_sequence(items: Sequence) -> OrtValue:
        """A sequence of arrays or OrtValues, copied."""

    @staticmethod
    def ortvalue_from_map(keys: object, values: object) -> OrtValue:
        """A map, from the arrays of its keys and values."""

    @staticmethod
    def ortvalue_none() -> OrtValue:
        """An optional value that is absent."""

    @staticmethod
    def from_dlpack(data: object, is_bool_tensor: bool = False) -> OrtValue:
        """Shares the memory of an object that has __dlpack__."""

    def to_dlpack(self) -> object: ...

    def __dlpack__(self, *, stream: object | None = None, max_version: object | None = None, dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> object:
        """
        A capsule of the DLPack protocol; the memory is shared unless copy is True.
        """

    def __dlpack_device__(self) -> tuple[int, int]:
        """
        DLPack's numbers of a kind of device and of one of these; (1, 0): host memory.
        """

    def numpy(self) -> object:
        """The value as numpy sees it; tensors share memory."""

    def to_sequence(self) -> list[OrtValue]: ...

    def shape(self) -> list[int]: ...

    def element_type(self) -> int: ...

    def data_type(self) -> str: ...

    def is_tensor(self) -> bool: ...

    def is_tensor_sequence(self) -> bool: ...

    def is_sparse_tensor(self) -> bool: ...

    def has_value(self) -> bool: ...

    def data_ptr(self) -> int: ...

    def device_name(self) -> str: ...

    def device_id(self) -> int: ...

    def synchronize(self) -> None: ...

    def tensor_size_in_bytes(self) -> int: ...

    def update_inplace(self, data: object) -> None:
        """
        Copies an array or OrtValue of the same type and size into this memory.
        """

class NodeArg:
    """Name, type and shape of an input or output."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def shape(self) -> list: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class ModelMetadata:
    """What a model says about itself."""

    @property
    def producer_name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def domain(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def graph_description(self) -> str: ...

    @property
    def custom_metadata_map(self) -> dict[str, str]: ...

    @property
    def graph_name(self) -> str: ...

class Session:
    @overload
    def __init__(self, path: str, options: SessionOptions) -> None: ...

    @overload
    def __init__(self, bytes: bytes, options: SessionOptions) -> None: ...

    @property
    def inputs_meta(self) -> list[NodeArg]: ...

    @property
    def outputs_meta(self) -> list[NodeArg]: ...

    @property
    def overridable_initializers(self) -> list[NodeArg]: ...

    @property
    def model_meta(self) -> ModelMetadata: ...

    def get_providers(self) -> list[str]: ...

    def provider_options(self) -> list[tuple[str, dict[str, str]]]: ...

    def set_providers(self, requests: Sequence[tuple[str, Mapping[str, str]]]) -> None: ...

    def set_dynamic_options(self, options: Mapping[str, str]) -> None: ...

    def allow_run_fallback(self, on: bool) -> None: ...

    def inactive_providers(self) -> list: ...

    def has_config(self, arg0: str, arg1: str, /) -> bool: ...

    def end_profiling(self) -> str: ...

    @property
    def get_profiling_start_time_ns(self) -> int: ...

    def input_devices(self) -> list: ...

    def output_devices(self) -> list: ...

    def creation_times(self) -> list[tuple[str, float]]: ...

    def passes(self) -> list: ...

    def placement_json(self) -> str: ...

    def placement_html(self) -> str: ...

    def placement_table(self, rows: int) -> str: ...

    def run(self, output_names: Sequence[str] | None, input_feed: dict, run_options: RunOptions | None = None) -> list: ...

    def run_with_ort_values(self, input_feed: dict, output_names: Sequence[str] | None, run_options: RunOptions | None = None, devices: Sequence[object] | None = None) -> list[OrtValue]: ...

def isa() -> str:
    """The instruction-set tier in use."""

def available_isas() -> list[str]:
    """The instruction-set tiers this CPU has; EPONA_ISA forces one."""

class SessionIOBinding:
    """Values bound to the inputs and outputs of a session."""

    def __init__(self, session: Session) -> None: ...

    def bind_input(self, name: str, value: object | None) -> None: ...

    def bind_input_at(self, name: str, element_type: int, shape: Sequence[int], buffer_ptr: int, device: object | None = None) -> None: ...

    def bind_output(self, name: str, device: object | None = None) -> None: ...

    def bind_output_at(self, name: str, element_type: int, shape: Sequence[int], buffer_ptr: int, device: object | None = None) -> None: ...

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None: ...

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None: ...

    def clear_binding_inputs(self) -> None: ...

    def clear_binding_outputs(self) -> None: ...

    def output_names(self) -> list[str]: ...

    def get_outputs(self) -> list[OrtValue]: ...

    def copy_outputs_to_cpu(self) -> list: ...

    def synchronize_inputs(self) -> None: ...

    def synchronize_outputs(self) -> None: ...

    def run(self, session: Session, run_options: RunOptions | None = None) -> None: ...

def get_all_providers() -> list[str]:
    """Every provider name that Epona knows, in order of preference."""

def get_available_providers() -> list[str]:
    """The providers that can run here, in order of preference."""

def provider_is_known(name: str) -> bool: ...

def suggest_provider(name: str) -> str: ...

def probe_provider(name: str) -> dict:
    """What a provider needs and what is there."""

def check_provider_options(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """
    Every effective option of a provider; an error for a wrong key or value.
    """

def doctor_table() -> str: ...

def doctor_json() -> str: ...

def provider_schema_json(name: str) -> str: ...

def provider_document() -> str: ...
