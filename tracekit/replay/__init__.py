"""A pure fold over ordered changes: lifecycles, verdicts, waiting, moves and the clock."""

from tracekit.replay.attempts import LogVerdict
from tracekit.replay.engine import ClusterReplay, log_rows
from tracekit.replay.event_texts import read_texts
from tracekit.replay.evidence import VERDICT_WORDS
from tracekit.replay.scores import SCORE_WORDS, score_rows
from tracekit.replay.stream import decode_changes
from tracekit.replay.told_moves import told_moves

__all__ = [
    "SCORE_WORDS",
    "VERDICT_WORDS",
    "ClusterReplay",
    "LogVerdict",
    "decode_changes",
    "log_rows",
    "read_texts",
    "score_rows",
    "told_moves",
]
