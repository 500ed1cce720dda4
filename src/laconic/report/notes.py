"""Names under which methods note what has a figure of its own.

Whatever is noted under another name is shown too, if more plainly: numbers as small curves, pairs and matrices as they
are. So a note that is renamed is still seen, and tests/report/test_notes.py, which runs methods, says what lacks it.
"""

from laconic.report.run import Run

# numbers of the server, in a round
N_SHARED, N_PRIVATE, N_SHARED_BY_PAPER, SIMILARITY = "n_shared", "n_private", "n_shared_by_paper", "similarity"
# numbers of a client: of one of its models, by whatever name before it, also those of Algorithm.predict_also
ACCURACY = "_accuracy"
# matrices: of classes and dimensions, of classes, of clients and classes
TARGETS, COSINES, HEADS = "prototypes", "prototype_cosine", "head_norm"

SPLIT = {
    N_SHARED: "shared",
    N_PRIVATE: "private",
    N_SHARED_BY_PAPER: "shared, by the paper’s count of these bytes",
}


def find_models(run: Run) -> dict[str, dict[int, float]]:
    """Model -> client -> the accuracy that it noted last."""
    noted = run.clients.last_notes.items()
    return {name.removesuffix(ACCURACY): by_client for name, by_client in noted if name.endswith(ACCURACY)}
