"""What a run left behind, for Python and notebooks: columns as arrays, clients' models, the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from laconic import records, report
from laconic.gallery import report as write_page
from laconic.notebook import show_comparison, show_run, show_table
from laconic.records import ClientScore, Round, Traffic

if TYPE_CHECKING:
    from laconic.client_model import ClientModel


class Table(Mapping[str, NDArray[Any]]):
    """Columns as arrays, by name or as attributes; `frame()` hands them to pandas or polars."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of(cls, kind: type[Any], rows: Sequence[Any]) -> Table:
        """Records of one kind; what is not known becomes NaN, what is no number or text stays an object."""
        assert is_dataclass(kind)
        names = [field.name for field in fields(kind)]
        return cls({name: as_column([getattr(row, name) for row in rows]) for name in names})

    def frame(self) -> Any:
        """A pandas.DataFrame, or where that is not installed a polars one."""
        try:
            import pandas
        except ImportError:
            try:
                import polars
            except ImportError:
                raise ImportError("frame() needs pandas or polars.  pip install pandas") from None
            return polars.DataFrame({name: column.tolist() for name, column in self.items()})
        return pandas.DataFrame(dict(self._columns))

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name]

    def __getattr__(self, name: str) -> NDArray[Any]:
        columns = self.__dict__.get("_columns", {})
        if name not in columns:
            raise AttributeError(f"there is no column {name}; there are {', '.join(columns)}")
        found: NDArray[Any] = columns[name]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        n_rows = len(next(iter(self.values()), ()))
        return f"<{n_rows} rows of {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return show_table(self)


def as_column(values: Sequence[Any]) -> NDArray[Any]:
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {bool, int, float} and (None in values or kinds != {bool}):
        return np.array([np.nan if value is None else value for value in values])
    if kinds <= {str} and None not in values:
        return np.array(values, np.str_)
    if kinds == {bool}:
        return np.array(values)
    column = np.empty(len(values), object)
    column[:] = values
    return column


class Run:
    """A run in its folder. Everything is read from there when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def summary(self) -> report.Run:
        return report.read_run(self.folder)

    @property
    def method(self) -> str:
        return self.summary.method

    @property
    def accuracy(self) -> float | None:
        """Mean over clients after the last round; None where nobody was tested."""
        return self.summary.accuracy_mean

    @cached_property
    def rounds(self) -> Table:
        """A row for each round: accuracies, bytes, who replied; bytes are of that round alone."""
        return Table.of(Round, records.read_rounds(self.folder))

    @cached_property
    def clients(self) -> Table:
        """A row for each client, as it did when it was last tested; name: where it has one."""
        last: dict[int, ClientScore] = {row.client: row for row in records.read_lines(self.folder, ClientScore)}
        names = {holding.client: holding.name for holding in records.read(self.folder, records.Partition).clients}
        columns = Table.of(ClientScore, [last[client] for client in sorted(last)])
        return Table({**columns, "name": as_column([names[client] for client in sorted(last)])})

    @cached_property
    def traffic(self) -> Table:
        """A row for each field of each message that travelled."""
        return Table.of(Traffic, list(records.read_lines(self.folder, Traffic)))

    def client(self, client: int | str) -> ClientModel:
        """The model of a client, by its number or its name."""
        from laconic.runs.client_models import read_client

        return read_client(self.folder, client)

    def report(self, path: str | Path | None = None) -> Path:
        """Writes the page, into the run's folder unless told otherwise."""
        page = Path(path) if path is not None else self.folder / "report.html"
        write_page(report.read_runs([self.folder]), page)
        return page

    def __repr__(self) -> str:
        accuracy = "not tested" if self.accuracy is None else f"accuracy {100 * self.accuracy:.1f} %"
        sent = report.format_bytes(self.summary.upload_bytes), report.format_bytes(self.summary.download_bytes)
        return f"<{self.method}: {accuracy}, up {sent[0]}, down {sent[1]}, in {self.folder}>"

    def _repr_html_(self) -> str:
        return show_run(self.summary)


class Comparison(Sequence[Run]):
    """Runs of several methods, or seeds, on the same clients."""

    def __init__(self, folder: Path, runs: Sequence[Run]) -> None:
        self.folder, self.runs = folder, tuple(runs)

    @cached_property
    def table(self) -> Table:
        """A row for each method: means over seeds, bytes, gain over the first."""
        rows = report.compare_table([run.summary for run in self.runs])
        return Table({name: as_column([asdict(row)[name] for row in rows]) for name in asdict(rows[0])})

    def report(self, path: str | Path | None = None) -> Path:
        """Writes one page of all runs, into their folder unless told otherwise."""
        page = Path(path) if path is not None else self.folder / "report.html"
        write_page(report.read_runs([run.folder for run in self.runs]), page)
        return page

    def __getitem__(self, place: Any) -> Any:
        """By place, or by a method's name: its run, the first of several seeds."""
        if isinstance(place, str):
            for run in self.runs:
                if run.method == place:
                    return run
            raise KeyError(f"{place}; there are {', '.join(dict.fromkeys(run.method for run in self.runs))}")
        return self.runs[place]

    def __len__(self) -> int:
        return len(self.runs)

    def __repr__(self) -> str:
        return f"<comparison of {', '.join(dict.fromkeys(run.method for run in self.runs))} in {self.folder}>"

    def _repr_html_(self) -> str:
        return show_comparison([run.summary for run in self.runs])
