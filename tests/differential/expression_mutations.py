"""Break what reads functions on purpose: `python -m tests.differential.expression_mutations`."""

from __future__ import annotations

from tests.differential.mutating import Mutation, run_all

__all__ = ["MUTATIONS"]

_READING = "dstream.expressions.reader"
_CALLS = "dstream.expressions.callables"
_NAMES = "dstream.expressions.resolution"
_ORDER = "dstream.expressions.effects"
_SOURCE = "dstream.expressions.source"
_SYNTAX = "dstream.expressions.syntax"

_ROUTINES = "dstream.expressions.routines"
_STATEMENTS = "dstream.expressions.statements"
_FORMS = "dstream.operators.rows.syntax"

MUTATIONS: list[Mutation] = [
    (_ROUTINES, "        if not self._is_new(value):\n            self.shared.add(name)\n", ""),
    (_ROUTINES, "        if not self._has_new_members(value):\n            self.mixed.add(name)\n", ""),
    (_ROUTINES, "        if self._hold(value) and isinstance(value, Choice | Let | Local):\n", "        if False:\n"),
    (_ROUTINES, "        self.mixed |= held\n", ""),
    (_ROUTINES, "                return set(self._named(value))\n", "                return set()\n"),
    (_ROUTINES, "            case Choice() | Let():\n                parts = value.parts()\n", ""),
    (_ROUTINES, "            case Built(_, _, parts) | Display(_, parts) | Comprehension(_, _, parts):\n                pass\n", ""),
    (_ROUTINES, "        for each in values:\n            self._hold(each)\n", ""),
    (_ROUTINES, "            case Built(_, (\"*\",) | (\"**\",), _):\n                return False\n", ""),
    (_ROUTINES, "            case Method(_, name, _):\n                return name in _METHODS_MAKING_ALL\n            case Called", "            case Method():\n                return self._is_new(value)\n            case Called"),
    (_ROUTINES, "        if statement.finalbody and any(map(_may_change_in_place, (tried, otherwise, *handlers))):\n", "        if False:\n"),
    (_ROUTINES, "        return behind.without(names_bound(statement.finalbody).keys() - end.variables.keys())\n", "        return behind\n"),
    (_ROUTINES, "        if handler.name in body.variables:", "        if False:"),
    (_ROUTINES, "                    kind.id = found.__name__", "                    pass"),
    (_SOURCE, "case ast.ExceptHandler(_, str(name)) | ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):", "case ast.ExceptHandler(_, str(name)):"),
    (_SOURCE, "        case ast.MatchMapping(_, _, str(name)):\n            yield name\n", ""),
    (_STATEMENTS, "if bound[name] > 1 or name in body.variables:", "if False:"),
    (_STATEMENTS, "if bound[name] > 1 or name in body.variables:", "if bound[name] > 1:"),
    (_STATEMENTS, "if bound[name] > handled[name] or name in body.variables:", "if False:"),
    (_STATEMENTS, "frozenset({*parameters, *names_bound(statement.body)})", "frozenset(parameters)"),
    (_READING, ", fresh=frozenset())", ")"),
    ("dstream.expressions.calls", "{*body.variables, *body.functions}", "body.variables.keys()"),
    (_ROUTINES, "        if name.id not in body.fresh:\n", "        if False:\n"),
    (_ROUTINES, "        if of.id in self.mixed:\n", "        if False:\n"),
    (_ROUTINES, "        if reading.shared == shared and reading.mixed == mixed:\n", "        if True:\n"),
    (_ROUTINES, "            if of.id in self.mixed and not", "            if False and not"),
    (_ROUTINES, "        if not _is_shown_alone(Local(number), block):\n", "        if False:\n"),
    (_ROUTINES, "        self.shared.update(names)\n", ""),
    (_ROUTINES, "        if not all(map(self._has_new_members if are_used_up else self._is_new, values)):\n            self.mixed.add(name)\n", ""),
    (_STATEMENTS, "names = set.intersection(*(set(each.variables) for each in reached))", "names = set.union(*(set(each.variables) for each in reached))"),
    (_ROUTINES, "        check_known(tried, statement.lineno)\n", ""),
    (_ROUTINES, "                if name not in body.fresh:\n                    value", "                if False:\n                    value"),
    (_FORMS, "self.statements(otherwise) if otherwise.parts() else []", "[]"),
    (_FORMS, "if finally_.parts() or not handlers else []", "if finally_.parts() else []"),
    (_FORMS, "each.number not in own", "True"),
    ("dstream.expressions.statements", "    check_known(tried, statement.lineno)\n", ""),
    (_READING, "        if function.captured & body.shadowed:\n", "        if False:\n"),
    (_READING, "typed(literals[name]) == typed(defaults[name])", "True"),
    (_CALLS, "return isinstance(kind, type) and _fields(kind) is not None", "return isinstance(kind, type)"),
    (_NAMES, "return value == written if is_pattern else", "return True if is_pattern else"),
    (_CALLS, "        and not hasattr(kind, \"__post_init__\")\n", ""),
    (_CALLS, "        and new is object.__new__\n", ""),
    (_CALLS, "        and (getattr(kind, \"__setattr__\", None) is object.__setattr__ or parameters.frozen)\n", ""),
    (_CALLS, "each.init and not each.kw_only and not _is_computed(kind, each.name)", "each.init and not each.kw_only"),
    (_CALLS, "each.init and not each.kw_only and", "each.init and"),
    (_CALLS, "        and len(vars(kind)[\"__dataclass_fields__\"]) == len(dataclasses.fields(kind))\n", ""),
    (_CALLS, "        and is_of_dataclass(init)\n", ""),
    (_CALLS, "        and is_of_named_tuple(new)\n", ""),
    (_CALLS, "        and init is object.__init__\n", ""),
    (_CALLS, "    if type(kind) is not type:\n        return None\n", ""),
    ("dstream.expressions.calls", "name in USING_UP", "True"),
    ("dstream.expressions.calls", "inside = body.inside({name for each in generators for name in _assigned_in(each)})", "inside = body"),
    ("dstream.expressions.statements", "value=value) if name in body.fresh:\n            return _stored", "value=value):\n            return _stored"),
    ("dstream.expressions.statements", "sign not in (\"and\", \"or\", \"pos\")", "True"),
    ("dstream.expressions.statements", "read_block(_behind(rest, is_whole=isinstance(first, ast.Break)), body)", "read_block(_behind(rest, is_whole=False), body)"),
    ("dstream.expressions.statements", "return _stored(name, total, rest, body.without(names))", "return _stored(name, total, rest, body)"),
    ("dstream.expressions.resolution", "    if any(each.__globals__.get(\"__name__\") != \"enum\" for each in own):\n        return False\n", ""),
    ("dstream.expressions.effects", "    if isinstance(expression, Comprehension | Function | Routine | Tried):\n        return ()\n", ""),
    (_CALLS, "and all(map(is_leaf, arguments)):", ":"),
    ("dstream.expressions.callables", "or name not in CHANGING_NOTHING or", "or"),
    ("dstream.expressions.callables", "and fn.__name__ in CHANGING_NOTHING else None", "else None"),
    (_CALLS, "    if keywords:\n        return _by_place(name, tuple(arguments), tuple(keywords))\n    return _operated", "    return _operated"),
    (_READING, "    if is_watched():", "    if False:"),
    (_READING, "or fn.__code__.co_flags & _GENERATOR", ""),
    (_READING, "        if is_by_reference(fn) and not is_as_imported(fn):", "        if False:"),
    (_READING, "    if is_by_reference(fn) and not is_literal:", "    if False:"),
    (_READING, "    if fn.__defaults__ or fn.__kwdefaults__:\n        return _read(fn, arguments, namespaces)\n", ""),
    (_READING, "    if code.co_flags & 0x0C:", "    if False:"),
    (_READING, "    if set(keywords) & set(code.co_varnames[: code.co_posonlyargcount]):", "    if False:"),
    (_READING, "is_used_once and is_evaluated_first(local, result) and not asks_for_truth(value)", "is_used_once and not asks_for_truth(value)"),
    (_READING, "is_used_once and is_evaluated_first(local, result) and not asks_for_truth(value)", "is_used_once and is_evaluated_first(local, result)"),
    (_READING, "is_used_once and is_evaluated_first(local, result) and not asks_for_truth(value)", "is_evaluated_first(local, result) and not asks_for_truth(value)"),
    (_READING, "if not self.inside or not asks_for_truth(result):", "if True:"),
    (_READING, "return fn.__code__, fn.__defaults__, *chain", "return fn.__defaults__, *chain"),
    (_READING, "return fn.__code__, fn.__defaults__, *chain", "return fn.__code__, *chain"),
    (_READING, "_value_now(fn, each, namespaces) is each.value", "True"),
    (_READING, "        return member_function(lookup.of, lookup.name, is_property=lookup.is_property)\n", "        return lookup.value\n"),
    (_READING, "if self.size > _MOST_VALUES or depth > _DEEPEST_VALUE:", "if False:"),
    (_READING, "    if len(parts) > _LONGEST:", "    if False:"),
    (_READING, " and sum(isinstance(each, ast.If) for each in parts) <= _MOST_CHOICES", ""),
    (_READING, "len(constants) < len(given) or set(fn.keywords) & set(keywords)", "set(fn.keywords) & set(keywords)"),
    (_NAMES, "        return value == value\n", "        return True\n"),
    (_NAMES, "        return all(map(is_same_constant_everywhere, value))\n", "        return True\n"),
    (_NAMES, "return fn.__globals__ is vars(module) and fn.__code__.co_qualname == fn.__qualname__", "return fn.__code__.co_qualname == fn.__qualname__"),
    (_NAMES, "return fn.__globals__ is vars(module) and fn.__code__.co_qualname == fn.__qualname__", "return fn.__globals__ is vars(module)"),
    (_SOURCE, "    return type(constant), repr(constant)", "    return type(constant), constant"),
    (_SYNTAX, "    if not is_known or value is not _FIRST[module.__name__].get(name):", "    if not is_known:"),
    (_ORDER, "    if is_shortened or isinstance(expression, Choice | Method | Let):", "    if isinstance(expression, Choice | Method | Let):"),
    (_ORDER, "    if is_shortened or isinstance(expression, Choice | Method | Let):", "    if is_shortened:"),
]  # fmt: skip


def _tests_of(mutation: Mutation) -> list[str]:
    return ["tests/expressions"]


if __name__ == "__main__":
    run_all(MUTATIONS, _tests_of)
