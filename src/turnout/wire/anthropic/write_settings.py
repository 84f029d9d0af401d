"""Settings -> the fields of a Messages request."""

from collections.abc import Sequence
from typing import Any, Literal

from turnout.conversation import Effort, Format, Settings, Tool
from turnout.errors import ClientError
from turnout.wire.anthropic.schema import constrained
from turnout.wire.anthropic.thinking import LEVELS, MIN_BUDGET, clamped_budget
from turnout.wire.drops import Drops
from turnout.wire.names import alias, qualified

_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_FIELDS: dict[Format, dict[str, str]] = {
    "openai_chat": {
        "effort": "reasoning_effort",
        "output": "response_format",
        "schema": "response_format.json_schema",
    },
    "openai_responses": {
        "effort": "reasoning.effort",
        "summary": "reasoning.summary",
        "output": "text.format",
        "schema": "text.format",
        "verbosity": "text.verbosity",
    },
    "anthropic_messages": {},
}
_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
_ANSWER_JSON = "Answer with one JSON object and nothing else."


def choice_of(settings: Settings, mode: Literal["auto", "required"] | None = None) -> dict[str, Any] | None:
    """The tool_choice object, with the switch for parallel calls in it. `mode`: that of a choice of allowed tools."""
    choice, parallel = settings.tool_choice, settings.parallel
    value: dict[str, Any]
    if choice is None:
        if parallel is not False:
            return None
        value = {"type": "auto"}  # the switch needs a choice to sit in, and must not force a call
    elif choice.mode == "raw":
        raw: dict[str, Any] | None = choice.raw if isinstance(choice.raw, dict) else None
        return raw
    elif choice.mode == "named":
        value = {"type": "tool", "name": alias(choice.name or "", choice.namespace)}
    else:
        value = {"type": _CHOICES[mode or (choice.allowed_mode if choice.mode == "allowed" else choice.mode)]}
    if parallel is not None and value["type"] != "none":
        value["disable_parallel_tool_use"] = not parallel
    return value


def narrowed(tools: Sequence[Tool], settings: Settings) -> tuple[Sequence[Tool], Literal["auto", "required"] | None]:
    """The tools that a choice of allowed tools leaves, and its mode."""
    choice = settings.tool_choice
    if choice is None or choice.mode != "allowed":
        return tools, None
    names = set(choice.names)
    kept = [t for t in tools if t.style != "server" and (t.name in names or qualified(t.name, t.namespace) in names)]
    known = {n for t in kept for n in (t.name, qualified(t.name, t.namespace))}
    unknown = sorted(names - known)
    if not kept or unknown:
        what = f"names no function tool of this request: {', '.join(unknown)}" if unknown else "allows no tool"
        raise ClientError(
            f"tool_choice: the list of allowed tools {what}", code="invalid_tool_choice", param="tool_choice"
        )
    return kept, choice.allowed_mode


def own_settings(body: dict[str, Any], settings: Settings) -> None:
    """The fields of settings that were read from Messages (or have its spelling)."""
    _sampling(body, settings)
    if settings.stop:
        body["stop_sequences"] = list(settings.stop)
    if settings.user is not None or settings.metadata is not None:
        user = {} if settings.user is None else {"user_id": settings.user}
        body["metadata"] = {**user, **(settings.metadata or {})}
    if settings.service_tier is not None:
        body["service_tier"] = settings.service_tier
    body.update(settings.extra)
    effort, output = settings.effort, settings.output
    config: dict[str, Any] = {}
    if effort is not None:
        if effort.level == "none":  # an edit's word: Messages has no such level
            body["thinking"] = {"type": "disabled"}
        elif effort.level is not None:
            config["effort"] = LEVELS.get(effort.level, effort.level)
        if effort.mode is not None and effort.level != "none":
            budget = {} if effort.budget_tokens is None else {"budget_tokens": effort.budget_tokens}
            body["thinking"] = {"type": effort.mode, **budget, **effort.extra}
    if output is not None and output.schema is not None:
        config["format"] = {"type": "json_schema", "schema": output.schema, **output.extra}
    if config:
        body["output_config"] = {**config, **(settings.extra.get("output_config") or {})}


def _sampling(body: dict[str, Any], settings: Settings) -> None:
    for key, value in (
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("top_k", settings.top_k),
    ):
        if value is not None:
            body[key] = value


def translated_settings(body: dict[str, Any], settings: Settings, source: Format, drops: Drops) -> None:
    """The fields of settings that were read from another format, as far as Messages has them."""
    names = _FIELDS[source]
    _refuse_server_state(settings)
    thinking = _thinking(body, settings, names, drops)
    _translated_sampling(body, settings, thinking, drops)
    _output(body, settings, names, drops)
    stop = [s for s in settings.stop if s.strip()]
    if stop:
        body["stop_sequences"] = stop
    if len(stop) < len(settings.stop):
        drops.drop("stop", "Messages takes no stop sequence of white space alone")
    if settings.service_tier in _TIERS:
        body["service_tier"] = _TIERS[settings.service_tier]
        if body["service_tier"] != settings.service_tier:
            drops.emulate("service_tier", f"Messages calls it {body['service_tier']}")
    elif settings.service_tier is not None:
        drops.drop("service_tier", f"Messages has no tier {settings.service_tier}")
    if settings.user is not None:
        if settings.user_field == "metadata.user_id":
            body["metadata"] = {"user_id": settings.user}
        else:
            drops.drop(settings.user_field or "user", "an end user's id stays with its vendor")
    _unknown(settings, names, drops)


def _refuse_server_state(settings: Settings) -> None:
    for name, value in (
        ("previous_response_id", settings.previous_response_id),
        ("conversation", settings.conversation_id),
        ("background", settings.background or None),
    ):
        if value is not None:
            raise ClientError(
                f"{name}: Messages keeps no conversations and no answers; send the whole history and wait for the answer",
                code="unsupported_capability",
                param=name,
            )


def _unknown(settings: Settings, names: dict[str, str], drops: Drops) -> None:
    for key, value in (
        ("verbosity", settings.verbosity),
        ("metadata", settings.metadata),
        ("prompt_cache_key", settings.prompt_cache_key),
        ("store", settings.store or None),
        ("n", settings.n if settings.n != 1 else None),
    ):
        if value is not None:
            drops.drop(names.get(key, key), "Messages has no such field")
    for key, said in (
        ("store", settings.store is False),
        ("n", settings.n == 1),
        ("background", settings.background is False),
    ):
        if said:
            drops.emulate(key, "Messages does so in any case")
    if settings.extra:
        drops.extras("", settings.extra, "Messages")


def _thinking(body: dict[str, Any], settings: Settings, names: dict[str, str], drops: Drops) -> bool:
    """Write the effort as adaptive thinking (or the budget the client named); whether the model will think."""
    effort = settings.effort
    if effort is None:
        return False
    path = names.get("effort", "effort")
    if effort.extra:
        drops.extras(path.partition(".")[0], effort.extra, "Messages")
    if effort.level == "none" or effort.mode == "disabled":
        body["thinking"] = {"type": "disabled"}
        drops.emulate(path, "Messages switches thinking off instead")
        return False
    level = LEVELS.get(effort.level or "")
    if level is not None:
        body["output_config"] = {"effort": level}
        if level != effort.level:
            drops.downgrade(path, f"Messages has no effort {effort.level}: {level} in its place")
    elif effort.level is not None:
        drops.drop(path, f"Messages has no effort {effort.level}")
    if effort.summary is not None:
        drops.emulate(names.get("summary", "summary"), "Messages shows a summary of its own or none")
    if body.get("tool_choice", _NO_CHOICE)["type"] in ("any", "tool"):
        drops.drop(path, "Messages does not think when a tool call is forced")
        return False
    return _switch(body, effort, path, drops)


_NO_CHOICE = {"type": "auto"}


def _switch(body: dict[str, Any], effort: Effort, path: str, drops: Drops) -> bool:
    if effort.budget_tokens is not None:
        budget = clamped_budget(effort.budget_tokens, body["max_tokens"])
        if budget is None:
            drops.drop(path, f"max_tokens leaves no room for the {MIN_BUDGET} thinking tokens Messages asks for")
            return False
        if budget != effort.budget_tokens:
            drops.downgrade(path, f"a thinking budget of {effort.budget_tokens} was set to {budget}")
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif effort.level is None and effort.mode is None and effort.summary is None:
        return False
    else:
        body["thinking"] = {"type": "adaptive"}
    if effort.summary not in (None, "none"):
        body["thinking"]["display"] = "summarized"
    return True


def _translated_sampling(body: dict[str, Any], settings: Settings, thinking: bool, drops: Drops) -> None:
    temperature, top_p = settings.temperature, settings.top_p
    if thinking:
        for key, value in (("temperature", temperature), ("top_p", top_p), ("top_k", settings.top_k)):
            if value is not None:
                drops.drop(key, "Messages does not take it while the model thinks")
        return
    if temperature is not None and not 0 <= temperature <= 1:
        drops.downgrade("temperature", "Messages goes from 0 to 1")
        temperature = min(max(temperature, 0.0), 1.0)
    if temperature is not None and top_p is not None:
        drops.drop("top_p", "Messages takes temperature or top_p, not both")
        top_p = None
    for key, value in (("temperature", temperature), ("top_p", top_p), ("top_k", settings.top_k)):
        if value is not None:
            body[key] = value


def _output(body: dict[str, Any], settings: Settings, names: dict[str, str], drops: Drops) -> None:
    output = settings.output
    if output is None:
        return
    path = names.get("output", "output")
    if output.kind == "text":
        drops.emulate(path, "Messages answers in text in any case")
        return
    if output.kind == "json_object" or output.schema is None:
        drops.emulate(path, "Messages has no free JSON mode: an instruction asks for it")
        body["system"] = [*body.get("system", ()), {"type": "text", "text": _ANSWER_JSON}]
        return
    inside = names.get("schema", path)
    schema, changed = constrained(output.schema)
    if changed:
        drops.downgrade(
            f"{inside}.schema", "Messages takes no numeric or length limits in a schema, and only closed objects"
        )
    if output.name is not None:
        drops.emulate(f"{inside}.name", "Messages needs no label for a schema")
    if output.strict is not None:
        drops.emulate(f"{inside}.strict", "Messages always holds to the schema")
    if output.description is not None:
        drops.emulate(f"{inside}.description", "it goes into the schema")
        schema.setdefault("description", output.description)
    if output.extra:
        drops.extras(inside, output.extra, "Messages")
    body.setdefault("output_config", {})["format"] = {"type": "json_schema", "schema": schema}
