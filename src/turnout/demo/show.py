"""Shows a demo at the terminal: each turn as it was decided, then the bill."""

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from turnout.demo.bill import Bill, Line
from turnout.demo.play import Played
from turnout.demo.session import Session
from turnout.ledger.trace import TurnRecord

CLIENTS = {
    "anthropic": "anthropic client, Messages, streamed",
    "openai_chat": "openai client, Chat Completions",
    "openai_responses": "openai client, Responses, streamed",
}
_STYLES = {"efficient": "green", "capable": "magenta"}
_TOLD = ("command", "file_path", "path", "pattern", "postcode")
"""Arguments that say what a call is about, most telling first."""


def opening(console: Console, url: str) -> None:
    """What is going to be seen."""
    console.print(
        Panel(
            Text.assemble(
                ("Recorded coding sessions, routed live\n", "bold"),
                f"A gateway runs on {url} with two scripted models in place of real ones: no key, no network, and nothing "
                "is executed. What the models say and the tools return is recorded. Who is asked, and why, is decided now, "
                "turn by turn, by what the tool results in the conversation show.",
            ),
            title="turnout demo",
            title_align="left",
        )
    )


def session(console: Console, number: int, session: Session) -> None:
    """A session's heading."""
    console.print()
    console.rule(f"[bold]{number}. {escape(session.title)}[/] ({CLIENTS[session.client]})", align="left")


def turn(console: Console, played: Played, record: TurnRecord) -> None:
    """One turn: what the user said, who was asked and why, what it cost, what the model did, what came back."""
    step, why = played.step, record.why
    if step.user:
        console.print(f"\n[bold]user[/]: {escape(step.user)}", highlight=False)
    style = _STYLES.get(record.target, "yellow")
    source = why.source if why is not None else "?"
    rule = f" ({why.rule})" if why is not None and why.rule else ""
    console.print()
    decided = (
        f"[{style}]{record.target}[/] by {source}{escape(rule)}: {escape(why.sentence if why is not None else '')}"
    )
    _hanging(console, f"[bold]{played.number:>2}[/]", decided)
    console.print(f"   [dim]{_usage(record)}[/]", highlight=False)
    if step.calls:
        _line(console, "   ", step.say.strip().splitlines()[0])
    else:
        _hanging(console, "", escape(flowing(step.say)))
    for call, result in zip(played.answered.calls, step.results, strict=True):
        told = next((str(call.arguments[name]) for name in _TOLD if name in call.arguments), "")
        _line(console, "   -> ", f"{call.name} {told}".replace("\n", " "), "cyan")
        _line(console, "   <- ", gist(result.text), "red" if result.error else "dim")


def flowing(text: str) -> str:
    """`text` without the line breaks inside paragraphs and list items, for the terminal to wrap where it ends."""
    found: list[str] = []
    for line in text.strip().splitlines():
        in_item = bool(found) and found[-1].startswith("- ")
        goes_on = line.startswith("  ") if in_item else not line.startswith("- ")
        if found and found[-1] and line.strip() and goes_on:
            found[-1] += " " + line.strip()
        else:
            found.append(line)
    return "\n".join(found)


def _hanging(console: Console, first: str, rest: str) -> None:
    """`rest` wrapped, three columns in; `first` stands in those columns."""
    grid = Table.grid()
    grid.add_column(width=3)
    grid.add_column()
    grid.add_row(first, rest)
    console.print(grid, highlight=False)


def _line(console: Console, indent: str, text: str, style: str = "") -> None:
    console.print(Text(indent + text, style=style), no_wrap=True, overflow="ellipsis", highlight=False)


def gist(text: str) -> str:
    """A tool result in one line: its last line, and how many there are."""
    lines = [line for line in text.strip().splitlines() if line.strip()] or ["(nothing)"]
    return lines[-1].strip() if len(lines) == 1 else f"{lines[-1].strip()}   ({len(lines)} lines)"


def closing(console: Console, bill: Bill) -> None:
    """The bill."""
    console.print()
    console.rule("[bold]The bill[/]", align="left")
    table = Table(show_edge=False, pad_edge=False)
    for name in ("", "turns", "capable", "tokens in", "cached", "written", "tokens out", "cost"):
        table.add_column(name, justify="left" if not name else "right")
    for line in (bill.routed, bill.all_capable, bill.all_efficient):
        table.add_row(*_cells(line), style="bold" if line is bill.routed else "")
    console.print(table)
    if bill.saved_usd is not None and bill.saved_share is not None:
        word = "saved" if bill.saved_usd >= 0 else "lost"
        console.print(
            f"\nRouting {word} [bold]${abs(bill.saved_usd):.4f}[/] ({abs(bill.saved_share):.0%}) against all-capable.",
            highlight=False,
        )
    console.print(f"[dim]{escape(bill.caption)}[/]", highlight=False)


def _cells(line: Line) -> tuple[str, ...]:
    counts = (line.turns, line.capable_turns, line.prompt, line.cached, line.written, line.output)
    return (line.label, *(f"{count:,}" for count in counts), money(line.cost_usd))


def _usage(record: TurnRecord) -> str:
    usage = record.usage
    if usage is None:
        return f"usage unknown, {money(record.cost_usd)}"
    cache = [
        f"{count:,} {word}"
        for count, word in ((usage.cache_read_tokens, "cached"), (usage.cache_write_tokens, "written to the cache"))
        if count
    ]
    told = f" ({', '.join(cache)})" if cache else ""
    return f"{usage.prompt_tokens or 0:,} tokens in{told}, {usage.output_tokens or 0:,} out, {money(record.cost_usd)}"


def money(usd: float | None) -> str:
    """An amount; what is not known is said, never 0."""
    return "unknown" if usd is None else f"${usd:.4f}"
