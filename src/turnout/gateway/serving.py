"""Serves one turn: reads the request, routes it, has it answered in the client's dialect, and records it all."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from turnout.conversation import Conversation, Edit, Fault, Message, Reply, Usage
from turnout.errors import ClientError, RouterError, TurnoutError, UpstreamError, afresh
from turnout.gateway.accounts import Account
from turnout.gateway.artefacts import KEY, makers, served
from turnout.gateway.asking import Asker
from turnout.gateway.attend import Attended
from turnout.gateway.canary.host import NONE
from turnout.gateway.continuing import continued
from turnout.gateway.forwarding import forward
from turnout.gateway.handing import note_for
from turnout.gateway.opened import Gateway
from turnout.gateway.outlet import Outlet
from turnout.gateway.playing import play_answer
from turnout.gateway.receiving import ClientGone, read_body
from turnout.gateway.recording import recorded
from turnout.gateway.routes import Route
from turnout.gateway.shadow.host import Over
from turnout.gateway.warmth import warmed
from turnout.ledger.trace import Ended
from turnout.routing.asked import Asked, asked
from turnout.routing.core import (
    AgentInfo,
    Answer,
    Ask,
    Decision,
    Lane,
    Outcome,
    Placed,
    TargetName,
    Turn,
    Why,
    taken_over,
)
from turnout.routing.handover.note import HandOver
from turnout.routing.retrieval.facts import Lookup, LookupOutcome
from turnout.routing.retrieval.looked_up import LookedUp, looked_up
from turnout.routing.warmth import CacheUse
from turnout.sessions.responses import StoredResponse
from turnout.sessions.store import Loaded
from turnout.signals import Signals, observe
from turnout.steps import Run
from turnout.upstream.drive import drive
from turnout.upstream.models import Model
from turnout.wire.codec import Codec, Request, Writer
from turnout.wire.drops import Drop
from turnout.wire.responses.references import given_items
from turnout.wire.sse import comment


class Serving:
    """One turn in flight, from request to record: what is known of it so far, and the steps that go from one to the next.

    `request`, `route` and `decision` are None until that step has been reached. `made`: marks of what only the answering model
    can read of its reply. `edits`: what was changed on the way to the target. `handover`: the note for a model that takes over,
    once one was asked for. `watched`: what its prompt cache holds is worth knowing, and `cache` is what has become known.
    `begun`: the writer that has told the client that an answer begins, and the id it told. `overruled`: the explanation that
    replaces the router's when another target than its choice served.
    `shadowed`: the turn as its router saw it, where shadows are to see it too.
    `entered`: the calls it makes that no concurrent turn of its lane may make.
    """

    # Most of these are set once, by the step that finds them out.
    body = b""
    request: Request | None = None
    route: Route | None = None
    lane = Lane()
    agent = AgentInfo()
    signals = Signals()
    conversation: Conversation | None = None
    sources: tuple[StoredResponse, ...] = ()
    loaded = Loaded()
    shadowed: Turn | None = None
    decision: Decision | None = None
    decided_s = 0.0
    asked: tuple[Asked, ...] = ()
    lookups: tuple[LookedUp, ...] = ()
    cooling: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    overruled: Why | None = None
    committed = False
    entered: tuple[tuple[str, str], ...] = ()
    edits: tuple[Edit, ...] = ()
    handover: HandOver | None = None
    watched = False
    cache: CacheUse | None = None
    begun: tuple[Writer, str] | None = None
    target: TargetName | None = None
    model_name = ""
    upstream_format = ""
    drops: tuple[Drop, ...] = ()
    usage: Usage | None = None
    stop = ""
    response_id = ""
    ended: Ended = "ok"
    status = 200
    error = ""
    error_message = ""

    def __init__(
        self,
        gateway: Gateway,
        codec: Codec,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        self.gateway = gateway
        self.codec = codec
        self.headers: list[tuple[bytes, bytes]] = scope["headers"]
        self.by_name: dict[bytes, bytes] = dict(self.headers)
        self.receive = receive
        self.at = time.time()
        self.id = turn_id(self.at)
        self.attended = Attended(receive, gateway.deadline_s, gateway.loop)
        self.began = self.attended.began
        self.outlet = Outlet(send, self.attended)
        self.accounts: list[Account] = []
        self.made: list[str] = []
        self.response: list[bytes] | None = [] if gateway.keeps_bodies else None

    async def serve(self) -> None:
        """Serve the turn to its end; nothing but the server's own cancellation escapes."""
        self.gateway.metrics.in_flight += 1
        try:
            self.gateway.attendant.enter(self.attended)
            self.body = await read_body(self.receive, self.by_name, self.gateway.max_body)
            self.attended.reading = False
            await self._turn()
        except TurnoutError as error:
            await self._fail(error)
        except asyncio.CancelledError:
            await self._interrupted()
        except ClientGone:
            self._client_gone()
        except RecursionError:
            problem = "is nested too deeply"
            if self.decision is None:
                await self._fail(ClientError(f"the body {problem}", code="invalid_json"))
            else:
                await self._fail(UpstreamError("malformed", f"the model's answer {problem}"))
        except Exception as error:
            # The outermost boundary: a fault of ours must still answer, be recorded, and never print what it holds.
            self.gateway.internal_error(error)
            await self._fail(TurnoutError(f"internal error ({type(error).__name__})"))
        finally:
            self.gateway.attendant.leave(self.attended)
            self.outlet.release()
            for key in self.entered:
                self.gateway.once.leave(key, time.monotonic(), self.committed)
            record = recorded(self)
            self.gateway.finished(record)
            if self.shadowed is not None and self.decision is not None:
                over = Over(self.shadowed, record, self.decision, self.asked, len(self.body), self.lookups)
                self.gateway.shadows.offer(over)

    async def _turn(self) -> None:
        gateway = self.gateway
        tenant = ""
        if gateway.client_keys:
            tenant = gateway.tenant(self.by_name, self.codec.format)
            self.headers = gateway.without_keys(self.headers)
        request = self.request = self.codec.read_request(self.body)
        settings = request.settings
        route = self.route = gateway.route(settings.model)
        place = await continued(gateway, request, self.by_name, tenant)
        conversation = self.conversation = place.conversation
        self.sources, self.lane, self.agent = place.sources, place.lane, place.agent
        signals = self.signals = observe(conversation, gateway.vocabulary, self.lane.agent)
        if self.lane.identified:
            self.loaded = await gateway.sessions.load(self.lane, conversation, signals.compacted)
        turn = Turn(
            id=self.id,
            lane=self.lane,
            conversation=conversation,
            settings=settings,
            signals=signals,
            targets=gateway.models.facts(),
            memory=self.loaded.states,
            now=self.at,
            deadline_s=gateway.config.server.deadline_s,
            asked_for=settings.model,
            agent=self.agent,
            stopped=gateway.canaries.stopped.get(route.name, NONE),
        )
        if gateway.keeps_bodies:
            self.cooling = tuple(name for name, facts in turn.targets.items() if not facts.healthy)
            self.stopped = tuple(sorted(turn.stopped))
        if route.name in gateway.shadows.by_route:
            self.shadowed = turn
        decision = self.decision = await self._decide(route, turn, request)
        self.decided_s = time.monotonic() - self.began
        if isinstance(decision, Answer):
            await play_answer(self, request, decision)
        else:
            await forward(self, request, route, decision)

    async def _decide(self, route: Route, turn: Turn, request: Request) -> Decision:
        """The router's decision; a router that raises or breaks its contract falls to the route's `otherwise`."""
        try:
            run: Run[Any, Any, Decision] = Run(route.router.route(turn))
            if run.done:
                decision = run.result
            else:
                asker = Asker(
                    self.gateway,
                    request,
                    self.accounts,
                    self.headers,
                    self.began,
                    self.attended.deadline,
                    makers(turn.memory),
                    route.strict,
                    self._makes_alone,
                    route.name,
                    partial(note_for, self) if route.handover_note else None,
                    self._asked if self.gateway.keeps_bodies or self.shadowed is not None else None,
                    self.tell,
                )
                self.await_content()
                decision = await drive(run, {Ask: asker.perform, Lookup: self._look_up})
                asker.concluded(decision)
            if decision.target not in self.gateway.models:
                raise RouterError(f"the router chose the unknown target {decision.target!r}")
        except (ClientError, UpstreamError):
            # What a router says of a turn that nothing else is to serve.
            raise
        except Exception as error:
            # The other boundary: routing must never cost the client its answer.
            self.gateway.internal_error(error)
            return route.fault(error)
        return decision

    def _asked(self, ask: Ask, outcome: Outcome) -> None:
        assert self.conversation is not None  # a router has read it
        self.asked = (*self.asked, asked(ask, self.conversation, outcome))

    async def _look_up(self, lookup: Lookup) -> LookupOutcome:
        began = time.monotonic()
        outcome = await self.gateway.library.look_up(lookup, self.attended.deadline)
        now = time.monotonic()
        self.lookups = (*self.lookups, looked_up(lookup, outcome, began - self.began, now - began))
        return outcome

    def _makes_alone(self, name: str) -> bool:
        """Whether no concurrent turn of this lane makes the call of this name."""
        key = (self.lane.key, name)
        if not self.lane.identified or key in self.entered:
            return True
        if not self.gateway.once.enter(key, self.began):
            return False
        self.entered = (*self.entered, key)
        return True

    def await_content(self) -> None:
        """From now on a streaming client gets signs of life while it waits."""
        request, outlet = self.request, self.outlet
        if request is not None and request.settings.stream and self.attended.pulse is None:
            outlet.pinger = self._ping
            self.attended.pulse = outlet.pulse
            if not outlet.head:
                outlet.head = self.head()

    async def tell(self, text: str) -> None:
        """Tell a streaming client that waits for its answer what goes on, in a comment, which no program takes for the answer."""
        if self.attended.pulse is not None and not self.outlet.content_sent:
            await self.outlet.begin(comment(text))

    def _ping(self) -> bytes:
        assert self.request is not None  # a streaming client waits for it
        return self.codec.writer(self.request, self.model_name).ping()

    def served_by(self, model: Model, drops: tuple[Drop, ...] = ()) -> None:
        """`model` is to answer the turn; the response head says so."""
        self.target, self.model_name, self.upstream_format = model.name, model.target.model, model.format
        self.drops = drops
        self.made.clear()
        self.watched = len(self.body) >= model.watched_from and self.lane.identified
        decision = self.decision
        if decision is not None and model.name != decision.target:
            self.overruled = taken_over(decision.why, decision.target, model.name)
        self.outlet.head = self.head()

    def head(self) -> list[tuple[bytes, bytes]]:
        """Decision headers of the response, as far as they are known."""
        head = [(b"x-turnout-turn", self.id.encode())]
        if self.route is not None:
            head += self.gateway.route_headers[self.route.name]
        why = self.overruled or (self.decision.why if self.decision is not None else None)
        if why is not None:
            if self.target is not None:
                head += self.gateway.models[self.target].headers
            head.append((b"x-turnout-source", why.source.encode()))
            if why.consensus:
                head.append((b"x-turnout-consensus", why.consensus.encode()))
            if why.source == "retrieval":
                head.append((b"x-turnout-retrieval", why.rule.encode()))
        if self.drops:
            head.append((b"x-turnout-dropped", b"%d" % len(self.drops)))
        return head

    def finished(self, account: Account, usage: Usage | None, stop: str, reply_id: str) -> None:
        """A call's reply is whole and is what the client gets."""
        account.usage = self.usage = usage
        account.ended = time.monotonic()
        account.reply = self.response_id = reply_id
        account.served = True
        self.stop = stop

    @property
    def keeps_reply(self) -> bool:
        """Whether the reply must be kept so that the client can continue it by id."""
        request = self.request
        return request is not None and request.format == "openai_responses" and request.settings.store is not False

    def continuable(self, reply_id: str) -> str:
        """The id the client knows a reply by, so that it finds it again: an upstream's own where it is one of Responses."""
        own = reply_id.startswith("resp_") and len(reply_id) <= 64
        return f"resp_{self.id}" if self.keeps_reply and not own else reply_id

    @property
    def must_commit(self) -> bool:
        """Whether anything is to be remembered before the terminal goes out."""
        remembers = bool(self.decision is not None and self.decision.remember)
        return remembers or bool(self.made) or self.watched or self.keeps_reply or self._switches

    @property
    def _switches(self) -> bool:
        """Whether it is worth knowing who served last: where another may serve next that is told so, reaches another account,
        or was asked to think. Commits cost more than the rest of the account of a small turn."""
        route = self.route
        if route is None:
            return False
        if route.handover_note or route.name in self.gateway.spread or KEY in self.loaded.states:
            return True
        return len(route.targets) > 1 and self.request is not None and self.request.settings.effort is not None

    async def commit(self, reply: Reply | None, frames: bytes = b"") -> None:
        """Remember the decision's events and the response; the next turn may come the moment the terminal is out.

        `frames`: the bytes the client gets, where they are known by now.
        """
        if self.committed or self.decision is None or self.conversation is None:
            return
        self.committed = True
        conversation, events = self.conversation, self.decision.remember
        if self.target is not None and self.lane.identified:
            known = makers(self.loaded.states)
            told = served(self.target, self.made, known, conversation, self._switches)
            events = events if told is None else (*events, told)
        if self.watched and (seen := self._warmed()) is not None:
            events = (*events, seen)
        if events and self.lane.identified:
            await self.gateway.sessions.commit(self.lane, conversation, self.signals.compacted, events)
        if reply is not None and reply.id and self.keeps_reply and self.target is not None:
            said = (*conversation.messages, Message("assistant", reply.parts))
            native = self.gateway.models[self.target].keeps_responses
            system, items = tuple(conversation.system), given_items(reply, frames)
            await self.gateway.responses.keep(
                StoredResponse(reply.id, self.lane, self.target, said, system, native, items)
            )

    def _warmed(self) -> Placed | None:
        """The event that says what the target's prompt cache holds from now on."""
        if self.usage is None or self.target is None:
            return None
        try:
            found = warmed(self, self.usage, self.gateway.models[self.target])
        except Exception as error:
            # Keeping this account must never cost the client its answer.
            self.gateway.internal_error(error)
            return None
        if found is None:
            return None
        event, self.cache = found
        return event

    def keep_response(self, data: bytes) -> None:
        """Keep bytes sent to the client, where the ledger captures bodies."""
        if self.response is not None:
            self.response.append(data)

    def _client_gone(self) -> None:
        self.ended, self.status, self.error = "client_gone", 499, "client_gone"

    async def _interrupted(self) -> None:
        """The turn's task was cancelled: by the client's hang-up, the deadline, or the server's shutdown."""
        for account in self.accounts:
            if account.ended is None:
                account.ended = time.monotonic()
                account.error = account.error or "cancelled"
        task = asyncio.current_task()
        if self.attended.gone or self.attended.expired:
            if task is not None:
                task.uncancel()
            if self.attended.gone:
                self._client_gone()
            elif self.attended.reading:
                message = "the request body did not arrive in time; send it again"
                await self._fail(ClientError(message, status=408, code="request_timeout"))
            else:
                seconds = self.gateway.config.server.deadline_s
                await self._fail(UpstreamError("timeout", f"the turn took longer than {seconds:g} s", status=504))
            return
        # The server is shutting down. The turn is this task's whole work, so the cancellation ends here.
        await self._fail(UpstreamError("unavailable", "the gateway is shutting down", status=503, retry_after_s=1.0))
        self.error = "shutdown"

    async def _fail(self, error: TurnoutError) -> None:
        """Answer with an error in the client's dialect: with a status while nothing has gone out, in the stream after."""
        self.attended.pulse = None
        redactor = self.gateway.redactor.with_credentials(self.headers)
        message = redactor.clean(str(error))
        self.ended = "error"
        if isinstance(error, UpstreamError):
            error.message, self.error = message, error.kind
            for field in ("code", "type", "param"):
                # A stream's own error comes here as its upstream worded it.
                if isinstance(value := getattr(error, field), str):
                    setattr(error, field, redactor.clean(value))
        elif isinstance(error, ClientError):
            self.error = error.code
            self.ended = "rejected" if self.decision is None else "error"
        else:
            self.error = "internal"
        self.error_message = message[:1000]
        outlet = self.outlet
        if not outlet.opened:
            reply = self.codec.write_error(error)
            if isinstance(error, UpstreamError) and error.answer_format == self.codec.format:
                # Within one format an upstream's error is relayed like any other reply of its: unchanged.
                body = self.gateway.redactor.with_credentials(self.headers).clean_bytes(error.answer or b"")
                reply = msgspec.structs.replace(reply, status=error.status or reply.status, body=body)
            self.status = reply.status
            outlet.head = self.head()
            self.keep_response(reply.body)
            await outlet.send_whole(reply.status, reply.body, reply.headers)
        elif not outlet.closed:
            if outlet.content_sent:
                self.ended = "cut"
            fault = (
                afresh(error) if isinstance(error, UpstreamError) else UpstreamError("unavailable", message, status=500)
            )
            if isinstance(error, ClientError):
                fault = UpstreamError("request", message, status=error.status, code=error.code, param=error.param)
            data = outlet.fault(fault) if outlet.fault is not None else self._fault(fault)
            self.keep_response(data)
            await outlet.write(data, last=True)

    def _fault(self, error: UpstreamError) -> bytes:
        assert self.request is not None  # a stream has been opened for it
        return self.codec.writer(self.request, self.model_name).feed(Fault(error))


def turn_id(at: float) -> str:
    """A unique id that sorts by time: milliseconds in 11 hex digits, then 13 random ones."""
    # An id is no secret, and asking the kernel for randomness costs more than the decision does.
    return f"t{int(at * 1000):011x}{random.getrandbits(52):013x}"
