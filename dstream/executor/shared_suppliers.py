"""Suppliers of processors that several runs in a process share: each gets ready once, and closes with the last run."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from dstream.spi.processor_suppliers import ProcessorSupplier, SupplierContext

__all__ = ["SharedSuppliers", "shared_suppliers"]


@dataclass(slots=True)
class _Used:
    supplier: ProcessorSupplier
    times: int = 0


class SharedSuppliers:
    """The suppliers that are in use. Runs in several threads may take them."""

    def __init__(self) -> None:
        self._used: dict[int, _Used] = {}
        self._lock = threading.RLock()

    def take(self, supplier: ProcessorSupplier, context: SupplierContext) -> None:
        """Let a supplier get ready, unless another run has it already. It is to be given back, also after a failure.

        Raises:
            Exception: what its `init` raised.
        """
        with self._lock:
            used = self._used.setdefault(id(supplier), _Used(supplier))
            used.times += 1
            if used.times == 1:
                supplier.init(context)

    def give_back(self, supplier: ProcessorSupplier, error: BaseException | None) -> None:
        """Close a supplier if no other run has it.

        Raises:
            Exception: what its `close` raised.
        """
        with self._lock:
            used = self._used[id(supplier)]
            used.times -= 1
            if used.times:
                return
            del self._used[id(supplier)]
        supplier.close(error)


shared_suppliers = SharedSuppliers()
"""Those of this process."""
