"""The law for queries/*.sql, as one function that lists what a file breaks.

A query is one SELECT behind a header that says what it gives and what it reads::

    -- Waiting of pods, one stretch a row.
    -- @grain one row per stretch of waiting
    -- @column cluster  text; name given with --cluster
    -- @column seconds  seconds; length of the stretch
    -- @source pending_spells_rows, pods_rows
    SELECT ... ORDER BY ...

A source is another query, or a table of the store as ``<table>_rows``.

The header is read by ``tracekit.query.header``; here its words are held against the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.tokenizer_core import Token, TokenType

from tracekit.query.header import UNITS, QueryHeader

__all__ = ["problems", "sources_read"]

MAX_LINE: Final = 100

# Words that are never a name in our queries, so that their case can be told from the text alone.
_KEYWORDS: Final = frozenset(
    """ALL AND AS ASC BETWEEN BY CASE CAST CROSS DESC DISTINCT ELSE END EXCEPT EXISTS FALSE FROM
    FULL GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LATERAL LEFT LIKE LIMIT NOT NULL NULLS ON
    OR ORDER OUTER OVER PARTITION PRECEDING QUALIFY RECURSIVE RIGHT SELECT THEN TRUE UNBOUNDED UNION
    UNNEST USING WHEN WHERE WINDOW WITH""".split()
)

# What other engines do not know or answer differently, measured on PySpark 4.3 against DuckDB
# 2.0 by 76 statements, and what to write instead.
_UNPORTABLE_CALLS: Final = {
    "epoch_ms": "date_diff('millisecond', ...)",
    "first": "min_by(x, order)",
    "generate_series": "a recursive CTE",
    "last": "max_by(x, order)",
    "len": "length(text) or array_length(list)",
    "percentile_cont": "the row_number/ceil form",
    "percentile_disc": "the row_number/ceil form",
    "quantile": "the row_number/ceil form",
    "quantile_cont": "the row_number/ceil form",
    "quantile_disc": "the row_number/ceil form",
    "range": "a recursive CTE",
    "time_bucket": "floor(epoch(at) / step)",
}
_UNPORTABLE_WORDS: Final = {
    "ASOF": "LEFT JOIN LATERAL (... ORDER BY at DESC LIMIT 1)",
    "MATERIALIZED": "a plain CTE",
    "ORDINALITY": "row_number()",
    "PIVOT": "FILTER (WHERE ...)",
    "UNPIVOT": "UNION ALL",
}
_BOUNDARY_UNITS: Final = frozenset({"second", "minute", "hour", "day"})


def problems(path: Path, header: QueryHeader) -> list[str]:
    """List every rule that the file breaks, each in words that name what to mend."""
    text = path.read_text()
    found = [*_layout_problems(text), *_header_problems(header), *_name_problems(path)]
    try:
        statements = sqlglot.parse(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        return [*found, f"does not parse: {str(error).splitlines()[0]}"]
    found += _token_problems(text, sqlglot.tokenize(text, dialect="duckdb"))
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        return [*found, "must be exactly one SELECT (or WITH ... SELECT)"]
    return [*found, *_statement_problems(statements[0], header)]


def sources_read(query: exp.Query) -> set[str]:
    """Return the tables and queries that a statement reads, its own CTEs left out."""
    return {
        source.name
        for scope in traverse_scope(query)
        for source in scope.sources.values()
        if isinstance(source, exp.Table) and source.name
    }


def _layout_problems(text: str) -> Iterator[str]:
    lines = text.splitlines()
    if not re.fullmatch(r"-- [^@\s].*\.", lines[0] if lines else ""):
        yield "the first line must be '-- <summary>.'"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            yield f"line {number} has {len(line)} characters, more than {MAX_LINE}"
        if line != line.rstrip():
            yield f"line {number} ends in spaces"
    if not text.endswith("\n"):
        yield "the file must end in a newline"


def _header_problems(header: QueryHeader) -> Iterator[str]:
    if not header.grain.startswith("one row per "):
        yield "'-- @grain' must say 'one row per ...'"
    for column in header.columns:
        if column.unit not in UNITS:
            units = ", ".join(sorted(UNITS))
            yield f"@column {column.name}: unit {column.unit!r} is not one of {units}"
    if len(header.sources) != len(set(header.sources)):
        yield "@source names a source twice"


def _name_problems(path: Path) -> Iterator[str]:
    if not re.fullmatch(r"_?[a-z][a-z0-9]*(_[a-z0-9]+)*", path.stem):
        yield "the file's stem names the query and must be lower_snake"


def _statement_problems(query: exp.Query, header: QueryHeader) -> Iterator[str]:
    declared, given = [column.name for column in header.columns], query.named_selects
    if "*" in given:
        yield "the last SELECT must name its columns, not use *"
    elif declared != given:
        yield f"@column says {declared}, the statement gives {given}"
    if set(header.sources) != (read := sources_read(query)):
        yield f"@source says {sorted(header.sources)}, the statement reads {sorted(read)}"
    if not query.args.get("order"):
        yield "the last SELECT must have an ORDER BY"
    yield from _unportable_nodes(query)


def _unportable_nodes(query: exp.Query) -> Iterator[str]:
    if query.find(exp.Comprehension):
        yield "a list comprehension is not portable: use list_filter or list_transform"
    if query.find(exp.Slice):
        yield "a list slice is not portable: use row_number() over the unnested list"
    if any(part.name.upper() == "EPOCH" for part in query.find_all(exp.Extract)):
        yield "extract(epoch ...) is not portable: use date_diff('microsecond', ...)"
    if any(step.args.get("by_name") for step in query.find_all(exp.SetOperation)):
        yield "UNION BY NAME is not portable: name the columns in order"
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            yield f"reads by a function: {table.sql(dialect='duckdb')}"
        if table.db:
            yield f"{table.sql(dialect='duckdb')}: a source has no schema before its name"


def _token_problems(text: str, tokens: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(tokens):
        if token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        after_dot = place > 0 and tokens[place - 1].token_type is TokenType.DOT
        if not after_dot:
            yield from _word_problems(text[token.start : token.end + 1], token.line)
        yield from _call_problems(tokens[place : place + 3], tokens[max(0, place - 2) : place])


def _word_problems(written: str, line: int) -> Iterator[str]:
    for word in written.split():  # "GROUP BY" is one token, its own text always upper-case
        upper = word.upper()
        if upper in _KEYWORDS and word != upper:
            yield f"line {line}: keyword {word!r} must be upper-case"
        if upper in _UNPORTABLE_WORDS:
            yield f"line {line}: {upper} is not portable: use {_UNPORTABLE_WORDS[upper]}"


def _call_problems(here: Sequence[Token], before: Sequence[Token]) -> Iterator[str]:
    if len(here) < 3 or here[1].token_type is not TokenType.L_PAREN:
        return
    name, argument = here[0].text.lower(), here[2]
    if name in _UNPORTABLE_CALLS:
        yield f"line {here[0].line}: {name}() is not portable: use {_UNPORTABLE_CALLS[name]}"
    if name == "epoch" and [token.text.lower() for token in before] != ["floor", "("]:
        yield f"line {here[0].line}: epoch() loses the fraction elsewhere: only floor(epoch(at))"
    if name == "date_diff" and argument.text.lower() in _BOUNDARY_UNITS:
        yield (
            f"line {here[0].line}: date_diff('{argument.text}', ...) counts boundaries here and "
            "whole units elsewhere: use 'millisecond' or 'microsecond'"
        )
