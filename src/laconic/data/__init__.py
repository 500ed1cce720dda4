"""Data sets, and who has what of them."""

from laconic.data.datasets import Dataset, from_arrays, load
from laconic.data.known import KNOWN, Known, data_folder, download
from laconic.data.partition import PARTITIONS, Partition, Partitioning, Share, partition

__all__ = [
    "KNOWN",
    "PARTITIONS",
    "Dataset",
    "Known",
    "Partition",
    "Partitioning",
    "Share",
    "data_folder",
    "download",
    "from_arrays",
    "load",
    "partition",
]
