"""Compilers of this machine: what they make of a header, and how much room it takes on a chip."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror")
# with nothing of an operating system, but for what the compiler itself brings (libgcc)
BARE = (
    "-Os",
    "-ffreestanding",
    "-nostdlib",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-asynchronous-unwind-tables",
)
CHIPS = ("cortex-m0plus", "cortex-m4")
IN_FLASH, IN_RAM = (".text", ".rodata", ".data"), (".data", ".bss")  # variables begin as flash has them

# Compilers may turn a loop into a call of these two, whatever they were told; every C library has them.
ALONE = """#include <stddef.h>
#include "HEADER"

int chosen(const NAME_value *row);
int chosen(const NAME_value *row)
{
    return NAME_predict(row);
}

void *memset(void *to, int byte, size_t n);
void *memset(void *to, int byte, size_t n)
{
    volatile unsigned char *at = (volatile unsigned char *)to;
    while (n--)
        *at++ = (unsigned char)byte;
    return to;
}

void *memcpy(void *to, const void *from, size_t n);
void *memcpy(void *to, const void *from, size_t n)
{
    volatile unsigned char *at = (volatile unsigned char *)to;
    const unsigned char *source = (const unsigned char *)from;
    while (n--)
        *at++ = *source++;
    return to;
}
"""


@dataclass(frozen=True)
class Footprint:
    """Bytes that a model takes on a chip, compiled for size and linked with no more than it needs."""

    target: str
    flash_bytes: int  # code and tables
    ram_bytes: int  # that are never given back
    stack_bytes: int  # at most, while it predicts


def find_compiler() -> str:
    """The one that CC names, or the system's."""
    for name in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise FileNotFoundError(
        "no C compiler was found (CC, cc, gcc, clang); a header is compiled and compared before it is written: "
        "install one (Debian: apt install gcc; macOS: xcode-select --install) or name it in CC"
    )


def compile_c(compiler: str, source: Path, to: Path, *options: str) -> None:
    """Warnings are errors."""
    command = [compiler, *STRICT, str(source), "-o", str(to), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{compiler} refuses what was to be written: {done.stderr.strip()[:2000]}")


def measure(header: Path, name: str) -> tuple[Footprint, ...]:
    """On Cortex-M chips and here, where compilers that can tell are installed."""
    source = header.with_name("alone.c")
    source.write_text(ALONE.replace("HEADER", header.name).replace("NAME", name), "utf-8")
    targets: list[tuple[str, str, tuple[str, ...]]] = [
        (chip, "arm-none-eabi-", (f"-mcpu={chip}", "-mthumb")) for chip in CHIPS
    ]
    if sys.platform == "linux":
        here = platform.machine()  # x86-64 has 128 bytes beyond the stack, which it would not count
        targets.append((here, "", ("-mno-red-zone",) if here == "x86_64" else ()))
    return tuple(
        measure_target(source, target, prefix, options)
        for target, prefix, options in targets
        if shutil.which(f"{prefix}gcc") and shutil.which(f"{prefix}size")
    )


def measure_target(source: Path, target: str, prefix: str, options: tuple[str, ...]) -> Footprint:
    made = source.with_name(target)
    compile_c(f"{prefix}gcc", source, made.with_suffix(".s"), *BARE, *options, "-S", "-fstack-usage")
    compile_c(f"{prefix}gcc", source, made, *BARE, *options, "-Wl,--gc-sections", "-Wl,-e,chosen", "-lgcc")
    told = subprocess.run([f"{prefix}size", "-A", str(made)], capture_output=True, text=True, check=True).stdout
    sections = {name: int(n_bytes) for name, n_bytes in re.findall(r"^(\.\w+)\s+(\d+)", told, re.MULTILINE)}
    flash, ram = (sum(sections.get(name, 0) for name in part) for part in (IN_FLASH, IN_RAM))
    return Footprint(target, flash, ram, measure_stack(made.with_suffix(".su")))


def measure_stack(usage: Path) -> int:
    """All functions together, for each calls the next; libgcc's are not in it."""
    lines = [line.split("\t") for line in usage.read_text("utf-8").splitlines()]
    return sum(int(size) for place, size, *_ in lines if not re.search(r":mem(set|cpy)$", place))
