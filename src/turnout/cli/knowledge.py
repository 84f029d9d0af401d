"""`turnout knowledge`: make knowledge of a corpus, look things up in it, and serve it to retrieval agents."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from turnout.cli import exits, options, output

if TYPE_CHECKING:
    from turnout.knowledge.building import Built

app = typer.Typer(
    help="Knowledge for retrieval agents: build, search, show, serve.", no_args_is_help=True, rich_markup_mode=None
)

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="Knowledge, as `build` writes it.")]
_PACKAGES = ("numpy", "faiss", "bm25s", "tokenizers", "safetensors", "wordllama")


@app.callback()
def knowledge() -> None:
    """Knowledge for retrieval agents: build, search, show, serve.

    A corpus becomes a hypergraph: every sentence is a fact, which joins all entities named in it. Queries are looked up along two
    paths, facts near the query and facts about entities near the query, fused by reciprocal rank.
    """


@app.command("build")
def build(
    corpus: Annotated[
        Path,
        typer.Argument(metavar="CORPUS", help="A .jsonl or .json file (or .gz of one), or a folder of .txt files."),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the knowledge is, or will be.")],
    embedder: Annotated[
        str, typer.Option(metavar="NAME", help="wordllama or hashed; default: as before, or wordllama.")
    ] = "",
    index: Annotated[
        Literal["exact", "hnsw"] | None, typer.Option(help="How near vectors are found; default: as before, or exact.")
    ] = None,
    entities: Annotated[int | None, typer.Option(min=0, max=1000, help="Entities looked up by a query (5).")] = None,
    facts: Annotated[int | None, typer.Option(min=1, max=1000, help="Facts looked up by a query (10).")] = None,
    entity_order: Annotated[
        Literal["similarity", "degree"] | None, typer.Option(help="Order of facts on the entity path (similarity).")
    ] = None,
    bm25: Annotated[
        bool | None, typer.Option("--bm25/--no-bm25", help="Whether words are a third path (they are).")
    ] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Forget passages that this corpus lacks.")] = False,
    model: Annotated[str, typer.Option(metavar="TARGET", help="Have this target take out the facts.")] = "",
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Configuration file with the target.")
    ] = options.DEFAULT_FILE,
    journal: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keeps every call that is over; default: FOLDER.calls.jsonl.")
    ] = None,
    max_calls: Annotated[int | None, typer.Option(min=0, help="Requests, those in the journal included.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help="Tokens in and out, the journal's included.")] = None,
    max_usd: Annotated[float | None, typer.Option(min=0, help="Money, the journal's included.")] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Time of this run; no call begins after it.")] = None,
    at_once: Annotated[int, typer.Option(min=1, max=1024, help="Calls in flight.")] = 8,
    piece_tokens: Annotated[int, typer.Option(min=16, help="Tokens of a passage shown to the model at once.")] = 1200,
    output_tokens: Annotated[int, typer.Option(min=16, help="The most tokens of a reply, reasoning included.")] = 4096,
    temperature: Annotated[float, typer.Option(min=-1, max=2, help="Negative: the model's own.")] = 0.0,
    structured: Annotated[
        Literal["json_schema", "json_object", "text"], typer.Option(help="How facts are asked for.")
    ] = "json_schema",
    within_s: Annotated[float, typer.Option(min=1, max=600, help="Seconds after which a call has failed.")] = 120.0,
    as_json: options.AsJson = False,
) -> None:
    """Make knowledge of a corpus, or add a corpus to it.

    Rows are {"id", "title", "text"}, {"id", "contents"}, or questions that bring their passages (HotpotQA, 2WikiMultihopQA,
    MuSiQue). What was built before and has not changed is not built again. Bad documents are counted and left out.

    With --model, a model takes out the facts instead of rules. Every call is kept in a journal: a build that was killed or ran
    into a limit goes on with the same command, and pays for nothing twice.

    Example: turnout knowledge build corpus.jsonl --out knowledge/wiki
    """
    require_extra()
    from turnout.cli import progress
    from turnout.knowledge import building
    from turnout.knowledge import corpus as corpora

    given = {"entities": entities, "facts": facts, "entity_order": entity_order, "bm25": bm25, "index": index}
    wanted = building.Options(embedder, {key: value for key, value in given.items() if value is not None}, prune)
    if not model:
        with progress.shown() as told:
            built = building.build(corpora.read_corpus(corpus), out, wanted, told=told)
        _tell(out, built, as_json)
        return
    from turnout.cli import knowledge_bought
    from turnout.knowledge.extraction.asked import Asking
    from turnout.upstream.buying.budget import Limits

    asking = Asking(
        piece_tokens, output_tokens, None if temperature < 0 else temperature, structured, within_s, at_once
    )
    limits = Limits(max_calls, max_tokens, max_usd, max_seconds)
    kept = journal or out.with_name(f"{out.name}.calls.jsonl")
    with (
        progress.shown() as told,
        knowledge_bought.extractor(config, model, kept, limits, asking, told) as by_model,
    ):
        built = building.build(corpora.read_corpus(corpus), out, wanted, by_model, told)
    _tell(out, built, as_json)
    knowledge_bought.end(by_model, built, kept)


def _tell(out: Path, built: "Built", as_json: bool) -> None:
    if as_json:
        output.emit(output.whole(built))
        return
    for problem in built.problems:
        output.say(f"left out: {problem}")
    bad = sum(built.bad.values())
    if bad > len(built.problems):
        output.say(f"left out: {bad - len(built.problems)} more")
    output.emit_text(
        f"{out}: {output.count(built.passages, 'passage')}, {output.count(built.facts, 'fact')}, "
        f"{output.count(built.entities, 'entity', 'entities')}; {built.added} added, {built.changed} changed, "
        f"{built.same} as before, {built.removed} removed, {bad} bad"
    )


@app.command("search")
def search(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Knowledge, or the http(s) URL of a service.")],
    queries: Annotated[list[str], typer.Argument(metavar="QUERY...", help="What to look up.")],
    at_most: Annotated[int, typer.Option(min=1, max=1000, help="Facts for each query.")] = 10,
    as_json: options.AsJson = False,
) -> None:
    """Look things up.

    Example: turnout knowledge search knowledge/wiki "Who directed Lanterns over Harrowmere?"
    """
    from turnout.knowledge import open_knowledge
    from turnout.routing.core import Failure
    from turnout.routing.retrieval.facts import Lookup

    if not folder.startswith(("http://", "https://")):
        require_extra()
    found = open_knowledge(folder).look_up([Lookup(query, at_most=at_most) for query in queries])
    if failed := next((one for one in found if isinstance(one, Failure)), None):
        raise exits.CommandError(f"{failed.kind}: {failed.message}", exits.UPSTREAM)
    listed = [one.facts for one in found if not isinstance(one, Failure)]
    if as_json:
        output.emit(
            [
                {"query": query, "facts": [output.whole(fact) for fact in facts]}
                for query, facts in zip(queries, listed, strict=True)
            ]
        )
        return
    for query, facts in zip(queries, listed, strict=True):
        if len(queries) > 1:
            output.emit_text(f"{query}")
        table = output.table("score", "id", "passages", "fact")
        for fact in facts:
            table.row(f"{fact.score:.3f}", fact.id, ", ".join(fact.sources), fact.text)
        if facts:
            table.print()
        else:
            output.say("nothing found")


@app.command("show")
def show(
    folder: Folder,
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="An entity, or the id of a fact or passage.")] = "",
    at_most: Annotated[int, typer.Option(min=1, help="Facts listed.")] = 20,
    as_json: options.AsJson = False,
) -> None:
    """Show what a folder holds: counts and the most joined entities; or an entity, a fact, a passage.

    Example: turnout knowledge show knowledge/wiki "Odile Vantorre"
    """
    require_extra()
    from turnout.cli import knowledge_shown

    if name:
        knowledge_shown.one(folder, name, at_most, as_json)
    else:
        knowledge_shown.summary(folder, at_most, as_json)


@app.command("serve")
def serve(
    folder: Folder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 = any free one.")] = 8001,
    as_json: options.AsJson = False,
) -> None:
    """Answer POST /search with {"queries": [...]}, the shape that Graph-R1's agents ask.

    Example: turnout knowledge serve knowledge/wiki
    """
    require_extra()
    from turnout.cli import ports
    from turnout.cli.serve import address
    from turnout.knowledge.search import Searcher
    from turnout.knowledge.serving import serve as serving

    searcher = Searcher.open(folder)
    port = port or ports.free_port(host)
    ports.require_free(host, port)
    url = address(host, port)
    if as_json:
        output.emit({"url": url, "facts": searcher.manifest.facts})
    else:
        output.say(f"{folder} on {url}   {output.count(searcher.manifest.facts, 'fact')}")
        output.say(f'  try     curl {url}/search -d \'{{"queries":["hi"]}}\'')
    import sys

    sys.stdout.flush()
    serving(searcher, folder, host, port)


def require_extra() -> None:
    """Raises CommandError where a package of the extra is missing."""
    if missing := next((name for name in _PACKAGES if find_spec(name) is None), ""):
        raise exits.CommandError(f"this needs {missing}; pip install 'turnout[knowledge]'")
