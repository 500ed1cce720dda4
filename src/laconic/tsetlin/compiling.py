"""How the kernels are compiled: what Python calls is optimised whole and once, with all the functions it calls.

Numba by itself optimises every function, translates it to machine code, and then does both again, as a part of its
caller, and of its caller's caller: here two thirds more time, for code that nobody runs.

Machine code is cached under a hash of all the sources that it is made of. Numba by itself looks at the file of the
entry point alone, and would go on with what it made of others before they were edited.
"""

import glob
import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numba
from llvmlite.binding import parse_assembly, parse_bitcode
from numba.core import caching, codegen, compiler

Library: Any = codegen.JITCodeLibrary
Compiler: Any = compiler.Compiler
FunctionCache: Any = caching.FunctionCache
CacheNames: Any = caching.CompileResultCacheImpl
CacheFile: Any = caching.IndexDataCacheFile
PACKAGE = __name__.rpartition(".")[0]
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


@cache
def read_source(module: str) -> str:
    """Of a module of this package; "" if it has none of that name."""
    file = files(PACKAGE).joinpath(f"{module}.py")
    return file.read_text("utf-8") if file.is_file() else ""


@cache
def hash_sources(module: str) -> str:
    """Of a module of this package and all of the package that it imports, directly or through others."""
    found, ahead = {module: read_source(module)}, [module]
    while ahead:
        imports = re.findall(rf"^\s*from {PACKAGE}\b([^\n(]*(?:\([^)]*\))?)", found[ahead.pop()], re.MULTILINE)
        more = {word for word in re.findall(r"\w+", " ".join(imports)) if word not in found and read_source(word)}
        found |= {word: read_source(word) for word in more}
        ahead += more
    return hashlib.sha256("".join(found[name] for name in sorted(found)).encode()).hexdigest()[:12]


class EntryNames(CacheNames):  # type: ignore[misc]
    """Names of the cache's files. The index is written before the code, so that files of other sources must be others:
    where processes start together after an edit, one would find another's new index and the old code."""

    def get_filename_base(self, function: str, flags: str) -> str:
        module = function.partition(".")[0]
        self.function = function.replace("<", "").replace(">", "")
        self.sources = hash_sources(module)
        return f"{super().get_filename_base(function, flags)}-{self.sources}"


class EntryFile(CacheFile):  # type: ignore[misc]
    """Code is numbered by a hash of what it is for. Counted, as Numba has it, two processes that compile at once give
    two variants of a function one name, and whoever reads it later may run the wrong one."""

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(int(hashlib.sha256(repr(key).encode()).hexdigest()[:12], 16))
        self._save_data(name, data)  # first: an index names nothing that is not there
        self._save_index(self._load_index() | {key: name})


class EntryCache(FunctionCache):  # type: ignore[misc]
    _impl_class = EntryNames

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = EntryFile(self.cache_path, self._impl.filename_base, stamp)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """And does away with what was made of other sources."""
        super().save_overload(signature, compiled)
        for path in Path(self.cache_path).glob(f"{glob.escape(self._impl.function)}-*.nb[ic]"):
            if self._impl.sources not in path.name:
                with suppress(OSError):  # in use, or another process was faster
                    path.unlink()

    def is_begun(self) -> bool:
        return Path(self._cache_file._index_path).exists()


def tell_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """Names variants that a function makes by what they close over: code from a cache and code compiled now are linked
    by name, and one variant would stand in for another."""
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    told = [repr(value) if isinstance(value, int) else value.py_func.__qualname__ for value in held]
    if told:
        mark = hashlib.sha256(" ".join(told).encode()).hexdigest()[:8]
        function.__name__, function.__qualname__ = f"{function.__name__}_{mark}", f"{function.__qualname__}_{mark}"
    return function


def entry_point(function: Callable[..., Any]) -> Any:
    """For what Python calls; the cache holds only these."""
    entry: Any = numba.njit(pipeline_class=EntryCompiler, **FLAGS)(tell_apart(function))
    entry._cache = EntryCache(function)
    return entry


def is_cached(entry: Any) -> bool:
    """Whether the cache has any code of an entry point, as its sources now are."""
    return bool(entry._cache.is_begun())


FLAGS = {"nogil": True, "boundscheck": False, "error_model": "numpy"}
PART = FLAGS | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler}


def kernel(function: Callable[..., Any]) -> Any:
    return numba.njit(**PART)(tell_apart(function))


def inline(function: Callable[..., Any]) -> Any:
    return numba.njit(forceinline=True, **PART)(tell_apart(function))
