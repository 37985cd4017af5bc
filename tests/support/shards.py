"""Whether a statement leads to one shard, read off its text with PostgreSQL's parser.

The tables of a group are distributed by the same column. A statement leads to one shard
if it names a value of that column, known before it is planned, for every table that it
touches, and touches the tables of one group only. A function of ours would be called on
another server than the one that it is defined on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pglast
from pglast import ast, enums

# The column by which each table is distributed; that of a view comes from its tables.
COLUMN = {
    "thread": "family",
    "checkpoint": "family",
    "segment": "family",
    "journal": "family",
    "move": "family",
    "search_thread": "family",
    "search_stretch": "family",
    "thread_full": "thread_family",
    "checkpoint_full": "family",
    "directory": "name",
}
# A sequence lives on one server too.
OUR_CALLS = {"hf", "nextval", "setval"}

Column = tuple[str, str]


class Relation(NamedTuple):
    """A distributed table of a query, by the name that the query has for it."""

    alias: str
    table: str

    @property
    def key(self) -> Column:
        return self.alias, COLUMN[self.table]

    @property
    def group(self) -> str:
        return "directory" if self.table == "directory" else "families"


class Condition(NamedTuple):
    """What is true of the rows of some tables; an outer join keeps rows of others."""

    node: ast.Node
    tables: frozenset[str]


class Level(NamedTuple):
    """A query without its subqueries: its tables, and the conditions of its rows."""

    relations: list[Relation]
    conditions: list[Condition]


def problems(sql: str, variables: frozenset[str] = frozenset()) -> list[str]:
    """Why a statement may need several shards; ``variables`` are of its function."""
    [raw] = pglast.parse_sql(sql)
    nodes = list(_nodes(raw.stmt))
    levels = [level for node in nodes if (level := _level(node)) is not None]
    relations = [relation for level in levels for relation in level.relations]
    inserts = [node for node in nodes if isinstance(node, ast.InsertStmt)]
    found = [text for level in levels for text in _unbound(level, variables)]
    found += [text for node in inserts for text in _unplaced(node, variables)]
    tables = {relation.group for relation in relations}
    tables |= {Relation("", t).group for n in inserts if (t := _table(n.relation))}
    if len(tables) > 1:
        found.append("joins the directory with the tables of a family")
    if tables:
        found += [f"calls {name} for its rows" for name in _calls(nodes)]
    return found


def locks_rows(sql: str) -> bool:
    """Whether a statement locks the rows it reads, which only one shard can do."""
    [raw] = pglast.parse_sql(sql)
    return any(isinstance(node, ast.LockingClause) for node in _nodes(raw.stmt))


def is_recursive(sql: str) -> bool:
    """Whether a statement goes from row to row, which only one shard can do."""
    [raw] = pglast.parse_sql(sql)
    nodes = _nodes(raw.stmt)
    return any(isinstance(n, ast.WithClause) and n.recursive for n in nodes)


def is_limited_by_query(sql: str) -> bool:
    """Whether a query says how many rows another one may give: no shard can know it."""
    [raw] = pglast.parse_sql(sql)
    limits = (getattr(node, "limitCount", None) for node in _nodes(raw.stmt))
    return any(isinstance(n, ast.SubLink) for limit in limits for n in _nodes(limit))


def is_joined_by_key(sql: str) -> bool:
    """Whether tables are joined by the column only that they are distributed by."""
    [raw] = pglast.parse_sql(sql)
    levels = [level for node in _nodes(raw.stmt) if (level := _level(node))]
    return all(map(_are_joined, levels))


def _are_joined(level: Level) -> bool:
    keys = {relation.key for relation in level.relations}
    known = {relation.key for relation in level.relations[:1]}
    _spread(known, _pairs(level, frozenset()), keys)
    return known == keys


# --- the inside of functions ----------------------------------------------------------


def statements_inside(function: str) -> Iterator[tuple[str, frozenset[str]]]:
    """The statements and expressions of a PL/pgSQL function, with its variables."""
    # The parser knows no types but those of the server.
    plain = re.sub(r"\bsetof hf\.\w+", "setof record", function)
    plain = re.sub(r"\breturns hf\.\w+", "returns record", plain)
    plain = re.sub(r"(?m)^(\s+\w+) hf\.\w+;", r"\1 record;", plain)
    [parsed] = pglast.parse_plpgsql(plain)
    inside = parsed["PLpgSQL_function"]
    names = re.findall(r'"refname": "(\w+)"', json.dumps(inside["datums"]))
    for expression in _found(inside["action"], "PLpgSQL_expr"):
        text = expression["query"]
        if expression["parseMode"] != 0:
            text = f"select {text.partition(':=')[2] or text}"
        yield text, frozenset(names)


def _found(tree: Any, key: str) -> Iterator[Any]:
    if isinstance(tree, list):
        for item in tree:
            yield from _found(item, key)
    elif isinstance(tree, dict):
        for name, item in tree.items():
            if name == key:
                yield item
            yield from _found(item, key)


# --- parts of a statement -------------------------------------------------------------


def _nodes(node: Any) -> Iterator[ast.Node]:
    """A node and everything below it."""
    if isinstance(node, tuple):
        for item in node:
            yield from _nodes(item)
    elif isinstance(node, ast.Node):
        yield node
        for name in node:
            yield from _nodes(getattr(node, name))


def _level(node: ast.Node) -> Level | None:
    """What a query, an update or a deletion says by itself."""
    if isinstance(node, ast.SelectStmt):
        sources: list[Any] = [*(node.fromClause or ())]
    elif isinstance(node, ast.UpdateStmt):
        sources = [node.relation, *(node.fromClause or ())]
    elif isinstance(node, ast.DeleteStmt):
        sources = [node.relation, *(node.usingClause or ())]
    else:
        return None
    level = Level([], [])
    for source in sources:
        _add_source(source, level)
    _add_conditions(node.whereClause, level, level.relations)
    return level


def _add_source(source: ast.Node, level: Level) -> None:
    if isinstance(source, ast.JoinExpr):
        _add_source(source.larg, level)
        kept = len(level.relations)
        _add_source(source.rarg, level)
        is_inner = source.jointype == enums.JoinType.JOIN_INNER
        bound = level.relations[0 if is_inner else kept :]
        _add_conditions(source.quals, level, bound)
    elif isinstance(source, ast.RangeVar) and (table := _table(source)):
        name = source.alias.aliasname if source.alias else table
        level.relations.append(Relation(name, table))


def _add_conditions(
    condition: ast.Node | None, level: Level, bound: list[Relation]
) -> None:
    tables = frozenset(relation.alias for relation in bound)
    level.conditions.extend(Condition(n, tables) for n in _conjuncts(condition))


def _table(source: ast.RangeVar) -> str | None:
    is_ours = source.schemaname == "hf" and source.relname in COLUMN
    return source.relname if is_ours else None


def _conjuncts(condition: ast.Node | None) -> Iterator[ast.Node]:
    is_all = getattr(condition, "boolop", None) == enums.BoolExprType.AND_EXPR
    if condition is None:
        return
    if isinstance(condition, ast.BoolExpr) and is_all:
        for part in condition.args:
            yield from _conjuncts(part)
    else:
        yield condition


# --- what leads to a shard ------------------------------------------------------------


def _unbound(level: Level, variables: frozenset[str]) -> Iterator[str]:
    """The tables of a level whose rows may be on any shard."""
    keys = {relation.key for relation in level.relations}
    pairs = _pairs(level, variables)
    known = {key for key, other in pairs if other is None}
    _spread(known, pairs, keys)
    for relation in level.relations:
        if relation.key not in known:
            yield f"does not say which {relation.key[1]} of {relation.table}"


def _spread(
    known: set[Column], pairs: list[tuple[Column, Column | None]], keys: set[Column]
) -> None:
    """Add the keys that are equal to known ones of the same level and group."""
    for _ in pairs:
        for one, other in pairs:
            if other is not None and one in keys and other in keys and other in known:
                known.add(one)


def _pairs(
    level: Level, variables: frozenset[str]
) -> list[tuple[Column, Column | None]]:
    """What each column is equal to: another one, or ``None`` for a constant."""
    return [
        (column, theirs)
        for condition in level.conditions
        for side, other in _equal_sides(condition.node)
        if (column := _column(side, level, variables)) is not None
        and column[0] in condition.tables
        and (
            (theirs := _column(other, level, variables)) is not None
            or _is_constant(other, level, variables)
        )
    ]


def _equal_sides(node: ast.Node) -> list[tuple[ast.Node, ast.Node]]:
    if not isinstance(node, ast.A_Expr) or node.name[0].sval != "=":
        return []
    if node.kind != enums.A_Expr_Kind.AEXPR_OP:
        return []
    return [(node.lexpr, node.rexpr), (node.rexpr, node.lexpr)]


def _column(node: ast.Node, level: Level, variables: frozenset[str]) -> Column | None:
    """A column of a table of this level."""
    match _names(node):
        case [alias, column] if alias in {r.alias for r in level.relations}:
            return alias, column
        case [column] if len(level.relations) == 1 and column not in variables:
            return level.relations[0].alias, column
    return None


def _is_constant(node: Any, level: Level, variables: frozenset[str]) -> bool:
    """Whether a value is known when the statement is planned."""
    if isinstance(node, ast.TypeCast):
        return _is_constant(node.arg, level, variables)
    if isinstance(node, ast.ParamRef | ast.A_Const):
        return True
    names = _names(node)
    of_level = {relation.alias for relation in level.relations}
    return bool(names) and names[0] in variables and names[0] not in of_level


def _names(node: Any) -> list[str]:
    if not isinstance(node, ast.ColumnRef):
        return []
    return [field.sval for field in node.fields if isinstance(field, ast.String)]


def _unplaced(node: ast.InsertStmt, variables: frozenset[str]) -> Iterator[str]:
    """An insertion of rows that may belong to several shards."""
    table = _table(node.relation)
    if table is None:
        return
    place = [column.name for column in node.cols].index(COLUMN[table])
    rows = node.selectStmt.valuesLists
    if rows:
        values = [row[place] for row in rows]
    else:
        values = [node.selectStmt.targetList[place].val]
    if not all(_is_constant(value, Level([], []), variables) for value in values):
        yield f"inserts into {table} for a {COLUMN[table]} that is found by it"


def _calls(nodes: list[ast.Node]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.FuncCall):
            names = [part.sval for part in node.funcname]
            if names[0] in OUR_CALLS:
                yield ".".join(names)
