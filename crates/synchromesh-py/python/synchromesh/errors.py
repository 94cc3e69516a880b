"""Exceptions: a small tree. Each has ``kind``, a stable word, and ``remedy``, what to do about it."""

from __future__ import annotations

from typing import Any

__all__ = [
    "DecodeError",
    "DeviceError",
    "FileError",
    "InputError",
    "InsecureError",
    "LayoutError",
    "LevelError",
    "MismatchError",
    "MissingKeyError",
    "NoiseError",
    "ParamsError",
    "ProtocolError",
    "ShapeError",
    "DTypeError",
    "SynchromeshError",
]


class SynchromeshError(Exception):
    """Any error of this package."""

    kind: str
    remedy: str
    _cause: Any

    def __init__(self, message: str, *, kind: str = "error", remedy: str = "") -> None:
        super().__init__(f"{message}. Remedy: {remedy}" if remedy else message)
        self.kind = kind
        self.remedy = remedy
        self._cause = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.kind, self.remedy)


class ParamsError(SynchromeshError, ValueError):
    """Parameters or a description that cannot be."""


class InsecureError(ParamsError):
    """Parameters under the security asked for."""


class InputError(SynchromeshError, ValueError):
    """Numbers that cannot be encrypted or computed with: NaN, too large, too many."""


class DTypeError(InputError, TypeError):
    """Values of a type that the scheme does not compute with."""


class ShapeError(InputError):
    """Arrays whose shapes do not go together."""


class LayoutError(SynchromeshError, RuntimeError):
    """Elements that lie in other slots than an operation can work with."""


class LevelError(SynchromeshError, RuntimeError):
    """More multiplications than the plan has levels for."""


class NoiseError(SynchromeshError, RuntimeError):
    """A result that could decrypt wrongly, or whose noise nothing vouches for."""


class MissingKeyError(SynchromeshError, LookupError):
    """A key that the operation needs and nobody has given."""


class MismatchError(SynchromeshError, ValueError):
    """Objects of different contexts, keys or schemes."""


class DeviceError(SynchromeshError, RuntimeError):
    """A device that is not there, failed, has no memory left, or another than the one that holds the data."""


class DecodeError(SynchromeshError, ValueError):
    """Bytes that are not what they were read as."""


class FileError(SynchromeshError, OSError):
    """A file that cannot be read or written."""


class ProtocolError(SynchromeshError, RuntimeError):
    """A protocol among parties that was aborted: somebody misbehaved, or material was used before."""


_KINDS: dict[type[SynchromeshError], tuple[str, ...]] = {
    LayoutError: ("no_layout",),
    LevelError: ("level", "borrowed_primes"),
    NoiseError: ("noise", "unknown_noise", "release"),
    MissingKeyError: ("missing_key", "no_keys", "trimmed_key", "key_shape"),
    MismatchError: (
        "keys_differ",
        "params_differ",
        "scheme_differs",
        "plain_modulus_differs",
        "scale_mismatch",
        "components",
        "scheme",
        "dry_run",
        "key_type",
    ),
    InsecureError: ("insecure", "insecure_modulus", "insecure_degree"),
    DTypeError: ("dtype",),
    ShapeError: ("shape", "too_many_values"),
    InputError: (
        "argument",
        "not_finite",
        "above_declared_bound",
        "bound_out_of_range",
        "coefficient_too_large",
        "scale_out_of_range",
        "value_exceeds_modulus",
        "value_does_not_fit",
        "interval",
        "tolerance",
        "singular",
        "operation",
        "unknown_tuples",
        "demand",
        "layout",
        "rotations",
    ),
    ParamsError: (
        "params",
        "request",
        "switch_plan",
        "uneven_key",
        "plan_field",
        "primes",
        "shared_factor",
        "no_slots",
        "log_n_out_of_range",
        "second_base",
        "aux_primes",
        "key_digits",
        "plain_modulus_too_small",
        "plain_modulus_too_wide",
        "plain_modulus_not_a_number",
        "no_slot_prime",
        "degree",
        "modulus",
        "repeated_modulus",
        "no_such_prime",
        "not_a_field",
        "not_an_element",
        "weak_mac",
        "no_parameters",
        "parties",
        "joint_key",
        "not_a_joint_plan",
        "plan_security",
        "plan_precision",
        "plan_slots",
        "plan_key_bytes",
        "key_budget",
        "plan_memory",
        "plan_bounds",
        "memory",
        "threads",
    ),
    ProtocolError: (
        "abort",
        "aborted",
        "decrypted_before",
        "key_spent",
        "too_few_parties",
        "mac_key_burnt",
        "mac_key_busy",
        "out_of_step",
        "record_missing",
        "unmatched_triples",
        "spent_triple",
        "wrong_triple",
        "wrong_tuple",
        "other_prime",
        "other_mac_key",
        "run_used",
        "program_not_begun",
        "program_failed",
        "workers",
        "tls",
        "same_party",
        "below_floor",
        "unlisted_party",
        "not_among",
        "anothers_share",
        "unconfirmed_keys",
    ),
    DeviceError: ("device_unavailable", "device_lost", "memory_budget", "other_device", "unsupported_modulus"),
    FileError: (
        "file_not_found",
        "file_exists",
        "file_is_a_key",
        "not_a_file",
        "file_too_large",
        "file_exceeds_memory",
        "file_changed",
        "file_busy",
        "file_damaged",
        "file_system",
    ),
    DecodeError: (
        "header",
        "session",
        "not_a_container",
        "truncated",
        "trailing_bytes",
        "future_version",
        "header_corrupt",
        "body_corrupt",
        "not_authentic",
        "envelope_mismatch",
        "unproven_certificate",
        "certificate_on_word",
        "unknown_type",
        "wrong_type",
        "wrong_params",
        "wrong_key",
        "wrong_domain",
        "too_large",
        "non_canonical",
        "not_a_polynomial",
        "wire_modulus",
        "format",
    ),
}
_CLASSES = {kind: cls for cls, kinds in _KINDS.items() for kind in kinds}


def from_native(kind: str, message: str, remedy: str, cause: Any = None) -> SynchromeshError:
    """The exception for an error of the native module."""
    error = _CLASSES.get(kind, SynchromeshError)(message, kind=kind, remedy=remedy)
    error._cause = cause
    return error


def _restore(cls: type[SynchromeshError], args: tuple[Any, ...], kind: str, remedy: str) -> SynchromeshError:
    error = cls.__new__(cls)
    error.args = args
    error.kind = kind
    error.remedy = remedy
    error._cause = None
    return error
