"""What `turnout knowledge show` prints."""

from pathlib import Path

from turnout.cli import exits, output
from turnout.knowledge import manifest
from turnout.knowledge.search import Searcher
from turnout.knowledge.statement import key_of
from turnout.knowledge.store import Store


def summary(folder: Path, at_most: int, as_json: bool) -> None:
    """How it was made, how much it holds, and the entities that most facts are about."""
    made = manifest.read(folder)
    manifest.verify(folder, made)
    store = Store(folder)
    try:
        joined = store.most_joined(at_most)
    finally:
        store.close()
    if as_json:
        listed = [{"name": name, "facts": count} for name, count in joined]
        output.emit({**output.whole(made), "most_joined": listed})
        return
    settings = made.retrieval
    output.emit_text(
        f"{folder}: {output.count(made.passages, 'passage')}, {output.count(made.facts, 'fact')}, "
        f"{output.count(made.entities, 'entity', 'entities')}, {made.incidences / max(made.facts, 1):.1f} entities a fact\n"
        f"vectors {made.embedder} ({made.dimensions}), index {settings.index}; {settings.entities} entities and "
        f"{settings.facts} facts a query, entity path by {settings.entity_order}, words {'too' if settings.bm25 else 'not'}"
    )
    table = output.table("facts", "entity")
    for name, count in joined:
        table.row(str(count), name)
    table.print()


def one(folder: Path, name: str, at_most: int, as_json: bool) -> None:
    """An entity by its name, or a fact or a passage by its id."""
    searcher = Searcher.open(folder)
    rows = {fact.id: row for row, fact in enumerate(searcher.facts)}
    if name in rows:
        facts = [rows[name]]
    else:
        facts = searcher.facts_about(key_of(name)) or [
            row for row, fact in enumerate(searcher.facts) if name in fact.sources
        ]
    store = Store(folder)
    try:
        passages = store.passages([name] if name not in rows else searcher.facts[rows[name]].sources)
    finally:
        store.close()
    if not facts and not passages:
        raise exits.CommandError(
            f"no entity, fact or passage `{name}` in {folder}",
            exits.NOT_FOUND,
            "`turnout knowledge search` finds near ones",
        )
    listed = [searcher.fact(row) for row in facts[:at_most]]
    if as_json:
        output.emit(
            {
                "facts": [output.whole(fact) for fact in listed],
                "facts_in_all": len(facts),
                "passages": [output.whole(passage) for passage in passages],
            }
        )
        return
    for passage in passages:
        output.emit_text(f"{passage.id}  {passage.title}\n{passage.text}\n")
    table = output.table("id", "passages", "entities", "fact")
    for fact in listed:
        table.row(fact.id, ", ".join(fact.sources), ", ".join(fact.entities), fact.text)
    table.print()
    if len(facts) > len(listed):
        output.say(f"{len(facts) - len(listed)} more; --at-most shows them")
