"""What daemon and collector tell their operators: metrics, health, log lines, systemd.

:mod:`.server` serves /metrics and /healthz; :mod:`.logs` sets log lines up and bounds repeated
ones; :mod:`.notify` talks to systemd.
"""
