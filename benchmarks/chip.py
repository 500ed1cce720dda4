"""Runs a linked model on an emulated Cortex-M: which class it says, in how many instructions (pip install unicorn)."""

import struct
import subprocess
from pathlib import Path

from unicorn import UC_ARCH_ARM, UC_HOOK_CODE, UC_MODE_MCLASS, UC_MODE_THUMB, Uc, arm_const

FLASH, RAM, END = 0x8000, 0x20000000, 0xF00000  # where the linker puts code by itself; END: where a call returns to
MODELS = {"cortex-m0plus": arm_const.UC_CPU_ARM_CORTEX_M0, "cortex-m4": arm_const.UC_CPU_ARM_CORTEX_M4}


class Chip:
    def __init__(self, program: Path) -> None:
        """program: as toolchain.measure links it, named after the chip."""
        image = program.with_suffix(".bin")
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", program, image], check=True)
        symbols = subprocess.run(["arm-none-eabi-nm", program], capture_output=True, text=True, check=True).stdout
        self.start = next(int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" chosen"))
        self.core = Uc(UC_ARCH_ARM, UC_MODE_THUMB | UC_MODE_MCLASS)
        self.core.ctl_set_cpu_model(MODELS[program.name])
        self.core.mem_map(0, 1 << 24)
        self.core.mem_map(RAM, 1 << 20)
        self.core.mem_write(FLASH, image.read_bytes())

    def predict(self, row: bytes) -> int:
        self.core.mem_write(RAM, row)
        self.core.reg_write(arm_const.UC_ARM_REG_R0, RAM)
        self.core.reg_write(arm_const.UC_ARM_REG_SP, RAM + (1 << 20) - 64)
        self.core.reg_write(arm_const.UC_ARM_REG_LR, END | 1)
        self.core.emu_start(self.start | 1, END)
        return struct.unpack("<i", struct.pack("<I", self.core.reg_read(arm_const.UC_ARM_REG_R0)))[0]

    def count_instructions(self, row: bytes) -> int:
        """Of one prediction, one by one: an instruction is two bytes or four."""
        counted = 0

        def see(*_: object) -> None:
            nonlocal counted
            counted += 1

        self.core.ctl_flush_tb()  # what was translated before has no hook in it
        hook = self.core.hook_add(UC_HOOK_CODE, see)
        self.predict(row)
        self.core.hook_del(hook)
        return counted
