"""The exporting daemon: a board's records to IPFIX over mutually authenticated TLS 1.3.

Pure parts, with no clock and no socket in them: :mod:`.clock` (board time to UTC), :mod:`.epochs`
(epoch and report ids), :mod:`.queue` (what waits for the collector), :mod:`.backoff` and
:mod:`.endpoint`. Edges: :mod:`.board` (the serial link, blocking), :mod:`.tls` (the session to the
collector) and :mod:`.daemon`, which joins them.
"""
