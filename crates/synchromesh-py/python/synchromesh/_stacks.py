"""Several tensors as one: their ciphertexts side by side, and products of stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _layout, _native, _numbers
from ._layout import FREE, ZERO
from ._ranges import Held, Range

if TYPE_CHECKING:
    from .tensor import Tensor

Slots = NDArray[np.int64]


def joined(tensors: Sequence[Tensor]) -> tuple[Tensor, list[Slots]]:
    """A tensor with the ciphertexts of all, and the slots in it at which the elements of each lie."""
    context, factor = tensors[0].context, tensors[0]._due.factor
    factor = factor if all(tensor._due.factor == factor for tensor in tensors) else 1.0
    parts: list[_native.Ciphertext] = []
    layouts = []
    for tensor in tensors:
        context._require_own(tensor.context)
        layouts.append(tensor._at + len(parts) * context.slots)
        parts = parts + (tensor._parts if factor == 1.0 else tensor._own)
    at = np.concatenate([layout.reshape(-1) for layout in layouts])
    rest = ZERO if all(tensor._rest == ZERO for tensor in tensors) else FREE
    known = [tensor._held for tensor in tensors if tensor._held is not None]
    held = None
    if len(known) == len(tensors):
        held = Held(reduce(Range.hull, (k.elements for k in known)), reduce(Range.hull, (k.beside for k in known)))
    dtype = np.result_type(*(tensor.dtype for tensor in tensors))
    return tensors[0]._of("", parts, at, rest, None, dtype)._after(factor)._knowing(held), layouts


def stacked(left: Any, right: Any) -> Tensor:
    """Products of the matrices along the leading axes, side by side; one of both is a tensor."""
    from .tensor import Tensor, concatenate

    if isinstance(left, Tensor) and not isinstance(right, Tensor) and np.ndim(right) == 2:
        rows: Tensor = left.reshape(-1, left.shape[-1]) @ right
        return rows.reshape(*left.shape[:-1], rows.shape[1])
    left, right = (z if isinstance(z, Tensor) else _numbers.as_array(z) for z in (left, right))
    if left.ndim == 0 or right.ndim == 0:
        raise _layout.wrong_product(left.shape, right.shape)
    lead = _layout.broadcast_shape(left.shape[:-2], right.shape[:-2])

    def each(z: Any) -> list[Any]:
        matrix = z.shape[-2:]
        held = np.broadcast_to(z._at if isinstance(z, Tensor) else z, (*lead, *matrix)).reshape(-1, *matrix)
        return [z._view(one) for one in held] if isinstance(z, Tensor) else list(held)

    products = [x @ y for x, y in zip(each(left), each(right))]
    stack = concatenate([product.reshape(1, *product.shape) for product in products])
    return stack.reshape(*lead, *stack.shape[1:])
