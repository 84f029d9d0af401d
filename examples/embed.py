"""A router inside your own program, with the client you already have: no gateway, no server, no event loop.

    OPENAI_API_KEY=... python examples/embed.py "How many moons has Mars?"

The router is a generator that asks; this program makes the calls and feeds the outcomes back. OPENAI_BASE_URL may name any
OpenAI-compatible server.
"""

import json
import sys

import openai
from msgspec import Struct

from turnout.conversation import Conversation, Message, Reply, Settings, Text
from turnout.routing import Answer, Ask, Asking, Decision, Forward, Lane, TargetName, Turn, Why, ask
from turnout.signals import observe
from turnout.steps import Run
from turnout.wire import CODECS
from turnout.wire.codec import Request

CHAT = CODECS["openai_chat"]
client = openai.OpenAI()


class Checked(Struct, frozen=True):
    """The small model answers; unless it then vouches for its answer, the large one does."""

    small: TargetName
    large: TargetName

    def route(self, turn: Turn) -> Asking[Decision]:
        draft = yield from ask(self.small, turn.conversation)
        if isinstance(draft, Reply):
            question = f"Answer: {draft.text}\nIs this surely right and complete? Say only yes or no."
            check = Conversation((*turn.conversation.messages, Message("user", (Text(question),))))
            verdict = yield from ask(self.small, check, "judge")
            if isinstance(verdict, Reply) and verdict.text.strip().lower().startswith("yes"):
                return Answer(draft, self.small, Why("judge", "the small model vouches for its answer"))
        return Forward(self.large, Why("judge", "the small model does not vouch for its answer"))


def call(asked: Ask | Forward, conversation: Conversation) -> Reply:
    """One model call, with this program's own client."""
    request = Request("openai_chat", conversation, Settings(model=asked.target))
    body = json.loads(CHAT.write_request(request).body)
    return CHAT.read_reply(client.chat.completions.with_raw_response.create(**body).content, request)


def main(question: str) -> None:
    conversation = Conversation((Message("user", (Text(question),)),))
    turn = Turn("1", Lane(), conversation, Settings(), observe(conversation), targets={})
    run: Run[Ask, Reply, Decision] = Run(Checked(TargetName("gpt-5.4-mini"), TargetName("gpt-5.4")).route(turn))
    while not run.done:
        run.feed([call(asked, asked.conversation) for asked in run.pending])
    decision = run.result
    reply = decision.reply if isinstance(decision, Answer) else call(decision, conversation)
    print(f"{decision.target}: {reply.text}\n({decision.why.sentence})")


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]) or "How many moons has Mars?")
