"""Banks: features that both ends make from a seed, so that they cost no bytes.

    bank = open_bank((32, 32, 3), 480)      # for images, spectrograms or rows of a table, as bytes
    features = bank.read(x)                 # [example, 480] whole 32nds from -1 to 1

The same bits come out on any CPU: inputs, filters and mixtures are whole numbers and every sum is exact.
"""

from laconic.banks.bank import ONE, Bank, Choice, Shape, open_bank, open_wide, read_once

__all__ = ["ONE", "Bank", "Choice", "Shape", "open_bank", "open_wide", "read_once"]
