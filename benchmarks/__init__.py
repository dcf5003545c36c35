"""Times beside a peer's: every figure is a ratio, measured on this machine, now.

``python -m benchmarks.run`` prints one table. Recordings are looked for where the tests look
(``tests/recordings.py``); a benchmark whose recording or peer is absent says so.
"""

__all__: list[str] = []
