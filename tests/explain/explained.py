"""Runs whose models are explained, one of each kind: method and settings."""

CASES = {
    "fedtm": ["fedtm"],
    "patches": ["fedtm", "method.patch=3"],
    "fuzzy": ["fedtm", "method.fuzzy=[3,8]"],
    "turned": ["fedtm", "data.shift=turned"],
    "cs-pfedtm": ["cs-pfedtm", "method.n_shared=4"],
    "by-samples": ["cs-pfedtm", "method.n_shared=4", "method.normaliser=sample"],
    "clausepool": ["clausepool"],
    "pooled-patches": ["clausepool", "method.patch=3"],
    "seeded": ["clausepool", "method.n_seed=40", "method.own_seed=true"],
    "seeded-alone": ["clausepool", "method.own_seed=true", "method.share=false"],
    "alone": ["clausepool", "method.share=false"],
    "seedhead": ["seedhead"],
    "fedpurin": ["fedpurin"],
    "fedavg": ["fedavg"],
    "fedproto": ["fedproto", "method.ppa=false"],
}
NETWORKS = ("fedpurin", "fedavg", "fedproto")
VOTING = ("fedtm", "patches", "fuzzy", "turned", "cs-pfedtm", "by-samples")  # by whole clauses, without a head
MACHINES = tuple(case for case in CASES if case not in (*NETWORKS, "seedhead"))
