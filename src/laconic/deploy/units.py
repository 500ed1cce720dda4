"""systemd units: one for each folder of a deployment."""

import sys
from pathlib import Path

INSTALLED_IN = "/opt/laconic"  # where the units look for a folder
PRIVATE = 0o077  # as a umask: folders 0700, files 0600


def write_unit(folder: Path, command: str, restart_seconds: int, beside: str = "") -> None:
    """command: what is started there, for a folder PLACE. beside: another folder that it writes into."""
    place = f"{INSTALLED_IN}/{folder.name}"
    writable = f"{place} -{INSTALLED_IN}/{beside}" if beside else place
    start = command.replace("PLACE", place).replace("laconic ", f"{Path(sys.executable).parent / 'laconic'} ", 1)
    unit = f"""\
[Unit]
Description=Laconic {folder.name}
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
User=laconic
UMask={PRIVATE:04o}
WorkingDirectory={place}
ExecStart={start}
Environment=NUMBA_CACHE_DIR={place}/cache
Restart=always
RestartSec={restart_seconds}
NoNewPrivileges=true
PrivateTmp=true
ProtectHome=true
ProtectSystem=strict
ReadWritePaths={writable}

[Install]
WantedBy=multi-user.target
"""
    (folder / f"laconic-{folder.name}.service").write_text(unit, "utf-8")
