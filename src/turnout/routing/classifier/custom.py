"""An operator's own question: its JSON schema, checked here, and where in the answer the choice stands."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from turnout.signals import regex

_VALUES = ("enum", "const", "default", "examples")
"""Keywords of a schema under which stand values, no schemas."""

MISSING: Any = object()
"""Stands for what a pointer does not find."""


def schema_of(given: dict[str, Any] | str, choices: Iterable[str]) -> dict[str, Any]:
    """The answer's JSON schema: as given, as a table or as JSON text; by default a reason and one of `choices`.

    Raises ValueError, naming what is wrong.
    """
    if isinstance(given, str) and given.strip():
        try:
            found = msgspec.json.decode(given)
        except msgspec.DecodeError as error:
            raise ValueError(f"schema: not JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError("schema: expected a JSON object")
        return found
    if isinstance(given, dict) and given:
        return given
    return {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "choice": {"type": "string", "enum": list(choices)}},
        "required": ["reason", "choice"],
        "additionalProperties": False,
    }


def checker(schema: dict[str, Any]) -> Callable[[Any], Any]:
    """What raises ValueError for an answer that does not fit `schema`, which may refer to nothing outside itself.

    Raises ValueError for a schema that is none.
    """
    # Only routes with a question of their own need it.
    import fastjsonschema

    if (outside := next(_references(schema), None)) is not None:
        raise ValueError(f"schema: $ref {outside!r} leads out of the schema; only #/... is looked up")
    for pattern in _patterns(schema):
        regex("schema", pattern)
    try:
        check: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)
    except Exception as error:  # whatever a malformed schema makes its compiler stumble over
        raise ValueError(f"schema: not a JSON schema: {error}") from None

    def checked(answer: Any) -> Any:
        try:
            return check(answer)
        except fastjsonschema.JsonSchemaValueException as error:
            # Where and which rule, without what the judge wrote there.
            where = "/".join(str(step) for step in error.path[1:])
            raise ValueError(f"the answer breaks `{error.rule}` at /{where}") from None

    return checked


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and not reference.startswith("#"):
            yield reference
        for key, value in schema.items():
            if key not in _VALUES:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _patterns(schema: Any) -> Iterator[str]:
    """The regular expressions that answers are checked by."""
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        if isinstance(named := schema.get("patternProperties"), dict):
            yield from named
        for key, value in schema.items():
            if key not in _VALUES:
                yield from _patterns(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _patterns(value)


def steps_of(pointer: str) -> tuple[str, ...]:
    """The steps of a JSON pointer. Raises ValueError."""
    if pointer and not pointer.startswith("/"):
        raise ValueError(f"choice: {pointer!r} is no JSON pointer; it begins with a /, such as /choice")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def at(answer: Any, steps: tuple[str, ...]) -> Any:
    """What stands in `answer` at a pointer; MISSING when nothing does."""
    for step in steps:
        if isinstance(answer, dict) and step in answer:
            answer = answer[step]
        elif isinstance(answer, list) and step.isdecimal() and int(step) < len(answer):
            answer = answer[int(step)]
        else:
            return MISSING
    return answer


def key_of(choice: Any) -> str:
    """A choice as it stands among the names of targets: text as it is, numbers and booleans as JSON writes them, "" for
    anything else."""
    if isinstance(choice, str):
        return choice
    if isinstance(choice, bool | int | float):
        return msgspec.json.encode(choice).decode()
    return ""


def strict(schema: dict[str, Any]) -> bool:
    """Whether servers that enforce a schema to the letter take it: all properties required, and no others."""
    properties = schema.get("properties")
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return False
    return schema.get("additionalProperties") is False and set(schema.get("required") or ()) == set(properties)


def offered(schema: dict[str, Any], steps: tuple[str, ...]) -> list[str]:
    """The choices that a schema allows at a pointer, as far as it lists them."""
    for step in steps:
        properties = schema.get("properties")
        found = properties.get(step) if isinstance(properties, dict) else None
        if not isinstance(found, dict):
            return []
        schema = found
    listed = schema.get("enum")
    return [key_of(choice) for choice in listed] if isinstance(listed, list) else []
