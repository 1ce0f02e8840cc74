"""Every reason to refuse a question, in one table: what is wrong, and what to ask instead.

The words filled in are the analyst's own or names from the catalog, so no message can depend on
the data.
"""

from typing import Final

from discreet.errors import Refused
from discreet.tables.model.aggregates import AGGREGATES

__all__ = ["CATALOGUE", "refused"]

_NAMES: Final = [one.text.split("(")[0] for one in AGGREGATES]
_AGGREGATES: Final = ", ".join(dict.fromkeys(name for name in _NAMES if "_" not in name))

CATALOGUE: Final[dict[str, tuple[str, str]]] = {
    # The statement as a whole.
    "syntax": (
        "this is not SQL that can be read: {why}.",
        "Ask one SELECT in DuckDB's dialect, such as SELECT COUNT(*) FROM {table}.",
    ),
    "empty": (
        "there is no question here.",
        "Ask one SELECT, such as SELECT COUNT(*) FROM {table}.",
    ),
    "statement": (
        "{word} is no question: statements that change, load or inspect are never run.",
        "Ask one SELECT that aggregates, such as SELECT COUNT(*) FROM {table}.",
    ),
    "statements": (
        "this is more than one statement.",
        "Ask each question by itself, so that each has its own price.",
    ),
    "set_operation": (
        "{word} of several queries is not supported: each part would need its own price.",
        "Ask them one by one, or use CASE or OR to say both in one query.",
    ),
    "too_complex": (
        "the question is too long or too deeply nested to be checked.",
        "Ask in smaller parts, or join and nest less.",
    ),
    "clause": (
        "{word} is not supported.",
        "Use SELECT, FROM, WHERE, GROUP BY, HAVING, ORDER BY and LIMIT.",
    ),
    "into": (
        "SELECT INTO would write a table, and questions only read.",
        "Leave INTO out and store the released answer yourself.",
    ),
    "sample": (
        "sampling rows inside a question is not supported: its randomness is not the engine's own.",
        "Leave the sample out; noise protects the answer already.",
    ),
    "parameter": (
        "{word} is a parameter without a value.",
        "Write the value into the question.",
    ),
    # Raw rows.
    "star": (
        "{word} would show raw rows.",
        "Ask for aggregates such as COUNT(*) or AVG(column), with GROUP BY where wanted.",
    ),
    "raw_rows": (
        "this query has no aggregate and no GROUP BY, so it would show raw rows.",
        "Aggregate with COUNT(*), SUM or AVG, or list keys by GROUP BY.",
    ),
    "not_grouped": (
        "{word} is neither a key of GROUP BY nor inside an aggregate, so it would show raw values.",
        "Add {word} to GROUP BY, or aggregate it, as in AVG({word}) or COUNT({word}).",
    ),
    "window": (
        "window functions would compute over raw rows.",
        "Use GROUP BY; rank or compare the released rows afterwards.",
    ),
    "subquery": (
        "a subquery here could single out rows: it may not name columns of the rows around it, but "
        "for equal ones after IN and EXISTS, and it must aggregate or be about the same {unit}.",
        "Compare with one released value, as in WHERE x < (SELECT AVG(x) FROM {table}), or write "
        "WHERE {unit} IN (SELECT {unit} FROM ...).",
    ),
    "not_in": (
        "NOT IN a public subquery keeps nothing as soon as there is a NULL in it.",
        "Write NOT EXISTS (SELECT 1 FROM ... WHERE ... = ...), which means what is meant.",
    ),
    "inner_order": (
        "{word} inside a subquery or WITH would choose rows by their raw values.",
        "Use {word} at the end of the whole query, where it works on released values.",
    ),
    "lateral": (
        "LATERAL subqueries compute over raw rows one by one.",
        "Use a plain JOIN with a condition.",
    ),
    "pivot": (
        "PIVOT takes its columns from raw values.",
        "Use GROUP BY and turn the released rows yourself, or COUNT(*) FILTER (WHERE ...).",
    ),
    # Tables and columns.
    "no_table": (
        "the query reads no protected table.",
        "Name one in FROM: {tables}.",
    ),
    "unknown_table": ("there is no table {word}.", "{near}"),
    "unknown_column": ("there is no column {word}.", "{near}"),
    "ambiguous": (
        "{word} is a column of more than one table here.",
        "Say which, as in {table}.{word}.",
    ),
    "duplicate": (
        "the name {word} is used twice here.",
        "Give each table, or each column of a subquery, a name of its own with AS.",
    ),
    "qualified": (
        "{word} names a schema or database; only the tables of the catalog exist.",
        "Write the table's plain name.",
    ),
    "shadow": (
        "{word} is the name of a table in the catalog and cannot be given to something else.",
        "Choose another name after AS or WITH.",
    ),
    "table_function": (
        "{word} reads data that is not protected here, such as files, networks or generated rows.",
        "Read from the tables of the catalog: {tables}.",
    ),
    "recursive": (
        "recursive WITH is not supported.",
        "Write WITH without RECURSIVE, each part using earlier ones only.",
    ),
    "column_list": (
        "lists of column names after a table's name are not supported.",
        "Name columns inside the subquery with AS.",
    ),
    "column_type": (
        "{word} has the type {type}, which cannot be used in questions.",
        "Use columns that are numbers, texts, booleans, dates or timestamps.",
    ),
    # The unit of privacy.
    "unit": (
        "the protected table {table} has no usable column {word}, the unit of privacy.",
        "The custodian must add this column to the table, say which other column or foreign key is "
        "its unit, or declare the table public.",
    ),
    "unit_missing": (
        "rows of different units would be mixed before they are bounded.",
        "Add the unit's column {word} to {clause}.",
    ),
    "unit_is_row": (
        "each row is a unit of its own here, and {what} could mix rows or count one twice.",
        "Ask one protected table without {what}, or let the custodian declare a unit's column.",
    ),
    "periods": (
        "units are protected per {period}, and the question does not say for which.",
        "Name them, as in periods=[{example!r}].",
    ),
    "period_time": (
        "{table} has no single date or timestamp column that could say which {period} a row is of.",
        "The custodian must name it, as in unit.per({period!r}, time='column').",
    ),
    # Joins.
    "join_kind": (
        "{word} is not supported: rows of different units could get mixed.",
        "Use INNER JOIN, LEFT JOIN, RIGHT JOIN or FULL JOIN with ON or USING.",
    ),
    "join_unit": (
        "two protected tables can only be joined where both rows are of the same {word}.",
        "Add the unit's column to the condition: USING ({word}), or ON a.{word} = b.{word} AND ...",
    ),
    "join_public": (
        "this {word} keeps public rows without a partner, which belong to nobody.",
        "Keep those of the protected table, as in protected LEFT JOIN public, or use INNER JOIN.",
    ),
    "many_tables": (
        "this joins more than {most} tables, each use of a part of WITH counted.",
        "Join fewer, or aggregate within units before joining.",
    ),
    "join_condition": (
        "this join has no condition.",
        "Add ON or USING, or write CROSS JOIN for a public table.",
    ),
    # Unions.
    "union_public": (
        "this UNION puts rows of a public table, which belong to nobody, among protected ones.",
        "Unite protected tables, or ask of each by itself.",
    ),
    "union_columns": (
        "the queries of this UNION have different numbers of columns.",
        "Give each the same columns in the same order, NULL where there is none.",
    ),
    # Grouping.
    "grouping_sets": (
        "{word} asks for several groupings at once.",
        "Ask one GROUP BY per question and add the released answers up.",
    ),
    "ordinal": (
        "there is no column number {word} in the SELECT list.",
        "Count from 1 to {most}, or use names.",
    ),
    "key_aggregate": (
        "GROUP BY cannot contain an aggregate.",
        "Group by columns or row-level expressions.",
    ),
    "no_keys": (
        "WHERE lets no value of the key {word} through, so there is no group to show.",
        "List the values you mean in one place, as in WHERE {word} IN ('a', 'b').",
    ),
    "key_value": (
        "{value} can never be a value of the key {word}, whose type is {type}.",
        "Leave {value} out of the list in WHERE.",
    ),
    "unit_key": (
        "each group would be one {word}, so that none could be shown.",
        "Leave {word} out of GROUP BY, or group by it in a subquery and aggregate over that.",
    ),
    "distinct_on": (
        "DISTINCT ON picks single raw rows.",
        "Use GROUP BY with aggregates.",
    ),
    "distinct": (
        "DISTINCT together with GROUP BY or aggregates is not supported.",
        "Leave DISTINCT out: groups are distinct already.",
    ),
    # Aggregates.
    "aggregate": (
        "{word} would show single raw values, or has no private version.",
        f"Use {_AGGREGATES} or HISTOGRAM.",
    ),
    "aggregate_any": (
        "{word} would tell whether there is a single such row.",
        "Ask how many there are: COUNT_IF({condition}), beside COUNT(*).",
    ),
    "aggregate_top": (
        "{word} would show single raw values.",
        "Ask for groups: SELECT {subject}, {measure} ... GROUP BY {subject} "
        "ORDER BY 2 DESC LIMIT {most}.",
    ),
    "aggregate_distinct": (
        "{word}(DISTINCT ...) is not supported.",
        "Ask {word} of the groups: SELECT {word}({subject}) FROM (SELECT {subject}, COUNT(*) "
        "FROM ... GROUP BY {subject}).",
    ),
    "distinct_bounds": (
        "the bounds of {subject} are not declared, and choosing them privately cannot tell how "
        "much of a sum of distinct values lies beyond them.",
        "State them: SUM(DISTINCT CLAMP({subject}, 0, 100)), with bounds of your own.",
    ),
    "aggregate_arguments": (
        "{word} does not take these arguments.",
        "Write it like {example}.",
    ),
    "aggregate_place": (
        "an aggregate cannot stand {where}.",
        "Use aggregates in SELECT, HAVING or ORDER BY; filter rows by plain columns.",
    ),
    "aggregate_type": (
        "{word} needs numbers, but {argument} is a {kind}.",
        "Turn it into a number, as in {word}({number}), or use COUNT.",
    ),
    "aggregate_rows": (
        "{word} within one unit is not supported.",
        "Within a unit use COUNT, SUM, AVG, MIN or MAX.",
    ),
    "quantile": (
        "the quantile must be a number between 0 and 1, written out, and a millionth away from "
        "either at least.",
        "Write for example QUANTILE(x, 0.9); the extremes are MIN(x) and MAX(x).",
    ),
    "histogram": (
        "{why}.",
        "Write HISTOGRAM(x, low, high, bins) as the only aggregate, such as "
        "HISTOGRAM(age, 0, 100, 10).",
    ),
    "clamp": (
        "CLAMP needs a number and two literal bounds, the lower one first.",
        "Write for example CLAMP(income, 0, 200000).",
    ),
    # Expressions.
    "function": (
        "{word} is not a function that questions may use.",
        "{near}",
    ),
    "random": (
        "{word} gives another result each time, so the same question would not mean the same.",
        "Write the value you mean, such as DATE '2026-01-31', into the question.",
    ),
    "system": (
        "{word} asks about the system and not about the data.",
        "Leave it out.",
    ),
    "lambda": (
        "functions written inside a question are not supported.",
        "Use CASE and the scalar functions.",
    ),
    "nested_type": (
        "lists, structs and maps are not supported.",
        "Use one expression for each value, as in QUANTILE(x, 0.1), QUANTILE(x, 0.9).",
    ),
    "regexp": (
        "only regular expressions of a bounded size that take no more than one look at a text are "
        "supported.",
        "Use signs, ., [a-z], ^, $, |, (), *, +, ?, {{1,9}} and \\d, \\w, \\s or \\b; or LIKE.",
    ),
    "expression": (
        "{word} is not an expression that questions may use.",
        "Use arithmetic, comparisons, CASE and the scalar functions.",
    ),
    "arguments": (
        "{word} does not take these arguments.",
        "Write it like {example}.",
    ),
    "literal": (
        "{word} must be written out as {what} here.",
        "Write a plain literal, such as {example}.",
    ),
    "types": (
        "{word} cannot work on a {left} and a {right}.",
        "Convert one side, as in CAST(x AS DOUBLE) or DATE '2026-01-31'.",
    ),
    "type": (
        "{word} needs a {wanted}, but {argument} is a {kind}.",
        "Convert it, as in CAST(x AS {cast}).",
    ),
    "cast": (
        "a CAST to {word} is not supported.",
        "Cast to BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE or TIMESTAMP.",
    ),
    "date_part": (
        "{word} is no part of a date that is known here.",
        "Use year, quarter, month, week, day, dow, hour, minute or second.",
    ),
    "format": (
        "{word} is no part of a format of dates that is known here.",
        "Write for example STRFTIME(d, '%Y-%m') or TO_CHAR(d, 'YYYY-MM').",
    ),
    "time_zone": (
        "{word} is no time zone that is known here; it must be written out.",
        "Name a place, as in AT TIME ZONE 'Europe/Berlin', or move it: t + INTERVAL 2 HOUR.",
    ),
    "moments": (
        "what lies between two timestamps is an interval, and no number.",
        "Say in which unit, as in DATE_DIFF('second', {two}, {one}).",
    ),
    "engine": (
        "the engine of these tables cannot do {word}.",
        "Leave it out, or ask in another way.",
    ),
    "limit": (
        "{word} needs a whole number, written out.",
        "Write for example {word} 10.",
    ),
}


def refused(code: str, *, line: int, column: int, **words: object) -> Refused:
    """Fill in one entry of the catalogue.

    >>> print(refused("grouping_sets", line=1, column=40, word="ROLLUP"))
    line 1, column 40: ROLLUP asks for several groupings at once. Nothing was spent. Ask one GROUP
    BY per question and add the released answers up.
    """
    as_number = {
        "date": f"EPOCH({words.get('argument')})",
        "timestamp": f"EPOCH({words.get('argument')})",
        "text": f"CAST({words.get('argument')} AS DOUBLE)",
    }
    words.setdefault("number", as_number.get(str(words.get("kind")), "CASE WHEN ... END"))
    reason, remedy = CATALOGUE[code]
    return Refused(
        code=code,
        line=line,
        column=column,
        reason=_sentence(reason.format(**words)),
        remedy=_sentence(remedy.format(**words)),
    )


def _sentence(text: str) -> str:
    return " ".join(text.split())
