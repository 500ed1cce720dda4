"""How the kernels are compiled: what Python calls is optimised whole and once, with all the functions it calls.

Numba by itself optimises every function, translates it to machine code, and then does both again, as a part of its
caller, and of its caller's caller: here two thirds more time, for code that nobody runs.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite.binding import parse_assembly, parse_bitcode
from numba.core import codegen, compiler

Library: Any = codegen.JITCodeLibrary
Compiler: Any = compiler.Compiler
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class PartLibrary(Library):  # type: ignore[misc]
    """A function that is only called by others: kept as it is until their library is optimised.

    It overrides what Numba does early; should a Numba to come do it elsewhere, kernels compile slower, no worse.
    """

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        return 0  # none: there is no machine code of its own

    @property
    def codegen(self) -> "PartLibrary":
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Nowhere to be set: only Python objects and exceptions would need it."""


class PartCompiler(Compiler):  # type: ignore[misc]
    library: type[Any] = PartLibrary

    def define_pipelines(self) -> Any:
        self.state.library = self.library(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class EntryLibrary(Library):  # type: ignore[misc]
    """What Python calls. The cache gets its machine code, and of the code that callers would inline only the names.

    No kernel calls an entry point (one that did would meet a body that says "unreachable"), and loading code to inline
    takes more memory than anything else in a small process.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.enable_object_caching()

    def serialize_using_object_code(self) -> Any:
        name, kind, (machine_code, bitcode) = super().serialize_using_object_code()
        functions = [function.name for function in parse_bitcode(bitcode).functions if not function.is_declaration]
        names = "\n".join(f'define void @"{function}"() {{ unreachable }}' for function in functions)
        return name, kind, (machine_code, parse_assembly(names).as_bitcode())


class EntryCompiler(PartCompiler):
    library = EntryLibrary


FLAGS = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
PART = FLAGS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}
entry_point: Decorator = numba.njit(cache=True, pipeline_class=EntryCompiler, **FLAGS)  # the cache holds only these
kernel: Decorator = numba.njit(**PART)
inline: Decorator = numba.njit(forceinline=True, **PART)
