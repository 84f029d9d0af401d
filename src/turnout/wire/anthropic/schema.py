"""JSON schemas as Messages takes them: no numeric or length limits, every object closed."""

from typing import Any

_LIMITS = frozenset(
    (
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    )
)
_BY_NAME = ("properties", "$defs", "definitions")
_ONE = ("items", "not", "if", "then", "else", "contains", "additionalItems")
_MANY = ("anyOf", "allOf", "oneOf", "prefixItems")


def constrained(schema: dict[str, Any], *, closed: bool = True) -> tuple[dict[str, Any], bool]:
    """A copy that Messages accepts for structured output, and whether anything had to change. Key order stays. `closed`: no
    object takes further properties."""
    changed = False

    def visit(node: Any) -> Any:
        nonlocal changed
        if not isinstance(node, dict):
            return node
        out: dict[str, Any] = {}
        for key, value in node.items():
            if key in _LIMITS or (key == "minItems" and isinstance(value, int) and value > 1):
                changed = True
            elif key in _BY_NAME and isinstance(value, dict):
                out[key] = {name: visit(inner) for name, inner in value.items()}
            elif key in _ONE:
                out[key] = [visit(v) for v in value] if isinstance(value, list) else visit(value)
            elif key in _MANY and isinstance(value, list):
                out[key] = [visit(inner) for inner in value]
            else:
                out[key] = value
        is_object = "properties" in out or node.get("type") == "object"
        if closed and is_object and out.get("additionalProperties") is not False:
            changed = True
            out["additionalProperties"] = False
        return out

    return visit(schema), changed
