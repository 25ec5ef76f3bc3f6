"""Numbers, names and searches as they stand in SQL, by dialect."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from orthocal.errors import LARGEST, OrthocalError, are_numbers, require_one_of
from orthocal.formats import shown

RESERVED = frozenset(
    """
    ACCOUNT ADD ALL ALTER ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASSERT_ROWS_MODIFIED ASYMMETRIC AT
    AUTHORIZATION AUTOINCREMENT BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE CAST CHANGE CHAR CHARACTER
    CHECK COLLATE COLLATION COLUMN COMMIT CONCURRENTLY CONDITION CONNECT CONNECTION CONSTRAINT CONTAINS CONTINUE
    CONVERT CREATE CROSS CUBE CUME_DIST CURRENT CURRENT_CATALOG CURRENT_DATE CURRENT_ROLE CURRENT_SCHEMA CURRENT_TIME
    CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DEC DECIMAL DECLARE DEFAULT DEFERRABLE DEFINE DELAYED
    DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT DISTINCTROW DIV DO DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY
    ENCLOSED END ENUM ESCAPE ESCAPED EXCEPT EXCLUDE EXISTS EXIT EXPLAIN EXTRACT FALSE FETCH FIRST_VALUE FLOAT FLOAT4
    FLOAT8 FOLLOWING FOR FORCE FOREIGN FREEZE FROM FULL FULLTEXT FUNCTION GENERATED GET GLOB GRANT GROUP GROUPING
    GROUPS GSCLUSTER HASH HAVING HIGH_PRIORITY IF IGNORE ILIKE IN INCREMENT INDEX INFILE INITIALLY INNER INOUT
    INSENSITIVE INSERT INT INTEGER INTERSECT INTERVAL INTO IS ISNULL ISSUE ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG
    LAMBDA LAST_VALUE LATERAL LEAD LEADING LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG
    LOOKUP LOOP LOW_PRIORITY MATCH MERGE MINUS MOD NATURAL NEW NO NOT NOTHING NOTNULL NTH_VALUE NTILE NULL NULLS
    NUMERIC OF OFFSET ON ONLY OPTIMIZE OPTION OR ORDER ORGANIZATION OUT OUTER OUTFILE OVER OVERLAPS PARTITION
    PERCENT_RANK PIVOT PLACING PRECEDING PRECISION PRIMARY PROCEDURE PROTO PURGE QUALIFY RANGE RANK READ REAL
    RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE RESPECT RESTRICT RETURN RETURNING REVOKE RIGHT
    RLIKE ROLLUP ROW ROWS ROW_NUMBER SAMPLE SCHEMA SELECT SEMI SEPARATOR SESSION_USER SET SHOW SIGNAL SIMILAR SMALLINT
    SOME SPATIAL SQL SSL START STARTING STRAIGHT_JOIN STRUCT SUMMARIZE SYMMETRIC SYSTEM TABLE TABLESAMPLE TERMINATED
    THEN TO TRAILING TREAT TRIGGER TRUE TRY_CAST UNBOUNDED UNDO UNION UNIQUE UNLOCK UNNEST UNPIVOT UNSIGNED UPDATE
    USAGE USE USER USING VALUES VARCHAR VARIADIC VERBOSE VIEW WHEN WHENEVER WHERE WHILE WINDOW WITH WITHIN WRITE XOR
    YEAR_MONTH ZEROFILL
    """.split()  # noqa: SIM905
)
"""Words that some database does not take for a name, unless they are quoted."""


@dataclass(frozen=True)
class Dialect:
    """How a kind of SQL writes names, texts and doubles.

    Parameters
    ----------
    mark : str
        Around a name that needs it.
    forced : bool
        Whether names that do not need it have it too.
    escapes : bool
        Whether a backslash in a text, or in a name of BigQuery, begins an escape.
    cast : str
        Around a number that has an exponent and is no double.
    """

    mark: str = '"'
    forced: bool = False
    escapes: bool = False
    escaped_names: bool = False
    cast: str = "{}"


STANDARD = Dialect()
DIALECTS: dict[str, Dialect] = {
    "duckdb": STANDARD,
    "postgres": replace(STANDARD, cast="CAST({} AS DOUBLE PRECISION)"),
    "bigquery": Dialect("`", escapes=True, escaped_names=True),
    "snowflake": replace(STANDARD, escapes=True),
    "spark": Dialect("`", escapes=True),
    "mysql": Dialect("`", escapes=True),
    "sqlite": STANDARD,
}
"""By name; DuckDB and SQLite run in the tests, the others are read by a parser of their SQL."""


def dialect_of(name: str | None, quote: str | None) -> Dialect:
    """Return a dialect by its name, with another mark around every name if one is given."""
    if name is not None:
        require_one_of(name, DIALECTS, "dialect")
    if quote not in {None, '"', "`"}:
        raise OrthocalError(f'`quote` must be " or `; it is {shown(quote)}.')
    found = STANDARD if name is None else DIALECTS[name]
    return found if quote is None else replace(found, mark=quote, forced=True)


def is_finite(names: Sequence[str]) -> str:
    """Return the condition that columns hold finite numbers, of a size that maps take."""
    low, high = literal(-LARGEST), literal(LARGEST)
    return " AND ".join(f"{name} BETWEEN {low} AND {high}" for name in names)


def search(comparison: str, edges: Sequence[str], values: Sequence[str]) -> str:
    """Return a binary search among blocks: a plain list of thousands of cases is slow, or too long for a parser."""
    if not edges:
        return values[0]
    middle = len(edges) // 2
    left = search(comparison, edges[:middle], values[: middle + 1])
    right = search(comparison, edges[middle + 1 :], values[middle + 1 :])
    return f"CASE WHEN {comparison} {edges[middle]} THEN {left} ELSE {right} END"


def literal(number: Any) -> str:
    """Return a double literal: with an exponent, or it would be a decimal, and with 18 digits.

    17 digits tell doubles apart, but readers that round twice (SQLite before 3.43) need one close to the double itself.
    """
    if not are_numbers(number):
        raise OrthocalError(f"`map` must hold finite numbers that are not huge; one is {number}. Fit it again.")
    digits, exponent = f"{number:.17e}".split("e")
    text = f"{digits.rstrip('0').rstrip('.')}e{exponent}"
    return f"({text})" if text.startswith("-") else text


def identifier(column: Any, dialect: Dialect) -> str:
    """Return the column's name as it stands in SQL: between marks where it must be, a mark inside it doubled."""
    if not isinstance(column, str) or not column or not _is_text(column):
        raise OrthocalError(
            f"`column` must be the name of a column; it is {shown(column)}. Pass one that SQL can write."
        )
    if not dialect.forced and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column) and column.upper() not in RESERVED:
        return column
    mark = dialect.mark
    if dialect.escaped_names and "." in column:
        raise OrthocalError(f"`column` must have no dot in BigQuery, where names have none; it is {shown(column)}.")
    if dialect.escaped_names:
        return mark + _escaped(column).replace(mark, f"\\{mark}") + mark
    return mark + column.replace(mark, 2 * mark) + mark


def label(value: str | bool | float, dialect: Dialect) -> str:
    """Return a value that is only compared as it stands in SQL: text between quotes, a boolean, or a number."""
    if isinstance(value, str):
        if not _is_text(value):
            raise OrthocalError(f"`map` must have groups that SQL can write; one is {shown(value)}. Recode it.")
        if dialect.escapes:
            return "'" + _escaped(value).replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else literal(value)


def _escaped(text: str) -> str:
    """Return a text in which backslashes and ends of lines are escaped."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _is_text(text: str) -> bool:
    """Return whether a text can be written: without zeros, and without halves of characters."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
