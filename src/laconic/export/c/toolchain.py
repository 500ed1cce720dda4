"""Compilers of this machine: what they make of a header, and how much room it takes on a chip."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
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
    flash: int  # code and tables
    ram: int  # that is never given back
    stack: int  # at most, while it predicts


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
    command = [compiler, *STRICT, *options, str(source), "-o", str(to)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{compiler} refuses what was to be written: {done.stderr.strip()[:2000]}")


def measure(header: Path, name: str) -> tuple[Footprint, ...]:
    """On Cortex-M chips, where a compiler for them is installed."""
    compiler, size = shutil.which("arm-none-eabi-gcc"), shutil.which("arm-none-eabi-size")
    if not compiler or not size:
        return ()
    source = header.with_name("alone.c")
    source.write_text(ALONE.replace("HEADER", header.name).replace("NAME", name), "utf-8")
    return tuple(measure_chip(compiler, size, source, chip) for chip in CHIPS)


def measure_chip(compiler: str, size: str, source: Path, chip: str) -> Footprint:
    made = source.with_name(f"{chip}.o")
    link = ("-Wl,--gc-sections", "-Wl,-e,chosen")
    compile_c(compiler, source, made.with_suffix(".s"), *BARE, f"-mcpu={chip}", "-mthumb", "-S", "-fstack-usage")
    # libgcc last, for it has what the code asks for
    command = [compiler, *BARE, f"-mcpu={chip}", "-mthumb", str(source), "-o", str(made), *link, "-lgcc"]
    subprocess.run(command, capture_output=True, text=True, check=True)
    told = subprocess.run([size, "-A", str(made)], capture_output=True, text=True, check=True).stdout
    sections = {name: int(n_bytes) for name, n_bytes in re.findall(r"^(\.\w+)\s+(\d+)", told, re.MULTILINE)}
    flash, ram = (sum(sections.get(name, 0) for name in part) for part in (IN_FLASH, IN_RAM))
    return Footprint(chip, flash, ram, measure_stack(made.with_suffix(".su")))


def measure_stack(usage: Path) -> int:
    """All functions together, for each calls the next; libgcc's are not in it."""
    lines = [line.split("\t") for line in usage.read_text("utf-8").splitlines()]
    return sum(int(size) for place, size, *_ in lines if not re.search(r":mem(set|cpy)$", place))
