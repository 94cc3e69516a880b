"""What a tensor tells without a key, and what encrypted numbers refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _native, _text
from ._ranges import Held
from .errors import DTypeError

if TYPE_CHECKING:
    from .context import Context


def _refusing(what: str, remedy: str) -> Callable[..., Any]:
    """A method that says what to do instead."""

    def refuse(self: Known, *_: object, **__: object) -> Any:
        raise DTypeError(what, kind="dtype", remedy=remedy)

    return refuse


def precision(bound: float, error: float) -> float:
    return float("inf") if error == 0 else float(np.log2(bound / error))


class Known:
    """The shape of a tensor, and where its certificates and ranges stand."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    if TYPE_CHECKING:
        context: Context
        _at: NDArray[np.int64]
        _held: Held | None

    @property
    def _parts(self) -> list[_native.Ciphertext]:
        """The ciphertexts, with all that is due to them."""
        raise NotImplementedError

    @property
    def _own(self) -> list[_native.Ciphertext]:
        """The ciphertexts as they are held."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy's."""
        return self._at.shape

    @property
    def ndim(self) -> int:
        """As NumPy's."""
        return self._at.ndim

    @property
    def size(self) -> int:
        """Elements."""
        return self._at.size

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts hold the elements."""
        return len(self._own)

    @property
    def level(self) -> int:
        """Rescales or modulus switches that remain."""
        return min(part.level for part in self._parts)

    @property
    def noise_budget(self) -> float:
        """Bits by which the noise may still grow; by certificates, from public data only."""
        return min(part.state()[3] for part in self._parts)

    @property
    def error_bound(self) -> float:
        """CKKS: how far a decrypted element may be off, except with the plan's probability of failure; 0 in BFV and BGV."""
        return max(part.state()[4] for part in self._parts)

    @property
    def precision_bits(self) -> float:
        """CKKS: bits of the largest element that are surely right; infinite in BFV and BGV."""
        return min(precision(*part.state()[5:3:-1]) for part in self._parts)

    @property
    def bound(self) -> float:
        """No element exceeds it, by what was declared and, in BFV and BGV, by what was encrypted in this process.

        Infinite where nothing is known, in BFV and BGV.
        """
        if self.context.exact:
            return float("inf") if self._held is None else float(self._held.elements.reach)
        return max(part.state()[5] for part in self._parts)

    @property
    def key_id(self) -> str:
        """Names the secret key that decrypts it."""
        return self._parts[0].state()[2]

    def __repr__(self) -> str:
        state = f"level {self.level} of {self.context.top_level}, {self.noise_budget:.1f} bits of noise left"
        if not self.context.exact:
            state += f", {self.precision_bits:.1f} bits of precision"
        return f"Tensor({self.context.scheme}, shape {self.shape}, {state}{self.context._failure_said})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows: list[tuple[str, object]] = [
            ("shape", self.shape),
            ("ciphertexts", self.ciphertexts),
            ("level", f"{self.level} of {self.context.top_level}"),
            ("noise budget", f"{self.noise_budget:.1f} bits"),
        ]
        if not self.context.exact:
            rows.append(("error at most", f"{self.error_bound:.3g}{self.context._failure_said}"))
        return _text.table(f"Tensor, {self.context.scheme}", rows)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            from ._numpy import absent

            said = absent(name)
            raise AttributeError(said or f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    _compared = _refusing(
        "whether encrypted numbers are equal is unknown",
        "decrypt them first, take sm.functions.equal(x, y) of integers, or for objects use `is`",
    )
    __eq__ = __ne__ = __contains__ = _compared
    __bool__ = _refusing("the truth of an encrypted value is unknown", "decrypt it first")
    __array__ = _refusing("an encrypted tensor is no array", "decrypt it: secret.decrypt(x)")
    __float__ = __int__ = __complex__ = __index__ = __round__ = _refusing(
        "an encrypted tensor is no number", "decrypt it: secret.decrypt(x)"
    )
    __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = __divmod__ = __rdivmod__ = _refusing(
        "remainders and quotients of encrypted numbers", "decrypt them first"
    )

    # 1 where it holds, 0 where it does not: see `functions`. Of real numbers undecided near equality.

    def __gt__(self, other: Any) -> Any:
        return self._more(self, other, True)

    def __lt__(self, other: Any) -> Any:
        return self._more(other, self, True)

    def __ge__(self, other: Any) -> Any:
        return self._more(self, other, False)

    def __le__(self, other: Any) -> Any:
        return self._more(other, self, False)

    def _more(self, first: Any, second: Any, strictly: bool) -> Any:
        """Whether the first is larger, or unless ``strictly`` as large."""
        from . import functions

        kinds = "biu" if self.context.exact else "biuf"
        if not all(x is self or isinstance(x, Known) or np.asarray(x).dtype.kind in kinds for x in (first, second)):
            return self._compared()
        if not self.context.exact:
            return functions.compare(first, second)
        return functions.less(second, first) if strictly else 1 - functions.less(first, second)

    def __abs__(self) -> Any:
        from . import functions

        if self.context.exact:
            raise DTypeError("the absolute value of encrypted integers", kind="dtype", remedy="take x.square()")
        return functions.absolute(self)

    __rpow__ = _refusing(
        "encrypted exponents", "take x.chebyshev(lambda v: base**v, (low, high), degree), in ckks"
    )
